//! What comes back to the gateway: answers, errors, and requests that pass it on their way. Every descriptor is checked against
//! the request that it claims to be of; what fails is counted and changes nothing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hearth_chain::sk_msg::Heard;
use hearth_chain::{Arrival, Block, Descriptor, Instance, Kind, Member, RecvError, Refused};
use tokio_util::sync::CancellationToken;

use super::Path;
use super::pending::Came;
use super::seats::Wrong;

/// Descriptors that are taken before other tasks of the server have a turn.
const AT_ONCE: usize = 256;
/// Interval between looks for requests that nobody waits for, and for which an instance's strays are counted.
const SWEEP: Duration = Duration::from_millis(500);
/// How long after its deadline an instance may keep a request that it does not say it works on. Then it is ended: what it keeps is
/// a block of its chain's pool.
const GRACE: Duration = Duration::from_secs(5);
/// Longest time from when a process that dies has closed its connection to when its death is noticed.
const DEATH: Duration = Duration::from_secs(1);

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
                for instance in self.carry.take_broken() {
                    self.end_unless_dead(instance);
                }
            }
        });
    }

    async fn receive(self: &Arc<Self>) -> std::io::Result<()> {
        let mut vain = 0_u32;
        loop {
            vain = match self.take_arrivals(AT_ONCE) {
                0 => vain.saturating_add(1),
                AT_ONCE => {
                    tokio::task::yield_now().await;
                    continue;
                }
                _ => 0,
            };
            self.carry.sleep(&self.bells, vain).await?;
        }
    }

    /// Takes what has come, so many descriptors at most; how many there were.
    pub(super) fn take_arrivals(self: &Arc<Self>, most: usize) -> usize {
        for taken in 0..most {
            // Whoever waits for an answer receives as well, and what an instance sends is taken in its order.
            let _in_order = self.receiving.lock();
            match self.carry.try_recv() {
                Ok(None) => return taken,
                Ok(Some(Heard::Denied { from, denied })) => self.deny(from, &denied),
                Ok(Some(Heard::Arrival(arrival))) => {
                    if let Err(wrong) = self.take(arrival) {
                        self.refuse(arrival.from, wrong, Some(arrival.descriptor.request));
                    }
                }
                // Its end is noticed by its process, and brings all else along. But an instance can also close its connection.
                Err(RecvError::Gone(from)) => self.end_unless_dead(from),
                Err(RecvError::Broken { from, violation }) => {
                    self.refuse(from, Wrong::Rule(format!("its ring: {violation}")), None);
                }
                Err(RecvError::Refused { from, refused }) => {
                    self.refuse(
                        from,
                        Wrong::Rule(format!("its descriptor: {refused}")),
                        None,
                    );
                }
                // Of a wait, which this is not.
                Err(_) => return taken,
            }
        }
        most
    }

    /// Ends an instance whose connection is gone, if its process is not.
    fn end_unless_dead(self: &Arc<Self>, instance: Instance) {
        let path = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(DEATH).await;
            if let Some(seat) = path.seat_of(instance) {
                let fault = "it closed its connection to the gateway".to_owned();
                seat.accuse(&path.spec.name, fault, None);
            }
        });
    }

    /// Does what a descriptor says.
    fn take(self: &Arc<Self>, arrival: Arrival) -> Result<(), Wrong> {
        let rule = |fault: &str| Wrong::Rule(fault.to_owned());
        let Arrival { from, descriptor } = arrival;
        let member = self.member_of(from);
        // What a member gives back unused may have come to it with any table, by another's fault.
        let is_back = descriptor.kind == Kind::Return && descriptor.len == 0;
        if !is_back && descriptor.table != self.table
            || !self.plan.allows(member, Member::GATEWAY, descriptor.kind)
        {
            return Err(rule("it may not send this to the gateway"));
        }
        if descriptor.kind == Kind::Return {
            if is_back && self.take_back(from, &descriptor).is_some() {
                return Ok(());
            }
            if let Some(done) = self.take_of_call(from, &descriptor) {
                return done;
            }
            // A block for calls whose caller has ended, or that was lost and is found twice.
            if is_back && self.pool.owner(Block::of(&descriptor)).is_none() {
                return Err(Wrong::Stray);
            }
        }
        let is_of_request = self.pending.with(descriptor.request, |entry| {
            entry.block == Block::of(&descriptor) && entry.route == descriptor.route
        });
        if !is_of_request.ok_or(Wrong::Stray)? {
            return Err(rule(
                "its descriptor names a block or a route that is not its request's",
            ));
        }
        // With that kind, the length is what a member asks for.
        let len = match descriptor.kind {
            Kind::Return => 0,
            _ => descriptor.len,
        };
        match self.pool.check(&Descriptor { len, ..descriptor }, from) {
            Ok(_) => {}
            // Somebody else has ended the request since.
            Err(Refused::Stale { .. }) => return Err(Wrong::Stray),
            Err(refused) => return Err(Wrong::Rule(format!("its descriptor: {refused}"))),
        }
        match descriptor.kind {
            Kind::Failure => {
                let member = self.name(member).to_string();
                let len = descriptor.len;
                self.end(&descriptor, Came::Failure { member, len })
            }
            Kind::Pass => self.pass(descriptor),
            Kind::End => self.end(&descriptor, Came::Answer(descriptor.len)),
            Kind::Return => self.give_room(from, &descriptor),
            Kind::Call | Kind::Reply | Kind::Grant => {
                Err(rule("it may not send this to the gateway"))
            }
        }
    }

    fn pass(self: &Arc<Self>, descriptor: Descriptor) -> Result<(), Wrong> {
        let no_place = || {
            Wrong::Rule("it passed a request to a place that its route does not have".to_owned())
        };
        let Descriptor {
            table, route, hop, ..
        } = descriptor;
        let place = |hop| self.routes.hop(table, route, hop).map_err(|_| no_place());
        // The last of 256 hops cannot be counted beyond.
        let is_last = hop == u8::MAX;
        match place(hop)? {
            Some(Member::GATEWAY) => {
                let onward = Descriptor {
                    hop: hop.checked_add(1).ok_or_else(no_place)?,
                    ..descriptor
                };
                // Its place may have to be waited for, and nothing else should.
                let Some(next) = place(onward.hop)? else {
                    return self.end(&descriptor, Came::Answer(descriptor.len));
                };
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
                Ok(())
            }
            Some(_) if !is_last => Err(Wrong::Rule(
                "it passed a request to the gateway that another member is next to have".to_owned(),
            )),
            Some(_) | None => self.end(&descriptor, Came::Answer(descriptor.len)),
        }
    }

    fn end(&self, descriptor: &Descriptor, came: Came) -> Result<(), Wrong> {
        let entry = self.pending.remove(descriptor.request);
        entry.ok_or(Wrong::Stray)?.end(self, came);
        Ok(())
    }

    /// Ends the instance that a request hangs in, if it says that it works on it; the name of the member that has it.
    pub(super) fn end_if_hung(&self, request: u32) -> Option<(usize, String)> {
        let block = self.pending.with(request, |entry| entry.block)?;
        let note = self.holding(block).ok()?;
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
    /// instance that has them. And forgets strays.
    fn sweep(&self, now: Instant) {
        for seat in self.seats.read().iter() {
            seat.forget_strays();
        }
        let late = self.pending.find(|(request, entry)| {
            (entry.is_given_up() && entry.deadline <= now).then_some((
                *request,
                entry.block,
                entry.deadline + GRACE <= now,
            ))
        });
        for (request, block, is_overdue) in late {
            let Ok(note) = self.holding(block) else {
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
