//! What the server says to it.

use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use hearth_chain::board::Shape as BoardShape;
use hearth_chain::join::{JOIN_DESCRIPTORS, Join, MESSAGE_BYTES_MAX};
use hearth_chain::{Board, PeerBoard, PoolFiles, PoolView};
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

use super::link::Link;
use super::{Anything, Member};

/// The server's next message, if there is one.
pub(super) fn receive(
    socket: &OwnedFd,
    flags: RecvFlags,
) -> Result<Option<(Join, Vec<OwnedFd>)>, Anything> {
    let mut bytes = vec![0; MESSAGE_BYTES_MAX];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(JOIN_DESCRIPTORS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(&mut bytes)];
    let flags = flags | RecvFlags::CMSG_CLOEXEC;
    let received = match recvmsg(socket, &mut parts, &mut ancillary, flags) {
        Err(Errno::AGAIN) => return Ok(None),
        received => received?,
    };
    if received.bytes == 0 {
        // The server is gone, or has had enough.
        std::process::exit(0);
    }
    let mut descriptors = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    let message = bytes.get(..received.bytes).and_then(Join::decode);
    Ok(message.map(|message| (message, descriptors)))
}

pub(super) fn join(message: Join, descriptors: Vec<OwnedFd>) -> Result<Member, Anything> {
    let Join::Chain {
        instance,
        carrier,
        edges,
        slots,
        ..
    } = message
    else {
        return Err("another message before the first".into());
    };
    let [blocks, ledger, routes, own, gateway, line] =
        <[OwnedFd; JOIN_DESCRIPTORS]>::try_from(descriptors).map_err(|_| "too few descriptors")?;
    let shape = BoardShape::new(edges, edges, slots)?;
    let sealed = vec![ledger.try_clone()?, routes, gateway.try_clone()?];
    let board = Board::attach(own, shape)?;
    let seen = PeerBoard::attach(gateway, shape)?;
    let way = Link::new((instance, &board), carrier, &seen, line)?;
    Ok(Member {
        me: instance,
        shape,
        board,
        way,
        pool: PoolView::attach(PoolFiles { blocks, ledger })?,
        sealed,
        peer: None,
        grant: None,
        template: None,
    })
}
