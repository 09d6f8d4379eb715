//! Datagrams with descriptors over a SEQPACKET socket; used by both sides.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};

/// Most descriptors one datagram carries; protects the ancillary buffer's size.
const MAX_FDS: usize = 8;

/// Sends one datagram with descriptors.
///
/// # Errors
/// Whatever `sendmsg(2)` says; `EAGAIN` when the socket is non-blocking and full, `EPIPE` when the peer is gone.
pub fn send(socket: impl AsFd, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    rustix::net::sendmsg(
        socket,
        &[IoSlice::new(bytes)],
        &mut ancillary,
        SendFlags::NOSIGNAL,
    )?;
    Ok(())
}

/// Receives one datagram into `buffer` with the descriptors it carries (all close-on-exec). A length of 0 means that the
/// peer is gone.
///
/// # Errors
/// Whatever `recvmsg(2)` says, `EAGAIN` included.
pub fn receive(socket: impl AsFd, buffer: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    receive_some(socket, buffer).map(|(length, fds, _)| (length, fds))
}

/// The same, and whether there were more descriptors than were free here.
///
/// # Errors
/// As [`receive`].
pub fn receive_some(
    socket: impl AsFd,
    buffer: &mut [u8],
) -> io::Result<(usize, Vec<OwnedFd>, bool)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let message = rustix::io::retry_on_intr(|| {
        rustix::net::recvmsg(
            socket.as_fd(),
            &mut [IoSliceMut::new(buffer)],
            &mut ancillary,
            RecvFlags::CMSG_CLOEXEC,
        )
    })?;
    let mut fds = Vec::new();
    for entry in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = entry {
            fds.extend(rights);
        }
    }
    let were_more = message.flags.contains(ReturnFlags::CTRUNC);
    Ok((message.bytes, fds, were_more))
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use rustix::io::{FdFlags, fcntl_getfd};
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;

    fn pair() -> (OwnedFd, OwnedFd) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap()
    }

    #[test]
    fn descriptors_arrive_with_their_datagram_and_close_on_exec() {
        let (ours, theirs) = pair();
        let null = File::open("/dev/null").unwrap();
        send(&ours, b"one", &[null.as_fd(); MAX_FDS]).unwrap();
        send(&ours, b"two", &[]).unwrap();

        let mut buffer = [0; 16];
        let (length, fds) = receive(&theirs, &mut buffer).unwrap();
        assert_eq!((&buffer[..length], fds.len()), (&b"one"[..], MAX_FDS));
        for fd in &fds {
            assert!(fcntl_getfd(fd).unwrap().contains(FdFlags::CLOEXEC));
        }
        let (length, fds) = receive(&theirs, &mut buffer).unwrap();
        assert_eq!((&buffer[..length], fds.len()), (&b"two"[..], 0));
    }

    #[test]
    fn more_descriptors_than_fit_are_refused_before_anything_is_sent() {
        let (ours, theirs) = pair();
        let null = File::open("/dev/null").unwrap();
        let error = send(&ours, b"x", &[null.as_fd(); 2 * MAX_FDS]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        let error = receive(&theirs, &mut [0; 16]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn a_peer_that_is_gone_is_a_length_of_zero() {
        let (ours, theirs) = pair();
        drop(ours);
        let (length, fds) = receive(&theirs, &mut [0; 16]).unwrap();
        assert_eq!((length, fds.len()), (0, 0));
        let error = send(&theirs, b"x", &[]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}
