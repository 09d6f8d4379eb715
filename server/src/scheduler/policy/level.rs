//! The multiprogramming level: how many instances of one function work at the same time.
//!
//! A function that computes keeps a core busy for as long as it runs. Once there are enough instances at work to keep
//! every core busy, one more makes none of them faster: each request then costs a switch to a process whose caches are
//! cold, and a wake-up. A request does better to wait for the next instance that is done. That is the throughput argument
//! for a limit in front of a database (Schroeder, Harchol-Balter, Iyengar, Nahum, Wierman, "How to Determine a Good
//! Multi-Programming Level for External Scheduling", ICDE 2006), with [`PER_CORE`] for their level.
//!
//! Nothing tells whether a function computes or waits for something. So only functions count that are so short that it
//! does not matter: at [`PER_CORE`] instances a core, runs of [`SHORT`] make the cores answer more requests than they have
//! time for, waiting or not. Should instances at work be slow all of a sudden, nothing ends for [`STALL`], and those
//! that are idle are used after all.

use std::time::Duration;

/// Instances at work for each core: one computes while the other's request or answer is under way.
pub const PER_CORE: u32 = 2;
/// The longest run that counts as short, from lease to release and with the level's number of instances at work.
pub const SHORT: Duration = Duration::from_micros(300);
/// How long nothing must have ended for a queue to be given idle instances after all; the resolution of timers.
pub const STALL: Duration = Duration::from_millis(1);

/// Whether a request should wait for one of `busy` instances although another is idle. `run` is what the function takes,
/// measured while no more than `level` instances were at work; `seen` is for how long nothing has ended.
#[inline]
pub fn is_reached(level: u32, busy: u32, run: Option<Duration>, seen: Duration) -> bool {
    busy >= level && seen < STALL && run.is_some_and(|run| run <= SHORT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_short_functions_wait_and_only_while_they_go_on() {
        let (run, seen) = (Some(SHORT), Duration::ZERO);
        assert!(is_reached(4, 4, run, seen));
        assert!(is_reached(4, 9, run, seen));
        assert!(!is_reached(4, 3, run, seen), "a core may be free");
        assert!(!is_reached(4, 4, None, seen), "it may run for long");
        assert!(!is_reached(4, 4, Some(SHORT * 2), seen), "it does");
        assert!(!is_reached(4, 4, run, STALL), "it does now");
    }
}
