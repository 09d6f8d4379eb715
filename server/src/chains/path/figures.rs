//! A chain's figures.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hearth_chain::Member;
use hearth_chain::join::Carrier;
use parking_lot::Mutex;

use super::{Path, Seat};
use crate::chains::{EdgeStatus, InstanceStatus, PoolStatus, Status, Work};

/// What instances did that have ended, by their member's number.
#[derive(Debug)]
pub(super) struct Past(Mutex<Box<[Work]>>);

impl Past {
    /// For so many numbers.
    pub(super) fn new(numbers: usize) -> Self {
        Self(Mutex::new(
            vec![Work::default(); numbers].into_boxed_slice(),
        ))
    }

    fn add(&self, member: Member, work: Work) {
        if let Some(past) = self.0.lock().get_mut(usize::from(member.0)) {
            // What it had in hand somebody else has now, or nobody.
            *past = past.and(Work { in_hand: 0, ..work });
        }
    }

    fn of(&self, member: Member) -> Work {
        let past = self.0.lock();
        past.get(usize::from(member.0)).copied().unwrap_or_default()
    }
}

impl Path {
    /// Its own figures: those of the members are added by who has the instances.
    pub(in crate::chains) fn status(&self, version: u32) -> Status {
        Status {
            version,
            transport: match self.carrier {
                Carrier::Ring { .. } => "ring",
                Carrier::Poll => "poll",
                Carrier::SkMsg => "sk_msg",
            },
            pool: PoolStatus {
                blocks: self.pool.shape().blocks(),
                in_use: self.pool.in_use(),
                block_bytes: self.pool.shape().block_bytes(),
                payload_bytes: self.pool.shape().payload_bytes(),
                huge_pages: self.pool.is_huge(),
            },
            requests: self.requests.load(Ordering::Relaxed).into(),
            members: Vec::new(),
            edges: self.edges(),
            instances: self.instances(),
            refusals: self.refusals.all(),
        }
    }

    /// What the instances do, by the kernel's count.
    fn instances(&self) -> Vec<InstanceStatus> {
        let seats = self.seats.read();
        let of = |seat: &Arc<Seat>| {
            Some(InstanceStatus {
                member: seat.member.0,
                instance: seat.instance.0,
                work: self.work(seat)?,
            })
        };
        seats.iter().filter_map(of).collect()
    }

    fn work(&self, seat: &Seat) -> Option<Work> {
        let seated = self.carry.sockets()?.place.seated(seat.instance.0)?;
        Some(Work {
            received: seated.received,
            handled: seated.handled,
            busy_ns: seated.busy,
            in_hand: seated.received.saturating_sub(seated.handled),
            refused: seated.refused.iter().sum(),
        })
    }

    /// What a member's instances did, those that have ended included.
    pub(in crate::chains) fn work_of(&self, member: Member) -> Option<Work> {
        self.carry.sockets()?;
        let now = self.instances().into_iter();
        let now = now.filter(|one| one.member == member.0);
        Some(now.fold(self.past.of(member), |all, one| all.and(one.work)))
    }

    /// Remembers what an instance did that has ended.
    pub(super) fn keep_past(&self, seat: &Seat) {
        if let Some(work) = self.work(seat) {
            self.past.add(seat.member, work);
        }
    }

    fn refused_by_gateway(&self, from: Member, to: Member) -> u64 {
        match to {
            Member::GATEWAY => self
                .refused
                .get(usize::from(from.0))
                .map_or(0, |refused| refused.load(Ordering::Relaxed)),
            // An instance does not tell its senders apart.
            _ => 0,
        }
    }

    /// What went along each edge, by the live instances' own counts, or the kernel's.
    fn edges(&self) -> Vec<EdgeStatus> {
        let members = || (0..=self.plan.members()).map(Member);
        let seats = self.seats.read();
        let of = |member: Member| seats.iter().filter(move |seat| seat.member == member);
        let pairs = members().flat_map(|from| members().map(move |to| (from, to)));
        let used = pairs.filter(|&(from, to)| {
            use hearth_chain::Kind::{Call, Pass};
            self.plan.allows(from, to, Pass) || self.plan.allows(from, to, Call)
        });
        used.map(|(from, to)| {
            if let Some(sockets) = self.carry.sockets() {
                let counted = sockets.place.edge(from.0, to.0).unwrap_or_default();
                return EdgeStatus {
                    from: from.0,
                    to: to.0,
                    sent: counted.sent,
                    refused: counted.refused + self.refused_by_gateway(from, to),
                };
            }
            let sent: u64 = if from == Member::GATEWAY {
                of(to)
                    .filter_map(|seat| self.board.sent(seat.instance.0).ok())
                    .map(u64::from)
                    .sum()
            } else {
                let outputs = |board: &hearth_chain::Board| -> u64 {
                    let numbers: Vec<u16> = match to {
                        Member::GATEWAY => vec![0],
                        _ => of(to).map(|seat| seat.instance.0).collect(),
                    };
                    numbers
                        .into_iter()
                        .filter_map(|number| board.sent(number).ok())
                        .map(u64::from)
                        .sum()
                };
                of(from).map(|seat| outputs(&seat.board)).sum()
            };
            EdgeStatus {
                from: from.0,
                to: to.0,
                sent,
                refused: self.refused_by_gateway(from, to),
            }
        })
        .collect()
    }
}
