//! The instances that the gateway sends to and hears of.

mod faults;

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use hearth_chain::join::Join;
use hearth_chain::routes::Seat as Entry;
use hearth_chain::routes::choice::Candidate;
use hearth_chain::{Board, ChainError, Descriptor, Instance, Member, Note, PeerBoard, SendError};
use tokio_util::sync::CancellationToken;

use self::faults::Fault;
pub(super) use self::faults::Wrong;
use super::pending::Came;
use super::{Connection, NUMBERS, Numbers, Path};
use crate::ingress::SproxyError;
use crate::model::InvocationId;
use crate::model::chain::PayloadForm;
use crate::sandbox::SandboxError;

/// Requests that an instance handles at a time.
const CAPACITY: u32 = 1;

/// An instance as the gateway knows it.
pub(in crate::chains) struct Seat {
    /// Its number, which no other instance of this version has or will have.
    pub(in crate::chains) instance: Instance,
    /// The member that it is an instance of.
    pub(in crate::chains) member: Member,
    /// Its board, as the server has made it.
    pub(in crate::chains) board: Board,
    /// Its board, as its peers see it.
    pub(in crate::chains) seen: PeerBoard,
    /// Its bell, where it has one.
    bell: Option<OwnedFd>,
    /// Ends it.
    pub(in crate::chains) hung: CancellationToken,
    /// The rule that it has broken, if it has.
    fault: OnceLock<Fault>,
    /// How often it has sent what belongs to no request since the last sweep.
    strays: AtomicU32,
    /// What it sent and must not, by the kernel's word.
    pub(super) denied: AtomicU64,
}

/// What an instance is given when it joins, in the order of the message's descriptors.
pub(in crate::chains) struct Papers {
    pub(in crate::chains) message: Join,
    pub(in crate::chains) descriptors: [OwnedFd; hearth_chain::join::JOIN_DESCRIPTORS],
}

