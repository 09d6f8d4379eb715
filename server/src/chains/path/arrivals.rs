//! What comes back to the gateway: answers, errors, and requests that pass it on their way. Every descriptor is checked against
//! the request that it claims to be of; what fails is counted and changes nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hearth_chain::sk_msg::Heard;
use hearth_chain::{Arrival, Block, Descriptor, Instance, Kind, Member, RecvError};
use tokio_util::sync::CancellationToken;

use super::Path;
use super::pending::Came;

/// Interval between looks for requests that nobody waits for.
const SWEEP: Duration = Duration::from_millis(500);
/// How long after its deadline an instance may keep a request that it does not say it works on. Then it is ended: what it keeps is
/// a block of its chain's pool.
const GRACE: Duration = Duration::from_secs(5);

impl Path {
    /// Receives until `ending`.
    pub(in crate::chains) fn run(self: Arc<Self>, ending: CancellationToken) {
        let path = self.clone();
        let until = ending.clone();
        tokio::spawn(async move {
            tokio::select! {
                () = until.cancelled() => {}
                ended = path.receive() => {
                    if let Err(error) = ended {
                        tracing::error!(chain = path.spec.name, %error, "a chain's gateway ended");
                    }
                }
            }
        });
        tokio::spawn(async move {
            let tick = || tokio::time::sleep(SWEEP);
            while ending.run_until_cancelled(tick()).await.is_some() {
                self.sweep(Instant::now());
                self.end_dead_sockets();
            }
        });
    }

    async fn receive(self: &Arc<Self>) -> std::io::Result<()> {
        let mut vain = 0_u32;
        loop {
            vain = match self.take_arrivals() {
                0 => vain.saturating_add(1),
                _ => 0,
            };
            self.carry.sleep(&self.bells, vain).await?;
        }
    }

    /// Takes what has come; how many descriptors.
    pub(super) fn take_arrivals(self: &Arc<Self>) -> usize {
        let mut taken = 0;
        loop {
            let received = self.carry.try_recv();
            match received {
                Ok(None) => return taken,
                Ok(Some(Heard::Denied { from, denied })) => {
                    taken += 1;
                    self.deny(from, &denied);
                }
                Ok(Some(Heard::Arrival(arrival))) => {
                    taken += 1;
                    if self.take(arrival).is_none() {
                        self.count_refused(arrival.from);
                    }
                }
                // Its end is noticed by its process, and brings all else along. But a connection can be closed before.
                Err(RecvError::Gone(from)) => {
                    if let Some(seat) = self.seat_of(from) {
                        seat.fail("it closed its connection to the gateway");
                    }
                }
                Err(RecvError::Broken { from, violation }) => {
                    self.count_refused(from);
                    tracing::warn!(chain = self.spec.name, %violation, "an instance of a chain broke its ring or connection, and is ended");
                    if let Some(seat) = self.seat_of(from) {
                        seat.fail("it broke its ring or connection to the gateway");
                    }
                }
                Err(RecvError::Refused { from, .. }) => self.count_refused(from),
                // Of a wait, which this is not.
                Err(_) => return taken,
            }
        }
    }

    /// Does what a descriptor says; nothing if it must not say so.
    fn take(self: &Arc<Self>, arrival: Arrival) -> Option<()> {
        let Arrival { from, descriptor } = arrival;
        let member = self.member_of(from);
        let is_allowed = descriptor.table == self.table
            && self.plan.allows(member, Member::GATEWAY, descriptor.kind);
        if descriptor.kind == Kind::Return {
            return is_allowed.then(|| self.take_back(from, &descriptor))?;
        }
        let is_known = self.pending.with(descriptor.request, |entry| {
            entry.block == Block::of(&descriptor) && entry.route == descriptor.route
        });
        if !is_allowed || is_known != Some(true) || self.pool.check(&descriptor, from).is_err() {
            return None;
        }
        match descriptor.kind {
            Kind::Failure => {
                let member = self.name(member).to_string();
                let entry = self.pending.remove(descriptor.request)?;
                let len = descriptor.len;
                entry.end(self, Came::Failure { member, len });
                Some(())
            }
            Kind::Pass => self.pass(descriptor),
            Kind::End => self.answer(&descriptor),
            Kind::Call | Kind::Reply | Kind::Grant | Kind::Return => None,
        }
    }

    fn pass(self: &Arc<Self>, descriptor: Descriptor) -> Option<()> {
        let Descriptor {
            table, route, hop, ..
        } = descriptor;
        // The last of 256 hops cannot be counted beyond.
        let is_last = hop == u8::MAX;
        match self.routes.hop(table, route, hop).ok()? {
            Some(Member::GATEWAY) => {
                let onward = Descriptor {
                    hop: hop.checked_add(1)?,
                    ..descriptor
                };
                // Its place may have to be waited for, and nothing else should.
                let next = self.routes.hop(table, route, onward.hop).ok()??;
                if !self.send_to(next, onward) {
                    let path = self.clone();
                    tokio::spawn(async move {
                        let deadline = path.pending.with(onward.request, |entry| entry.deadline);
                        if let Some(deadline) = deadline {
                            let _ = tokio::time::timeout_at(deadline.into(), path.send_on(onward))
                                .await;
                        }
                    });
                }
                Some(())
            }
            Some(_) if !is_last => None,
            Some(_) | None => self.answer(&descriptor),
        }
    }

    fn answer(&self, descriptor: &Descriptor) -> Option<()> {
        let entry = self.pending.remove(descriptor.request)?;
        entry.end(self, Came::Answer(descriptor.len));
        Some(())
    }

    /// Ends the instance that a request hangs in, if it says that it works on it; the name of the member that has it.
    pub(super) fn end_if_hung(&self, request: u32) -> Option<(usize, String)> {
        let block = self.pending.with(request, |entry| entry.block)?;
        let note = self.pool.noted(block).ok()?;
        let holder = note.holder;
        if holder == Instance::GATEWAY {
            return None;
        }
        if let Some(seat) = self.seat_of(holder)
            && seat.seen.current() == request
        {
            seat.hung.cancel();
        }
        let member = self.name(self.member_of(holder));
        Some((note.hop.into(), member.to_string()))
    }

    /// Looks after the requests that nobody waits for: their blocks come back with their descriptors, or with the end of the
    /// instance that has them.
    fn sweep(&self, now: Instant) {
        let late = self.pending.find(|(request, entry)| {
            (entry.is_given_up() && entry.deadline <= now).then_some((
                *request,
                entry.block,
                entry.deadline + GRACE <= now,
            ))
        });
        for (request, block, is_overdue) in late {
            let Ok(note) = self.pool.noted(block) else {
                continue;
            };
            match self.seat_of(note.holder) {
                Some(seat) if is_overdue || seat.seen.current() == request => seat.hung.cancel(),
                Some(_) => {}
                // It was never sent, or its holder has ended.
                None => {
                    if let Some(entry) = self.pending.remove(request) {
                        entry.end(
                            self,
                            Came::Ended {
                                member: String::new(),
                                reason: String::new(),
                            },
                        );
                    }
                }
            }
        }
    }
}
