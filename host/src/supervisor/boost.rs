//! Lets an instance that starts run before the host's other programs, for a moment.
//!
//! What a first request needs is about a millisecond of a processor. If another program has that processor, or takes it, such as a
//! thread of the kernel's, the instance waits until the kernel's next tick, 4 ms on many hosts, even with another processor idle:
//! the kernel moves nobody sooner who is not real-time. So an instance is (`SCHED_RR` in sched(7)), for its first [`LENGTH`], while
//! the server's threads are, too: while requests come seldom, or the host is busy and few are under way.
//!
//! It is a stranger's code that runs then, before everything else and beyond its function's limit. So a sandbox has it once in ten
//! seconds, and [`Slots`] bounds what all together get: at most half of the processors at a time, and a fifth of each. It is the
//! first thread's alone; what that starts does not inherit it.

use std::io;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use rustix::process::Pid;
use rustix::thread::gettid;

use super::Supervisor;
use super::instances::number;
use crate::cgroup::{belongs, real_time};
use crate::protocol::Key;
use crate::protocol::request::Target;
use crate::scheduling::{Ordinary, boost};

/// How long it lasts, unless the server's priority is lowered before.
const LENGTH: Duration = Duration::from_micros(2_500);
/// How long a slot is empty after that: four times as long.
const PAUSE: Duration = Duration::from_millis(10);
/// How often a sandbox may have it: no oftener than its budget is renewed, where the kernel has such.
const AGAIN: Duration = real_time::PERIOD;

/// Who is boosted, and who would have been.
#[derive(Debug)]
pub(super) struct Boosts {
    /// Whether instances are boosted at all.
    wanted: bool,
    /// What this thread was before it was boosted.
    own: Option<Ordinary>,
    slots: Slots<Boosted>,
    /// What all sandboxes may have together, where the kernel has such budgets.
    budget: Option<Duration>,
    /// The last instance that was not, and when it started.
    missed: Option<(Target, u32, Instant)>,
}

#[derive(Debug)]
struct Boosted {
    key: Key,
    thread: Pid,
    uid: u32,
    before: Ordinary,
}

impl Default for Boosts {
    fn default() -> Self {
        let processors = available_parallelism().map_or(1, usize::from);
        Self {
            wanted: false,
            own: None,
            slots: Slots::new(processors / 2),
            budget: None,
            missed: None,
        }
    }
}

impl Supervisor {
    /// From here on instances of this sandbox may be boosted.
    pub(super) fn allow_boosts(&mut self, of: Key) {
        let Some(live) = self.live.get_mut(&of) else {
            return;
        };
        let mut allowed = live.group.allow_real_time();
        // The others have all that they may have together.
        while allowed
            .as_ref()
            .is_err_and(|error| error.kind() == io::ErrorKind::InvalidInput)
        {
            let more = self.boosts.budget.map_or(real_time::FIRST, |has| has * 2);
            if self.host.top.allow_real_time(more).is_err() {
                break;
            }
            self.boosts.budget = Some(more);
            allowed = live.group.allow_real_time();
        }
        live.boosted_from = allowed.is_ok().then(Instant::now);
    }

    /// The server's threads have the raised priority now, or not any more.
    pub(super) fn want_boosts(&mut self, wanted: bool) {
        if std::mem::replace(&mut self.boosts.wanted, wanted) == wanted {
            return;
        }
        // What it does for an instance that starts, it does at once, and not on that instance's processor.
        if !wanted {
            if let Some(before) = self.boosts.own.take() {
                let _ = before.restore(gettid());
            }
            for boosted in self.boosts.slots.leave_if(|_| true) {
                boosted.end();
            }
            return;
        }
        self.boosts.own = boost(gettid()).ok();
        if let Some((target, uid, at)) = self.boosts.missed.take()
            && at.elapsed() < LENGTH
        {
            // The first request after a pause raises the priority, and its instance may have been faster.
            self.boost(target, uid);
        }
    }

    /// An instance starts.
    pub(super) fn boost(&mut self, target: Target, uid: u32) {
        let now = Instant::now();
        if !self.boosts.wanted {
            self.boosts.missed = Some((target, uid, now));
            return;
        }
        // Many requests at once, whose instances share the processors: none goes first.
        self.end_boosts(target.key);
        let Some(live) = self.live.get_mut(&target.key) else {
            return;
        };
        if live.boosted_from.is_none_or(|from| now < from) || !self.boosts.slots.is_one_free(now) {
            return;
        }
        // Refused, as without the capability, it is not asked for all the time.
        live.boosted_from = Some(now + AGAIN);
        let Some(boosted) = Boosted::begin(target, uid) else {
            return;
        };
        let (slot, left) = self.boosts.slots.take(now, boosted);
        if let Some(left) = left {
            left.end();
        }
        if let Some(slot) = slot {
            self.later(target.key, LENGTH, move |supervisor| {
                if let Some(boosted) = supervisor.boosts.slots.leave(slot, now) {
                    boosted.end();
                }
            });
        }
    }

