//! The server's messages to a member: [`hearth_chain::join`].

use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use hearth_chain::board::Shape;
use hearth_chain::join::{JOIN_DESCRIPTORS, Join, MESSAGE_BYTES_MAX};
use hearth_chain::routes::RouteView;
use hearth_chain::routes::choice::{Chooser, Policy};
use hearth_chain::{Board, PeerBoard, PoolFiles, PoolView};
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

use super::logs::Logs;
use super::peers::Peers;
use super::{ChainMember, MemberError};
use crate::message::GO;

/// What came on the control socket.
enum Heard {
    /// A message and its descriptors.
    Message(Join, Vec<OwnedFd>),
    /// Nothing so far.
    Nothing,
    /// The server is gone.
    Gone,
}

impl ChainMember {
    /// Waits for the server's first message and joins the chain; nothing when the server is gone.
    ///
    /// # Errors
    /// The message makes no sense, or the memory cannot be mapped.
    pub fn join(control: &OwnedFd) -> Result<Option<Self>, MemberError> {
        let (message, descriptors) = match receive(control, RecvFlags::empty())? {
            Heard::Message(message, descriptors) => (message, descriptors),
            Heard::Nothing | Heard::Gone => return Ok(None),
        };
        let Join::Chain {
            instance,
            member,
            carrier,
            edges,
            slots,
            in_place,
        } = message
        else {
            return Err(MemberError::Message("another message before the first"));
        };
        let descriptors = <[OwnedFd; JOIN_DESCRIPTORS]>::try_from(descriptors)
            .map_err(|_| MemberError::Message("too few descriptors"))?;
        let [blocks, ledger, routes, own, gateway, line] = descriptors;
        let shape = Shape::new(edges, edges, slots)?;
        let board = Board::attach(own, shape)?;
        let gateway = PeerBoard::attach(gateway, shape)?;
        let peers = Peers::new((instance, &board), carrier, gateway, line)?;
        let mut joined = Self {
            me: instance,
            member,
            pool: PoolView::attach(PoolFiles { blocks, ledger })?,
            routes: RouteView::attach(routes)?,
            board,
            peers,
            chooser: Chooser::new(Policy::ResidualCapacity),
            early: VecDeque::new(),
            current: None,
            asked: None,
            names: Vec::new(),
            granted: Vec::new(),
            logs: Logs::of_this_process(),
            in_place,
            takes_turns: false,
        };
        Ok(joined.hear(control)?.then_some(joined))
    }

    /// Hears what the server has said so far; false when it is gone.
    pub(super) fn hear(&mut self, control: &OwnedFd) -> Result<bool, MemberError> {
        loop {
            match receive(control, RecvFlags::DONTWAIT)? {
                Heard::Message(message, descriptors) => self.understand(message, descriptors)?,
                Heard::Nothing => return Ok(true),
                Heard::Gone => return Ok(false),
            }
        }
    }

    fn understand(&mut self, message: Join, descriptors: Vec<OwnedFd>) -> Result<(), MemberError> {
        let (instance, member, sends, receives) = match message {
            Join::Peer {
                instance,
                member,
                sends,
                receives,
            } => (instance, member, sends, receives),
            Join::Names(names) => {
                self.names = names;
                return Ok(());
            }
            Join::Chain { .. } => return Err(MemberError::Message("a second first message")),
        };
        let [board] = <[OwnedFd; 1]>::try_from(descriptors)
            .map_err(|_| MemberError::Message("a peer without its board"))?;
        let seen = PeerBoard::attach(board, self.board.shape())?;
        self.peers.connect(
            (self.me, &self.board),
            (instance, &seen),
            sends,
            receives.then_some(None),
        )?;
        self.peers.add(instance, member, seen, receives);
        Ok(())
    }
}

fn receive(control: &OwnedFd, flags: RecvFlags) -> Result<Heard, MemberError> {
    let failed = |errno: Errno| MemberError::Os {
        call: "recvmsg",
        source: io::Error::from(errno),
    };
    let mut bytes = vec![0; MESSAGE_BYTES_MAX];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(JOIN_DESCRIPTORS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = loop {
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let flags = flags | RecvFlags::CMSG_CLOEXEC;
        match recvmsg(control, &mut parts, &mut ancillary, flags) {
            // To a pre-forked instance that had said READY just before.
            Ok(received) if bytes.get(..received.bytes) == Some(&[GO]) => {}
            Ok(received) => break received,
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Ok(Heard::Nothing),
            Err(Errno::CONNRESET) => return Ok(Heard::Gone),
            Err(errno) => return Err(failed(errno)),
        }
    };
    if received.bytes == 0 {
        return Ok(Heard::Gone);
    }
    let mut descriptors = Vec::with_capacity(JOIN_DESCRIPTORS);
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            descriptors.extend(rights);
        }
    }
    let message = bytes.get(..received.bytes).and_then(Join::decode);
    let message = message.ok_or(MemberError::Message("an unknown message"))?;
    Ok(Heard::Message(message, descriptors))
}
