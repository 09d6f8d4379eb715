//! The messages between server and template: one datagram each way, parsed as hostile input.

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::net::{RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use serde::Deserialize;
use tokio::io::Interest;

use crate::model::{Drawn, FunctionError, Threads};
use crate::watched::Watched;

/// Longest message a template may send: a traceback of 100 frames fits well.
const MAX_MESSAGE: usize = 256 * 1024;

/// What a template says.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Message {
    Booted {
        runtime: String,
        import_ms: f64,
        #[serde(default)]
        drawn: Option<Drawn>,
        #[serde(default)]
        threads: Threads,
    },
    ImportError {
        error: FunctionError,
    },
    ForkFailed {
        seq: u64,
        message: String,
        errno: Option<i32>,
    },
    Exited {
        pid: u32,
        code: Option<i32>,
        signal: Option<i32>,
    },
}

/// Sends one datagram with descriptors, waiting for room.
pub(in crate::instance) async fn send(
    socket: &Watched,
    bytes: &[u8],
    fds: &[BorrowedFd<'_>],
) -> std::io::Result<()> {
    let try_send = |socket: BorrowedFd<'_>| -> std::io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() {
            ancillary.push(SendAncillaryMessage::ScmRights(fds));
        }
        rustix::net::sendmsg(
            socket,
            &[IoSlice::new(bytes)],
            &mut ancillary,
            SendFlags::NOSIGNAL | SendFlags::DONTWAIT,
        )?;
        Ok(())
    };
    match try_send(socket.as_fd()) {
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
            // Watched for room only now: otherwise each message that the template takes would wake the server, in the
            // middle of a start.
            let room = Watched::new(socket.as_fd().try_clone_to_owned()?, Interest::WRITABLE)?;
            room.io(Interest::WRITABLE, try_send).await
        }
        sent => sent,
    }
}

/// Receives and parses one datagram. Descriptors are never accepted: no buffer for them is offered.
pub(super) async fn next_message(socket: &Watched) -> std::io::Result<Message> {
    // Its memory is taken when it is there: each template's next one is waited for all the time.
    let bytes = socket
        .io(Interest::READABLE, |socket| {
            let peek = RecvFlags::DONTWAIT | RecvFlags::PEEK | RecvFlags::TRUNC;
            let (_, length) = rustix::net::recv(socket, &mut [0_u8; 0][..], peek)?;
            let mut bytes = vec![0; length.min(MAX_MESSAGE)];
            let (length, _) = rustix::net::recv(socket, &mut bytes[..], RecvFlags::DONTWAIT)?;
            bytes.truncate(length);
            Ok(bytes)
        })
        .await?;
    if bytes.is_empty() {
        return Err(std::io::Error::new(
            std::io::ErrorKind::UnexpectedEof,
            "it closed its control socket",
        ));
    }
    serde_json::from_slice(&bytes)
        .map_err(|error| std::io::Error::other(format!("it sent an invalid message: {error}")))
}

#[cfg(test)]
mod tests {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;

    #[tokio::test]
    async fn messages_come_whole_up_to_the_longest() {
        let (ours, theirs) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::NONBLOCK | SocketFlags::CLOEXEC,
            None,
        )
        .expect("sockets");
        rustix::net::sockopt::set_socket_send_buffer_size(&theirs, 4 * MAX_MESSAGE).expect("room");
        let ours = Watched::new(ours, Interest::READABLE).expect("watched");
        let send = |bytes: &[u8]| {
            rustix::net::send(&theirs, bytes, SendFlags::empty()).expect("sent");
        };
        let failed = |message: &str| {
            format!(r#"{{"type":"fork_failed","seq":7,"message":"{message}","errno":null}}"#)
        };
        let longest = MAX_MESSAGE - failed("").len();
        for (length, is_whole) in [(1, true), (longest, true), (longest + 1, false)] {
            send(failed(&"x".repeat(length)).as_bytes());
            match next_message(&ours).await {
                Ok(Message::ForkFailed { message, .. }) => {
                    assert!(is_whole && message.len() == length);
                }
                Ok(other) => panic!("{other:?}"),
                Err(error) => assert!(!is_whole && error.to_string().contains("invalid message")),
            }
        }
        // What was cut takes nothing of the next one.
        send(br#"{"type":"exited","pid":5,"code":0,"signal":null}"#);
        assert!(matches!(
            next_message(&ours).await,
            Ok(Message::Exited { pid: 5, .. })
        ));
        drop(theirs);
        let error = next_message(&ours).await.expect_err("nobody is there");
        assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof);
    }
}