    /// None of this sandbox's instances is real-time any more, and each can be moved into any cgroup.
    pub(super) fn end_boosts(&mut self, of: Key) {
        let slots = &mut self.boosts.slots;
        for boosted in slots.leave_if(|boosted| boosted.key == of) {
            boosted.end();
        }
    }
}

impl Boosted {
    fn begin(target: Target, uid: u32) -> Option<Self> {
        let thread = number(target.pid).filter(|thread| belongs(*thread, uid))?;
        let before = boost(thread).ok()?;
        Some(Self {
            key: target.key,
            thread,
            uid,
            before,
        })
    }

    fn end(&self) {
        // If it has ended, its number may be somebody else's.
        if belongs(self.thread, self.uid) {
            let _ = self.before.restore(self.thread);
        }
    }
}

/// Some places, each of which is taken for a fifth of the time at most. Pure: the clock comes from outside.
#[derive(Debug)]
struct Slots<T> {
    slots: Vec<Slot<T>>,
}

#[derive(Debug)]
struct Slot<T> {
    taken_at: Option<Instant>,
    whose: Option<T>,
}

impl<T> Slots<T> {
    fn new(count: usize) -> Self {
        let empty = || Slot {
            taken_at: None,
            whose: None,
        };
        Self {
            slots: std::iter::repeat_with(empty).take(count).collect(),
        }
    }

    fn free(&self, now: Instant) -> Option<usize> {
        let is_free = |slot: &Slot<T>| {
            let taken_at = slot.taken_at;
            taken_at.is_none_or(|at| now.saturating_duration_since(at) >= LENGTH + PAUSE)
        };
        self.slots.iter().position(is_free)
    }

    fn is_one_free(&self, now: Instant) -> bool {
        self.free(now).is_some()
    }

    /// Takes one, if one is free; who was left in it comes back, or else `whose` itself.
    fn take(&mut self, now: Instant, whose: T) -> (Option<usize>, Option<T>) {
        let Some(at) = self.free(now) else {
            return (None, Some(whose));
        };
        let slot = &mut self.slots[at];
        slot.taken_at = Some(now);
        (Some(at), slot.whose.replace(whose))
    }

    /// Who took this one at that time, unless they have left.
    fn leave(&mut self, slot: usize, taken_at: Instant) -> Option<T> {
        let slot = self.slots.get_mut(slot)?;
        (slot.taken_at == Some(taken_at)).then(|| slot.whose.take())?
    }

    /// Those who are to leave, of all who are in one. The pauses go on.
    fn leave_if(&mut self, are_to: impl Fn(&T) -> bool) -> Vec<T> {
        let slots = self.slots.iter_mut();
        let leaves = |slot: &mut Slot<T>| slot.whose.take_if(|whose| are_to(whose));
        slots.filter_map(leaves).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_slot_is_taken_for_more_than_a_fifth_of_the_time(
            count in 0_usize..4,
            steps in proptest::collection::vec((0_u64..10_000, any::<bool>()), 1..200),
        ) {
            let begun = Instant::now();
            let (mut slots, mut now) = (Slots::new(count), begun);
            let mut taken = 0_u32;
            for (microseconds, is_cleared) in steps {
                now += Duration::from_micros(microseconds);
                let was_free = slots.is_one_free(now);
                let (slot, _) = slots.take(now, ());
                prop_assert_eq!(slot.is_some(), was_free);
                taken += u32::from(slot.is_some());
                prop_assert!(slots.slots.iter().filter(|slot| slot.whose.is_some()).count() <= count);
                if is_cleared {
                    slots.leave_if(|()| true);
                }
            }
            let most = now.duration_since(begun).as_secs_f64() / 5.0 + LENGTH.as_secs_f64();
            prop_assert!((LENGTH * taken).as_secs_f64() <= most * count as f64 + 1e-9);
        }
    }

    #[test]
    fn who_is_late_to_leave_does_not_end_the_next_ones_boost() {
        let first = Instant::now();
        let mut slots = Slots::new(1);
        assert_eq!(slots.take(first, 1), (Some(0), None));
        assert_eq!(slots.take(first + LENGTH, 2), (None, Some(2)));
        let second = first + LENGTH + PAUSE;
        // The first one's end is overdue.
        assert_eq!(slots.take(second, 3), (Some(0), Some(1)));
        assert_eq!(slots.leave(0, first), None);
        assert_eq!(slots.leave(0, second), Some(3));
        assert_eq!(slots.leave(0, second), None);
    }

    #[test]
    fn who_is_made_to_leave_makes_no_room_before_the_pause_is_over() {
        let now = Instant::now();
        let mut slots = Slots::new(2);
        slots.take(now, 1);
        slots.take(now, 2);
        assert_eq!(slots.leave_if(|whose| *whose == 2), [2]);
        assert_eq!(slots.leave(1, now), None);
        assert!(!slots.is_one_free(now + LENGTH));
        assert_eq!(slots.leave(0, now), Some(1));
        assert!(slots.is_one_free(now + LENGTH + PAUSE));
    }
}
