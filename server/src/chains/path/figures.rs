//! A chain's figures.

use std::sync::atomic::Ordering;

use hearth_chain::Member;
use hearth_chain::join::Carrier;

use super::Path;
use crate::chains::{EdgeStatus, PoolStatus, Status};

impl Path {
    /// Its own figures: those of the members are added by who has the instances.
    pub(in crate::chains) fn status(&self, version: u32) -> Status {
        Status {
            version,
            transport: match self.carrier {
                Carrier::Ring { .. } => "ring",
                Carrier::Poll => "poll",
            },
            pool: PoolStatus {
                blocks: self.pool.shape().blocks(),
                in_use: self.pool.in_use(),
                block_bytes: self.pool.shape().block_bytes(),
                huge_pages: self.pool.is_huge(),
            },
            requests: self.requests.load(Ordering::Relaxed).into(),
            members: Vec::new(),
            edges: self.edges(),
        }
    }

    /// What went along each edge, by the live instances' own counts.
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
            let refused = match to {
                Member::GATEWAY => self
                    .refused
                    .get(usize::from(from.0))
                    .map_or(0, |refused| refused.load(Ordering::Relaxed)),
                // An instance does not tell its senders apart: what it refused is shown at the edges from other members.
                _ => 0,
            };
            EdgeStatus {
                from: from.0,
                to: to.0,
                sent,
                refused,
            }
        })
        .collect()
    }
}
