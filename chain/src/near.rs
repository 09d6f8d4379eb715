//! Where instances run while their chain has one request under way: one after the other, on one processor.
//!
//! The kernel wakes a thread where it ran last, if that processor is idle, or on another idle one (`select_idle_sibling()` in
//! `kernel/sched/fair.c`). While one request is under way all processors but its own are, so each hop wakes one that has halted: tens of
//! microseconds on a virtual machine, where a switch on the processor that both use takes two. A wake-up that says that the sender
//! is about to sleep, as pipes' and sockets' do, changes nothing where the processors share a cache.
//!
//! So an instance that waits for its peers goes, before it sleeps, where it was woken from last: when the request is already with the next
//! one, and nobody waits for it. Who waits for the gateway is placed by the kernel, and the others come there.
//!
//! It does so after it was woken from elsewhere time and again: often enough the kernel keeps instances together by itself.
//!
//! - Where instances look for a while before they sleep, it is a visit: the kernel may move it at once. Binding it for longer
//!   gained nothing there, because whoever looks may have the processor.
//! - Where nobody ever looks, for a number of sleeps an instance allows the kernel that processor alone as long as it sleeps; a route's first
//!   member that waits for the same request again, the one where it is. If that processor has other work, it would wait for it beside an
//!   idle one: after a late wake-up it sleeps as usual for a while.
//!
//! Either way a handler finds the affinity that it had set.

use core::time::Duration;
use std::time::Instant;

use hearth_abi::monotonic_ns;
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

use crate::descriptor::{Descriptor, Kind};
use crate::id::Instance;

/// What a wake-up from elsewhere counts, against 1 for one from here, and the sum from which instances are apart: going costs a few system
/// calls, which now and then a wake-up from elsewhere does not pay for.
const ELSEWHERE: u32 = 4;
const APART: u32 = 8;
/// Sleeps for which an instance stays then, if it stays at all.
const STAYS: u32 = 64;
/// A wake-up that takes longer shows that the processor had other work.
const LATE: Duration = Duration::from_micros(200);
/// Most sleeps as usual after a late wake-up.
const MAX_SKIPPED: u32 = 1023;

/// When and where an instance woke a peer last: what it says on its board.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WakeUp {
    processor: u32,
    /// µs of the monotonic clock, modulo 2^20.
    at_us: u32,
}

const PROCESSOR_BITS: u32 = 12;
const AT_BITS: u32 = u32::BITS - PROCESSOR_BITS;

impl WakeUp {
    /// Here and now.
    pub(crate) fn now() -> Self {
        Self {
            // Numbers that do not fit say another processor, which is a slower one.
            processor: sched_getcpu() as u32 & ((1 << PROCESSOR_BITS) - 1),
            at_us: (monotonic_ns() / 1000) as u32 & ((1 << AT_BITS) - 1),
        }
    }

    pub(crate) const fn pack(self) -> u32 {
        self.processor | self.at_us << PROCESSOR_BITS
    }

    pub(crate) const fn unpack(word: u32) -> Self {
        Self {
            processor: word & ((1 << PROCESSOR_BITS) - 1),
            at_us: word >> PROCESSOR_BITS,
        }
    }

    /// From one to the other.
    fn until(self, later: Self) -> Duration {
        let passed = later.at_us.wrapping_sub(self.at_us) & ((1 << AT_BITS) - 1);
        Duration::from_micros(passed.into())
    }
}

/// An instance's part in it.
#[derive(Debug)]
pub(crate) struct Near {
    /// Whether it stays where it goes for as long as it sleeps.
    binds: bool,
    is_wanted: bool,
    /// The request that came from the gateway, if the last one did.
    first_of: Option<u32>,
    /// What has come from peers since, and what had in the request before.
    had: u32,
    expects: u32,
    /// From where it was woken last.
    there: usize,
    apart: u32,
    /// How often it goes there before it asks itself again.
    goes: u32,
    /// Sleeps as usual after the last late wake-up, and how many of them are left.
    skipped_last: u32,
    skip: u32,
}

impl Near {
    /// Of an instance that looks before it sleeps, or does not.
    pub(crate) const fn new(looks: bool) -> Self {
        Self {
            binds: !looks,
            is_wanted: false,
            first_of: None,
            had: 0,
            expects: 0,
            there: 0,
            apart: 0,
            goes: 0,
            skipped_last: 0,
            skip: 0,
        }
    }

    /// Whether the chain has one request under way, and nobody keeps a processor to look.
    pub(crate) fn want(&mut self, is_wanted: bool) {
        self.is_wanted = is_wanted;
    }

