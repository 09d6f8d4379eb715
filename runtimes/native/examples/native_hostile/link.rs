//! How it sends, whatever the transport: by the rings of its board, or through its socket.

use std::os::fd::OwnedFd;

use hearth_abi::Bell;
use hearth_chain::join::Carrier;
use hearth_chain::{
    Arrival, Board, ChainError, Descriptor, Edges, Instance, PeerBoard, RecvError, SendError,
    SkMsg, Transport as _,
};
use rustix::net::SendFlags;

/// See the module.
pub(super) enum Link {
    Boards(Edges),
    Socket { way: SkMsg, raw: OwnedFd },
}

impl Link {
    /// Of an instance whose only peer is the gateway, at the other end of `line`.
    pub(super) fn new(
        (me, board): (Instance, &Board),
        carrier: Carrier,
        gateway: &PeerBoard,
        line: OwnedFd,
    ) -> Result<Self, ChainError> {
        let mut way = match carrier {
            Carrier::SkMsg => Self::Socket {
                raw: line.try_clone().map_err(|source| ChainError::Os {
                    call: "dup",
                    source,
                })?,
                way: SkMsg::new(me, board, line),
            },
            Carrier::Ring { .. } | Carrier::Poll => {
                let mut edges = Edges::new(me, board);
                let bell = Some(Bell::from(line));
                edges
                    .outbox
                    .open(board, 0, Instance::GATEWAY, gateway, me.0, bell)?;
                edges
                    .inbox
                    .open(board, 0, Instance::GATEWAY, gateway, me.0)?;
                return Ok(Self::Boards(edges));
            }
        };
        way.open((me, board), Instance::GATEWAY, gateway, (true, true))?;
        Ok(way)
    }

    /// Opens the edges between it and a peer: from there, and to it.
    pub(super) fn open(
        &mut self,
        (me, board): (Instance, &Board),
        peer: Instance,
        seen: &PeerBoard,
        (sends, receives): (bool, bool),
    ) -> Result<(), ChainError> {
        let number = peer.0;
        match self {
            Self::Boards(edges) => {
                if sends {
                    edges.inbox.open(board, number, peer, seen, me.0)?;
                }
                if receives {
                    edges.outbox.open(board, number, peer, seen, me.0, None)?;
                }
            }
            Self::Socket { way, .. } => {
                if sends {
                    way.open_input(board, number, peer)?;
                }
                if receives {
                    way.open_output(board, number, peer, seen, me.0)?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn send(&mut self, descriptor: &Descriptor) -> Result<(), SendError> {
        match self {
            Self::Boards(edges) => edges.outbox.send(descriptor),
            Self::Socket { way, .. } => way.send(descriptor),
        }
    }

    /// Sends to an instance that it has no edge to.
    pub(super) fn send_to_stranger(
        &mut self,
        (me, board): (Instance, &Board),
        descriptor: &Descriptor,
    ) -> Result<(), super::Anything> {
        match self {
            Self::Boards(edges) => {
                // The other end of the edge, as if it had it.
                let theirs = Board::create(board.shape())?;
                let seen = PeerBoard::attach(theirs.for_peer()?, board.shape())?;
                let to = descriptor.target;
                edges.outbox.open(board, to.0, to, &seen, me.0, None)?;
                edges.outbox.send(descriptor)?;
                edges.outbox.close(to.0);
            }
            Self::Socket { raw, .. } => {
                rustix::net::send(raw, &descriptor.to_bytes()?, SendFlags::NOSIGNAL)?;
            }
        }
        Ok(())
    }

    /// What has come; nothing, too, where a peer has ended or broken something.
    pub(super) fn try_recv(&mut self) -> Result<Option<Arrival>, RecvError> {
        let received = match self {
            Self::Boards(edges) => edges.inbox.try_recv(),
            Self::Socket { way, .. } => way.try_recv(),
        };
        match received {
            Err(RecvError::Gone(peer)) if peer != Instance::GATEWAY => Ok(None),
            Err(RecvError::Refused { .. } | RecvError::Broken { .. }) => Ok(None),
            received => received,
        }
    }
}
