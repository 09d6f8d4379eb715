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
    let mut buffer = vec![0_u8; MAX_MESSAGE];
    let length = socket
        .io(Interest::READABLE, |socket| {
            let (length, _) = rustix::net::recv(socket, &mut buffer[..], RecvFlags::DONTWAIT)?;
            Ok(length)
        })
        .await?;
    if length == 0 {
        return Err(std::io::Error::new(
            std::io::ErrorKind::UnexpectedEof,
            "it closed its control socket",
        ));
    }
    serde_json::from_slice(&buffer[..length])
        .map_err(|error| std::io::Error::other(format!("it sent an invalid message: {error}")))
}
