//! What an instance says on its READY socket before its first request: WAITING, once, if it is pre-forked and has hooks to
//! run once it is wanted; then READY. Whoever says it is hostile until proven otherwise: the kernel tells who it is.

use std::io::IoSliceMut;
use std::mem::MaybeUninit;

use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use tokio::io::Interest;

use super::fork::StartError;
use crate::watched::Watched;

const WAITING: u8 = b'W';
const READY: u8 = b'R';

/// Contents of READY.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ready {
    /// On the host, by the kernel's word.
    pub(super) pid: u32,
    /// Inside the sandbox, by the worker's word; used only to look up what the template says of it.
    pub(super) inner_pid: u32,
}

/// What a pre-forked instance has said, as long as nobody has received it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said {
    Nothing,
    /// It waits for GO.
    Waiting,
    /// It waits for a request, or what it says makes no sense.
    Ready,
    /// Its end.
    Gone,
}

/// Receives READY. An instance may have said WAITING before, once.
pub(super) async fn receive_ready(socket: &Watched) -> Result<Ready, StartError> {
    match receive_message(socket).await? {
        Message::Ready(ready) => Ok(ready),
        Message::Waiting => match receive_message(socket).await? {
            Message::Ready(ready) => Ok(ready),
            Message::Waiting => Err(StartError::BadReady),
        },
    }
}

/// What has been said, left to be received.
pub(super) fn said(socket: &Watched) -> Said {
    match peek(socket) {
        Err(Errno::AGAIN) => Said::Nothing,
        Ok(said) => said,
        Err(_) => Said::Gone,
    }
}

/// Waits until something has been said, and leaves it to be received.
pub(super) async fn wait_for_word(socket: &Watched) -> Said {
    let word = socket.io(Interest::READABLE, |_| Ok(peek(socket)?));
    word.await.unwrap_or(Said::Gone)
}

fn peek(socket: &Watched) -> rustix::io::Result<Said> {
    let mut byte = [0];
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    let (length, _) = rustix::net::recv(socket, &mut byte[..], flags)?;
    Ok(match (length, byte[0]) {
        (0, _) => Said::Gone,
        (_, WAITING) => Said::Waiting,
        _ => Said::Ready,
    })
}

enum Message {
    Waiting,
    Ready(Ready),
}

async fn receive_message(socket: &Watched) -> Result<Message, StartError> {
    let mut bytes = [0_u8; 8];
    let (length, pid) = socket
        .io(Interest::READABLE, |socket| {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmCredentials(1))];
            let mut ancillary = RecvAncillaryBuffer::new(&mut space);
            let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
            let message = rustix::net::recvmsg(
                socket,
                &mut [IoSliceMut::new(&mut bytes)],
                &mut ancillary,
                flags,
            )?;
            let pid = ancillary.drain().find_map(|item| match item {
                RecvAncillaryMessage::ScmCredentials(credentials) => Some(credentials.pid),
                _ => None,
            });
            Ok((message.bytes, pid))
        })
        .await?;
    match (length, pid) {
        (0, _) => Err(StartError::Ended),
        (1, _) if bytes[0] == WAITING => Ok(Message::Waiting),
        (5, Some(pid)) if bytes[0] == READY => Ok(Message::Ready(Ready {
            pid: pid.as_raw_nonzero().get().cast_unsigned(),
            inner_pid: u32::from_le_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]),
        })),
        _ => Err(StartError::BadReady),
    }
}
