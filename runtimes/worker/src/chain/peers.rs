//! The other instances of the chain, and the way to them.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use hearth_abi::Bell;
use hearth_chain::join::Carrier;
use hearth_chain::routes::choice::{Candidate, Chooser};
use hearth_chain::{
    Arrival, Board, ChainError, Descriptor, Edges, Instance, Looks, Member, PeerBoard, Poll,
    RecvError, Ring, SendError, SkMsg, Transport,
};

/// Requests that an instance handles at a time.
const CAPACITY: u32 = 1;

/// Another instance.
#[derive(Debug)]
struct Peer {
    instance: Instance,
    member: Member,
    board: PeerBoard,
    /// Whether this instance may send to it.
    receives: bool,
}

#[derive(Debug)]
enum Way {
    Ring(Ring),
    Poll(Poll),
    SkMsg(SkMsg),
}

/// See the module.
#[derive(Debug)]
pub(super) struct Peers {
    peers: Vec<Peer>,
    way: Way,
}

impl Peers {
    /// Of an instance that has none but the gateway, which is at the other end of `line`: a bell, or a connection.
    pub(super) fn new(
        own: (Instance, &Board),
        carrier: Carrier,
        gateway: PeerBoard,
        line: OwnedFd,
    ) -> Result<Self, ChainError> {
        let (me, board) = own;
        let edges = || Edges::new(me, board);
        let (way, bell) = match carrier {
            Carrier::Ring { busy_poll_us } => {
                let busy_poll = Duration::from_micros(busy_poll_us.into());
                let ring = Ring::new(edges(), busy_poll).in_turn(&gateway);
                (Way::Ring(ring), Some(line))
            }
            Carrier::Poll => (Way::Poll(Poll { edges: edges() }), Some(line)),
            Carrier::SkMsg => (Way::SkMsg(SkMsg::new(me, board, line)), None),
        };
        let mut peers = Self {
            peers: Vec::new(),
            way,
        };
        let bell = Some(bell.map(Bell::from));
        peers.connect(own, (Instance::GATEWAY, &gateway), true, bell)?;
        peers.add(Instance::GATEWAY, Member::GATEWAY, gateway, true);
        Ok(peers)
    }

    /// Notes a peer whose edges are open.
    pub(super) fn add(
        &mut self,
        instance: Instance,
        member: Member,
        board: PeerBoard,
        receives: bool,
    ) {
        self.peers.push(Peer {
            instance,
            member,
            board,
            receives,
        });
    }

    /// Opens the edges between this instance, whose board it is, and a peer.
    pub(super) fn connect(
        &mut self,
        own: (Instance, &Board),
        peer: (Instance, &PeerBoard),
        sends: bool,
        receives: Option<Option<Bell>>,
    ) -> Result<(), ChainError> {
        let (me, board) = own;
        let (instance, seen) = peer;
        let edges = match &mut self.way {
            Way::Ring(ring) => &mut ring.edges,
            Way::Poll(poll) => &mut poll.edges,
            Way::SkMsg(way) => {
                if sends {
                    way.open_input(board, instance.0, instance)?;
                }
                if receives.is_some() {
                    way.open_output(board, instance.0, instance, seen, me.0)?;
                }
                return Ok(());
            }
        };
        if sends {
            let input = instance.0;
            edges.inbox.open(board, input, instance, seen, me.0)?;
        }
        if let Some(bell) = receives {
            let output = instance.0;
            edges
                .outbox
                .open(board, output, instance, seen, me.0, bell)?;
        }
        Ok(())
    }

    /// Whether nobody but the senders' notes says who has a block in hand: else the kernel does.
    pub(super) fn goes_by_notes(&self) -> bool {
        !matches!(self.way, Way::SkMsg(_))
    }

    /// One that has ended is chosen no more.
    pub(super) fn forget(&mut self, instance: Instance) {
        self.peers.retain(|peer| peer.instance != instance);
    }

    /// The member that a peer is an instance of.
    pub(super) fn member(&self, instance: Instance) -> Option<Member> {
        let peer = self.peers.iter().find(|peer| peer.instance == instance)?;
        Some(peer.member)
    }

    /// The member's instance that has the least to do.
    pub(super) fn choose(&mut self, member: Member, chooser: &mut Chooser) -> Option<Instance> {
        let mut all = self
            .peers
            .iter()
            .filter(|peer| peer.member == member && peer.receives);
        // What there is no choice about needs no look at words that another processor is writing.
        if let (Some(only), None) = (all.next(), all.next()) {
            return Some(only.instance);
        }
        let way = &mut self.way;
        let mut backlog = |to| match way {
            Way::Ring(ring) => ring.edges.outbox.backlog(to),
            Way::Poll(poll) => poll.edges.outbox.backlog(to),
            Way::SkMsg(way) => way.backlog(to),
        };
        let candidates: Vec<Candidate> = self
            .peers
            .iter()
            .filter(|peer| peer.member == member && peer.receives)
            .filter_map(|peer| {
                let on_the_way = backlog(peer.instance)?;
                Some(Candidate {
                    instance: peer.instance,
                    capacity: CAPACITY,
                    in_flight: peer.board.load().saturating_add(on_the_way),
                })
            })
            .collect();
        chooser.choose(&candidates).map(|chosen| chosen.instance)
    }

    /// Which instances may look for what comes next before they sleep.
    pub(super) fn looks(&mut self, looks: Looks) {
        if let Way::Ring(ring) = &mut self.way {
            ring.looks(looks);
        }
    }

    /// Whether instances do best on one processor now.
    pub(super) fn together(&mut self, together: bool) {
        if let Way::Ring(ring) = &mut self.way {
            ring.together(together);
        }
    }

    pub(super) fn send(&mut self, descriptor: &Descriptor) -> Result<(), SendError> {
        match &mut self.way {
            Way::Ring(ring) => ring.send(descriptor),
            Way::Poll(poll) => poll.send(descriptor),
            Way::SkMsg(way) => way.send(descriptor),
        }
    }

    pub(super) fn recv(&mut self, deadline: Instant) -> Result<Arrival, RecvError> {
        match &mut self.way {
            Way::Ring(ring) => ring.recv(deadline),
            Way::Poll(poll) => poll.recv(deadline),
            Way::SkMsg(way) => way.recv(deadline),
        }
    }
}