    /// Something has come.
    #[inline]
    pub(crate) fn received(&mut self, from: Instance, descriptor: &Descriptor) {
        if from != Instance::GATEWAY {
            self.had = self.had.saturating_add(1);
            if descriptor.kind == Kind::Pass && self.first_of != Some(descriptor.request) {
                self.first_of = None;
            }
        } else if descriptor.kind == Kind::Pass {
            self.first_of = Some(descriptor.request);
            self.expects = self.had;
            self.had = 0;
        }
    }

    /// Something of a peer whose last wake-up of somebody was this has come, after a sleep so long.
    pub(crate) fn woken(&mut self, by: WakeUp, now: WakeUp, slept: Duration, bound: bool) {
        let took = by.until(now);
        if took > slept {
            // It came before the sleep: that wake-up was another one.
            return;
        }
        self.there = by.processor as usize;
        self.apart = match by.processor == now.processor {
            true => self.apart.saturating_sub(1),
            false => self.apart + ELSEWHERE,
        };
        if self.apart >= APART {
            self.apart = 0;
            self.goes = if self.binds { STAYS } else { 1 };
        }
        if bound && took > LATE {
            self.skipped_last = (self.skipped_last * 2 + 1).min(MAX_SKIPPED);
            self.skip = self.skipped_last;
        } else if bound {
            self.skipped_last = 0;
        }
    }

    /// Where to sleep, if not as usual.
    fn place(&mut self, here: usize) -> Option<usize> {
        if !self.is_wanted {
            return None;
        }
        if self.skip > 0 {
            self.skip -= 1;
            return None;
        }
        let place = match self.first_of {
            Some(_) if self.binds && self.had < self.expects => here,
            Some(_) => return None,
            None => self.there,
        };
        self.goes = self.goes.checked_sub(1)?;
        Some(place)
    }

    /// Goes to where it is best to sleep.
    pub(crate) fn stay(&mut self) -> Stay {
        let place = self.place(sched_getcpu());
        let mut stay = Stay {
            before: place.and_then(go),
            since: Instant::now(),
        };
        if !self.binds {
            stay.unbind();
        }
        stay
    }
}

/// A sleep. As long as this lives, the thread stays where it is, if that is best.
#[derive(Debug)]
pub(crate) struct Stay {
    before: Option<CpuSet>,
    since: Instant,
}

impl Stay {
    /// Whether it does.
    pub(crate) fn is_bound(&self) -> bool {
        self.before.is_some()
    }

    fn unbind(&mut self) {
        if let Some(before) = self.before.take() {
            // It was allowed before. Where a cpuset has changed meanwhile, the kernel leaves what that allows.
            let _ = sched_setaffinity(None, &before);
        }
    }

    /// For how long by now.
    pub(crate) fn elapsed(&self) -> Duration {
        self.since.elapsed()
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        self.unbind();
    }
}