/// Why there is no room for another instance.
#[derive(Debug, thiserror::Error)]
pub(in crate::chains) enum SeatError {
    /// All numbers have been given out.
    #[error("this version has started {NUMBERS} instances, and has no number for another")]
    NoNumber,
    /// The memory for it.
    #[error(transparent)]
    Chain(#[from] ChainError),
    /// The system.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The kernel's maps.
    #[error(transparent)]
    Sproxy(#[from] SproxyError),
    /// The host process.
    #[error("no connection for it: {0}")]
    Host(#[from] SandboxError),
    /// A bug.
    #[error("it has no connection")]
    NoConnection,
}

impl Path {
    /// Opens the gateway's edges to and from a new instance, which is not sent anything before [`Self::seat`].
    pub(in crate::chains) fn receive_instance(
        &self,
        numbers: &Numbers,
        member: Member,
        connection: Option<Connection>,
    ) -> Result<(Arc<Seat>, Papers), SeatError> {
        let instance = numbers.take()?;
        let board = Board::create(self.shape)?;
        let seen = PeerBoard::attach(board.for_peer()?, self.shape)?;
        let files = self.pool.files()?;
        let papers = |line| -> Result<Papers, SeatError> {
            Ok(Papers {
                message: Join::Chain {
                    instance,
                    member,
                    carrier: self.carrier,
                    edges: NUMBERS,
                    slots: self.shape.slots(),
                    in_place: self.spec.member_payload(member.0) == PayloadForm::Block,
                },
                descriptors: [
                    files.blocks,
                    files.ledger,
                    self.routes.for_members()?,
                    board.for_owner()?,
                    self.board.for_peer()?,
                    line,
                ],
            })
        };
        let (board_here, who) = (&self.board, (instance, member));
        let close = || {
            self.carry.cut(instance);
            self.carry.close(instance);
        };
        let opened = self
            .carry
            .open(board_here, who, &seen, &self.bells, connection);
        let (line, bell) = opened.inspect_err(|_| close())?;
        let papers = papers(line).inspect_err(|_| close())?;
        self.member_of[usize::from(instance.0)].store(member.0, Ordering::Relaxed);
        let seat = Seat {
            instance,
            member,
            board,
            seen,
            bell,
            hung: CancellationToken::new(),
            fault: OnceLock::new(),
            strays: AtomicU32::new(0),
            denied: AtomicU64::new(0),
        };
        Ok((Arc::new(seat), papers))
    }

    /// Lets requests go to an instance.
    pub(in crate::chains) fn seat(&self, seat: &Arc<Seat>) {
        self.routes.seat(
            seat.member,
            Entry {
                instance: seat.instance,
                epoch: 0,
                capacity: 1,
            },
        );
        self.seats.write().push(seat.clone());
        self.grant(seat);
        self.news.notify_waiters();
    }

    /// An instance has ended: its peers learn it, what it sent before is received, and the requests that it had in hand fail.
    pub(in crate::chains) fn unseat(self: &Arc<Self>, seat: &Seat, reason: &str) {
        self.routes.unseat(seat.member, seat.instance);
        self.seats
            .write()
            .retain(|other| other.instance != seat.instance);
        self.take_what_was_sent();
        self.end_requests(seat, reason, |request, note| {
            seat.has_passed_in_vain(request, note)
        });
        seat.board.end();
        self.keep_past(seat);
        self.carry.cut(seat.instance);
        self.take_what_was_sent();
        self.carry.close(seat.instance);
        if let Some(bell) = &seat.bell {
            self.bells.remove(bell.as_fd());
        }
        self.take_from_ended(seat.instance);
        self.carry.tell_end(seat.instance);
        self.end_requests(seat, reason, |_, note| note.holder == seat.instance);
        self.reclaim_grants(seat.instance);
    }

    /// Takes from each peer in turn: then what one of them has sent is among it, however much the others send.
    fn take_what_was_sent(self: &Arc<Self>) {
        let peers = self.seats.read().len() + 1;
        self.take_arrivals(self.shape.slots() as usize * peers);
    }

    /// Ends the requests that fail with an instance.
    fn end_requests(&self, seat: &Seat, reason: &str, fails: impl Fn(u32, Note) -> bool) {
        let member = self.name(seat.member);
        for (_, entry) in self.pending.remove_if(|request, entry| {
            let held = self.holding(entry.block);
            held.is_ok_and(|note| fails(request, note))
        }) {
            let member = member.to_string();
            let came = match seat.fault.get() {
                Some(fault) => Came::Broken {
                    member,
                    reason: fault.rule.clone(),
                },
                None => Came::Ended {
                    member,
                    reason: reason.to_owned(),
                },
            };
            entry.end(self, came);
        }
    }

    /// The seat of an instance that takes requests.
    pub(super) fn seat_of(&self, instance: Instance) -> Option<Arc<Seat>> {
        let seats = self.seats.read();
        seats.iter().find(|seat| seat.instance == instance).cloned()
    }

    /// The invocation that an instance says it works on, or has worked on last.
    pub(in crate::chains) fn works_on(&self, instance: Instance) -> Option<InvocationId> {
        let request = self.seat_of(instance)?.seen.begun();
        self.recent.id(request)
    }

    /// The member of an instance, of one that has ended too.
    pub(super) fn member_of(&self, instance: Instance) -> Member {
        let member = self.member_of.get(usize::from(instance.0));
        Member(member.map_or(0, |member| member.load(Ordering::Relaxed)))
    }

    /// Sends a descriptor to the instance of a member that has the least to do; false if none has room.
    pub(super) fn send_to(&self, member: Member, mut descriptor: Descriptor) -> bool {
        let mut sending = self.carry.sending();
        let mut candidates: Vec<Candidate> = self
            .seats
            .read()
            .iter()
            // What one gets that is about to be ended is lost with it.
            .filter(|seat| seat.member == member && !seat.hung.is_cancelled())
            .filter_map(|seat| {
                let on_the_way = sending.backlog(seat.instance)?;
                Some(Candidate {
                    instance: seat.instance,
                    capacity: CAPACITY,
                    in_flight: seat.seen.load().saturating_add(on_the_way),
                })
            })
            .collect();
        let mut chooser = self.chooser.lock();
        chooser.spread(self.crowd.is_crowded());
        while let Some(chosen) = chooser.choose(&candidates) {
            descriptor.target = chosen.instance;
            self.note(&descriptor);
            match sending.send(&descriptor) {
                // What could not be woken looks at its ring all the same, if late.
                Ok(()) | Err(SendError::Os { .. }) => return true,
                Err(_) => candidates.retain(|other| other.instance != chosen.instance),
            }
        }
        false
    }
}
