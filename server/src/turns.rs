//! Turns: a thread with much to do lets others run in between.
//!
//! Otherwise it has its processor until something with an earlier deadline wakes there, or until the kernel's next tick, 4 ms on many
//! hosts, whatever its [time slice](hearth_abi::time_slice) is. Members of a chain with many requests under way preempt nobody when
//! they are woken, and two of the server's own threads on one processor take turns by ticks. All requests under way may be in the hands
//! of one that waits, with another processor idle: it was busy when that one was woken, and nobody moves it so soon.

use std::cell::Cell;
use std::thread;
use std::time::Instant;

use hearth_abi::time_slice::SLICE;

thread_local! {
    /// When this thread's turn began. None before its first.
    static BEGAN: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Begins a turn of this thread, which has slept, or looked for something to do.
pub fn begin() {
    BEGAN.set(Some(Instant::now()));
}

/// Lets others run if this thread's turn is over, and begins another. To be called between two pieces of work that take less than a turn.
///
/// A system call for each turn (sched_yield(2)), which returns at once where nobody else waits for the processor. Somebody who has not
/// asked for short time slices gives up all of a long one.
pub fn give_way() {
    match BEGAN.get() {
        Some(began) if began.elapsed() < SLICE => return,
        Some(_) => thread::yield_now(),
        None => {}
    }
    begin();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_goes_on_until_it_is_over() {
        let now = Instant::now();
        for (began, is_kept) in [
            (Some(now + SLICE * 1_000_000), true),
            (now.checked_sub(SLICE), false),
            (None, false),
        ] {
            BEGAN.set(began);
            give_way();
            assert_eq!(BEGAN.get() == began, is_kept, "{began:?}");
            assert!(BEGAN.get() >= Some(now));
        }
    }
}
