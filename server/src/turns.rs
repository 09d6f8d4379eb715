//! Turns: a thread with much to do lets others run in between.
//!
//! Otherwise it has its processor until something with an earlier deadline wakes there, or until the kernel's next tick, 4 ms on many
//! hosts, whatever its [time slice](hearth_abi::time_slice) is. Members of a chain with many requests under way preempt nobody when
//! they are woken, and two of the server's own threads on one processor take turns by ticks. All requests under way may be in the hands
//! of one that waits, with another processor idle: it was busy when that one was woken, and nobody moves it so soon.

use std::cell::Cell;
use std::thread;
use std::time::{Duration, Instant};

use hearth_abi::time_slice::SLICE;
use rustix::time::{ClockId, clock_gettime};

thread_local! {
    /// This thread's turn. None before its first.
    static TURN: Cell<Option<Turn>> = const { Cell::new(None) };
}

/// The beginning of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Turn {
    at: Instant,
    /// Processor time that the thread had had by then.
    had: Duration,
}

impl Turn {
    fn now() -> Self {
        Self {
            at: Instant::now(),
            had: had(),
        }
    }

    /// Whether the thread has had the processor for a slice. It may have lost it in between: whoever took it has had a turn, and another
    /// one would make a request wait twice.
    fn is_over(self, now: Instant, had: impl FnOnce() -> Duration) -> bool {
        // The clock is cheap to read, the thread's own is a system call.
        now.saturating_duration_since(self.at) >= SLICE && had().saturating_sub(self.had) >= SLICE
    }
}

/// Processor time of this thread so far: `CLOCK_THREAD_CPUTIME_ID` of clock_gettime(2).
fn had() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default()
}

/// Begins a turn of this thread, which has slept, or looked for something to do.
pub fn begin() {
    TURN.set(Some(Turn::now()));
}

/// Lets others run if this thread's turn is over, and begins another. To be called between two pieces of work that take less than a turn.
///
/// A system call for each turn (sched_yield(2)), which returns at once where nobody else waits for the processor. Somebody who has not
/// asked for short time slices gives up all of a long one.
pub fn give_way() {
    match TURN.get() {
        Some(turn) if !turn.is_over(Instant::now(), had) => return,
        Some(_) => thread::yield_now(),
        None => {}
    }
    begin();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_over_when_the_thread_has_had_a_slice() {
        let turn = Turn::now();
        let is_over = |passed, had| turn.is_over(turn.at + passed, || turn.had + had);
        assert!(!is_over(Duration::ZERO, Duration::ZERO));
        assert!(is_over(SLICE, SLICE));
        // Others had the processor meanwhile.
        assert!(!is_over(SLICE * 50, SLICE / 2));
    }

    #[test]
    fn a_turn_goes_on_until_it_is_over() {
        begin();
        let begun = TURN.get().expect("a turn");
        let to_come = Turn {
            at: begun.at + SLICE * 1_000_000,
            had: Duration::ZERO,
        };
        let over = Turn {
            at: begun.at.checked_sub(SLICE).expect("the host is up"),
            had: Duration::ZERO,
        };
        while had() < SLICE {}
        for (turn, is_kept) in [(Some(to_come), true), (Some(over), false), (None, false)] {
            TURN.set(turn);
            give_way();
            assert_eq!(TURN.get() == turn, is_kept, "{turn:?}");
            assert!(TURN.get().is_some_and(|turn| turn.at >= begun.at));
        }
    }
}
