//! What an instance counts while it serves a request: page faults, lost processors, its collector's pauses.
//!
//! The counters are always on, so they must cost nothing that a warm request would notice. The kernel's are read with
//! `getrusage` (about 0.3 µs): before the worker waits for a request, when nobody waits for it, and after the handler only
//! if the request has taken [`COUNTED_NS`] or more. One that was faster has no counters. The collector's pauses are told by
//! the runtime's own hooks ([`paused`]).
//!
//! Like the stamps beside which they travel they are claims: the host bounds what it believes.

use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::layout::CounterWords;

/// A request is counted if the worker has had it for this long, in nanoseconds: the reading is then below a hundredth of it.
pub const COUNTED_NS: u64 = 50_000;

/// How long a worker may wait, in nanoseconds, before what happened meanwhile is left out of the request that ends the wait. It has
/// slept by then, which costs a hundred times the reading.
pub(crate) const WAITED_NS: u64 = 1_000_000;

/// Counters of one request, of the thread that runs the handler, from its arrival at the worker to the handler's end, or to the beginning of a streamed answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Page faults served from memory: first touches and copies on write.
    pub minor_faults: u32,
    /// Page faults that waited for a disk.
    pub major_faults: u32,
    /// Involuntary context switches: the processor was given to somebody else.
    pub preemptions: u32,
    /// Collections of the runtime's garbage collector.
    pub pauses: u32,
    /// How long they stopped the function, in nanoseconds.
    pub paused_ns: u64,
}

/// This process' pauses so far. They only grow, so a fork goes on from its template's.
static PAUSES: AtomicU32 = AtomicU32::new(0);
static PAUSED_NS: AtomicU64 = AtomicU64::new(0);

/// The runtime's garbage collector has stopped the function for this long, in nanoseconds.
pub fn paused(ns: u64) {
    PAUSES.fetch_add(1, Ordering::Relaxed);
    PAUSED_NS.fetch_add(ns, Ordering::Relaxed);
}

/// Where the counters stood.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Mark {
    minor_faults: u64,
    major_faults: u64,
    preemptions: u64,
    pauses: u32,
    paused_ns: u64,
}

impl Mark {
    /// Where they stand now. One system call.
    pub(crate) fn now() -> Self {
        let usage = usage();
        let count = |value: libc::c_long| value.cast_unsigned();
        Self {
            minor_faults: count(usage.ru_minflt),
            major_faults: count(usage.ru_majflt),
            preemptions: count(usage.ru_nivcsw),
            pauses: PAUSES.load(Ordering::Relaxed),
            paused_ns: PAUSED_NS.load(Ordering::Relaxed),
        }
    }

    /// What was counted since then.
    pub(crate) fn until(&self, now: &Self) -> Counters {
        let grown = |before: u64, after: u64| {
            u32::try_from(after.saturating_sub(before)).unwrap_or(u32::MAX)
        };
        Counters {
            minor_faults: grown(self.minor_faults, now.minor_faults),
            major_faults: grown(self.major_faults, now.major_faults),
            preemptions: grown(self.preemptions, now.preemptions),
            pauses: now.pauses.wrapping_sub(self.pauses),
            paused_ns: now.paused_ns.saturating_sub(self.paused_ns),
        }
    }
}

/// Of this thread, which runs the handler: of all threads together it takes the kernel twice as long. Zeros where the kernel refuses, which it does for wrong arguments only.
fn usage() -> libc::rusage {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel writes one `rusage` to the pointer, which leads to room for it.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) };
    // SAFETY: it is plain integers, for which zeros are valid, and was zeroed before.
    unsafe { usage.assume_init() }
}

const fn pair(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

const fn halves(pair: u64) -> (u32, u32) {
    (pair as u32, (pair >> 32) as u32)
}

impl CounterWords {
    /// Writes a request's counters, or that it has none.
    #[inline]
    pub(crate) fn write(&self, counters: Option<&Counters>) {
        if let Some(counters) = counters {
            let faults = pair(counters.minor_faults, counters.major_faults);
            let stops = pair(counters.preemptions, counters.pauses);
            self.faults.store(faults, Ordering::Relaxed);
            self.stops.store(stops, Ordering::Relaxed);
            self.paused.store(counters.paused_ns, Ordering::Relaxed);
        }
        self.counted
            .store(counters.is_some().into(), Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn read(&self) -> Option<Counters> {
        if self.counted.load(Ordering::Relaxed) != 1 {
            return None;
        }
        let (minor_faults, major_faults) = halves(self.faults.load(Ordering::Relaxed));
        let (preemptions, pauses) = halves(self.stops.load(Ordering::Relaxed));
        Some(Counters {
            minor_faults,
            major_faults,
            preemptions,
            pauses,
            paused_ns: self.paused.load(Ordering::Relaxed),
        })
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn first_touches_and_pauses_are_counted() {
        let before = Mark::now();
        let mut pages = vec![0_u8; 4 << 20];
        for page in pages.chunks_mut(4096) {
            page[0] = 1;
        }
        paused(7_000);
        paused(3_000);
        let counters = before.until(&Mark::now());
        assert!(core::hint::black_box(&pages).len() == 4 << 20);
        // Large pages may back it.
        assert!(counters.minor_faults > 0, "{counters:?}");
        assert!(counters.pauses >= 2 && counters.paused_ns >= 10_000);
    }

    #[test]
    fn counters_travel_through_the_words() {
        let words = CounterWords::default();
        assert_eq!(words.read(), None);
        let counters = Counters {
            minor_faults: u32::MAX,
            major_faults: 2,
            preemptions: 3,
            pauses: u32::MAX,
            paused_ns: u64::MAX,
        };
        words.write(Some(&counters));
        assert_eq!(words.read(), Some(counters));
        words.write(None);
        assert_eq!(words.read(), None);
        words.counted.store(2, Ordering::Relaxed);
        assert_eq!(words.read(), None, "only 1 says that there are any");
    }

    #[test]
    fn counters_that_go_back_are_none() {
        let high = Mark {
            minor_faults: 9,
            major_faults: 9,
            preemptions: 9,
            pauses: 9,
            paused_ns: 9,
        };
        let counters = high.until(&high);
        assert_eq!(counters, Counters::default());
        assert_eq!(
            high.until(&Mark {
                pauses: 9,
                ..Mark::default()
            }),
            Counters::default()
        );
    }
}