/// Binds this thread to a processor that it may run on; what it may run on otherwise.
fn go(processor: usize) -> Option<CpuSet> {
    let before = sched_getaffinity(None).ok()?;
    // A peer says what it likes, and sets have room for so many.
    if processor >= CpuSet::MAX_CPU || !before.is_set(processor) || before.count() == 1 {
        return None;
    }
    let mut only = CpuSet::new();
    only.set(processor);
    sched_setaffinity(None, &only).ok()?;
    Some(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: Instance = Instance(2);
    const LONG: Duration = Duration::from_secs(60);
    const GATEWAY: Instance = Instance::GATEWAY;

    fn a(kind: Kind, request: u32) -> Descriptor {
        Descriptor {
            request,
            ..Descriptor::for_test(Instance(1), kind)
        }
    }

    const fn wake_up(processor: u32, at_us: u32) -> WakeUp {
        WakeUp { processor, at_us }
    }

    fn wanted(looks: bool) -> Near {
        let mut near = Near::new(looks);
        near.want(true);
        near
    }

    #[test]
    fn a_wake_up_survives_its_word() {
        for one in [wake_up(0, 0), wake_up(4095, (1 << 20) - 1), wake_up(3, 77)] {
            assert_eq!(WakeUp::unpack(one.pack()), one);
        }
        let passed = wake_up(0, (1 << 20) - 5).until(wake_up(0, 10));
        assert_eq!(passed, Duration::from_micros(15));
    }

    /// Woken so often by one on `there`, on processor 0.
    fn woken(near: &mut Near, there: u32, times: u32) {
        for _ in 0..times {
            near.woken(wake_up(there, 0), wake_up(0, 9), LONG, false);
        }
    }

    /// The places where it sleeps from now on, on processor `here`.
    fn places(near: &mut Near, here: usize) -> Vec<usize> {
        (0..200).map_while(|_| near.place(here)).collect()
    }

    #[test]
    fn who_waits_for_peers_goes_where_it_was_woken_from_time_and_again() {
        for (looks, times) in [(true, 1), (false, STAYS as usize)] {
            let mut near = wanted(looks);
            woken(&mut near, 3, 1);
            woken(&mut near, 0, 4);
            woken(&mut near, 3, 1);
            assert_eq!(places(&mut near, 0), [], "once in a while");
            woken(&mut near, 3, 1);
            assert_eq!(places(&mut near, 0), vec![3; times]);
            woken(&mut near, 3, 2);
            near.want(false);
            assert_eq!(places(&mut near, 0), []);
        }
    }

    #[test]
    fn what_came_before_the_sleep_says_nothing() {
        let mut near = wanted(false);
        for _ in 0..5 {
            near.woken(
                wake_up(3, 0),
                wake_up(0, 500),
                Duration::from_micros(499),
                true,
            );
        }
        assert_eq!((near.apart, near.skip), (0, 0));
        assert_eq!(places(&mut near, 0), []);
    }

    #[test]
    fn who_is_first_stays_where_it_is_while_the_request_comes_back() {
        for looks in [true, false] {
            let mut near = wanted(looks);
            for request in 1..4 {
                near.received(GATEWAY, &a(Kind::Pass, request));
                woken(&mut near, 3, 2);
                let stays = !looks && request > 1;
                assert_eq!(near.place(5), stays.then_some(5));
                near.received(PEER, &a(Kind::Pass, request));
                assert_eq!(near.place(6), None, "the gateway is next");
            }
            near.received(PEER, &a(Kind::Pass, 9));
            assert_eq!(near.place(6), Some(3), "it is not the first of this one");
        }
    }

    #[test]
    fn after_late_wake_ups_it_sleeps_as_usual_for_ever_longer() {
        let mut near = wanted(false);
        let usual = |near: &mut Near| (0..5000).take_while(|_| near.place(0).is_none()).count();
        let late = |near: &mut Near, bound| near.woken(wake_up(3, 0), wake_up(3, 201), LONG, bound);
        woken(&mut near, 3, 2);
        for skipped in [1, 3, 7] {
            late(&mut near, true);
            assert_eq!(usual(&mut near), skipped);
        }
        near.woken(wake_up(3, 0), wake_up(3, 200), LONG, true);
        assert_eq!(usual(&mut near), 0);
        late(&mut near, true);
        assert_eq!(usual(&mut near), 1);
        (0..20).for_each(|_| late(&mut near, true));
        assert_eq!(usual(&mut near), MAX_SKIPPED as usize);
        late(&mut near, false);
        assert_eq!(usual(&mut near), 0, "the kernel's choice was late");
    }

    fn allowed() -> CpuSet {
        sched_getaffinity(None).expect("allowed for oneself")
    }

    #[test]
    fn a_thread_is_bound_until_the_end_of_its_stay() {
        let before = allowed();
        let all: Vec<usize> = (0..CpuSet::MAX_CPU)
            .filter(|&at| before.is_set(at))
            .collect();
        for processor in all.iter().copied().filter(|_| all.len() > 1) {
            let mut near = wanted(false);
            let elsewhere = |near: &mut Near| {
                for _ in 0..2 {
                    near.woken(wake_up(processor as u32, 0), wake_up(4095, 9), LONG, false);
                }
            };
            elsewhere(&mut near);
            let stay = near.stay();
            assert!(stay.is_bound());
            assert_eq!((sched_getcpu(), allowed().count()), (processor, 1));
            drop(stay);
            assert_eq!(allowed(), before);
            let mut visitor = wanted(true);
            // Between its arrival and the look, the kernel may move it: not each time.
            let mut arrives = || {
                elsewhere(&mut visitor);
                let stay = visitor.stay();
                assert!(!stay.is_bound());
                assert_eq!(allowed(), before);
                sched_getcpu() == processor
            };
            assert!((0..1000).any(|_| arrives()), "processor {processor}");
        }
    }

    #[test]
    fn a_thread_is_bound_nowhere_else_than_where_it_may_run() {
        std::thread::spawn(|| {
            let mut only = CpuSet::new();
            only.set(sched_getcpu());
            sched_setaffinity(None, &only).expect("allowed for oneself");
            for processor in (0..CpuSet::MAX_CPU).chain([usize::MAX]) {
                assert!(go(processor).is_none());
                assert_eq!(allowed(), only);
            }
        })
        .join()
        .expect("no panic");
    }
}
