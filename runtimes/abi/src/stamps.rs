//! When the worker took a request and when its handler ran: three instants on a cache line that only the worker writes.
//!
//! The worker writes them with plain stores before it publishes its answer, so they cost neither a frame nor a system
//! call ([`monotonic_ns`] reads the vDSO's clock). The host reads them once it has the answer's first frame: the ring's
//! head was loaded with acquire, so they are at least as new as that frame.
//!
//! **They are claims.** A hostile worker writes there what it likes, at any time. The host loads each word once and uses the
//! values only as far as they agree with its own clock: see `stages.rs` of the server.

use core::sync::atomic::Ordering;
use std::sync::Arc;

use rustix::time::{ClockId, clock_gettime};

use crate::layout::{HEADER_BYTES, STAMPS, StampWords};
use crate::region::Mapping;

/// What the worker says of the request at hand, in nanoseconds of [`monotonic_ns`]. 0: not yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stamps {
    /// The whole request was read from the ring.
    pub taken: u64,
    /// The handler was called.
    pub began: u64,
    /// The handler returned or raised, or its streamed answer began.
    pub ended: u64,
}

/// One side's view of the line.
#[derive(Debug)]
pub struct StampLine {
    words: *const StampWords,
    /// The worker's: the handler has begun and not ended.
    is_running: bool,
    _mapping: Arc<Mapping>,
}

// SAFETY: the words are atomics, and the mapping that they lie in may be used from every thread.
unsafe impl Send for StampLine {}
// SAFETY: as above.
unsafe impl Sync for StampLine {}

impl StampLine {
    pub(crate) fn new(mapping: Arc<Mapping>) -> Self {
        assert!(mapping.len() >= HEADER_BYTES);
        // SAFETY: `layout` asserts that the line lies in the header's page, which was just checked to be mapped.
        let words = unsafe { mapping.base().add(STAMPS) };
        Self {
            words: words.cast::<StampWords>(),
            is_running: false,
            _mapping: mapping,
        }
    }

    #[inline]
    fn words(&self) -> &StampWords {
        // SAFETY: the mapping is page-aligned and `STAMPS` a multiple of the words' alignment (asserted in `layout`), and it
        // stays mapped while `self` lives. The words are atomics, for which every bit pattern is valid and which may
        // change under a shared reference.
        unsafe { &*self.words }
    }

    /// The worker has read a whole request. Forgets what was said of the one before.
    pub fn taken(&mut self) {
        let words = self.words();
        words.began.store(0, Ordering::Relaxed);
        words.ended.store(0, Ordering::Relaxed);
        words.taken.store(monotonic_ns(), Ordering::Relaxed);
        self.is_running = false;
    }

    /// The worker calls the handler.
    pub fn began(&mut self) {
        self.words().began.store(monotonic_ns(), Ordering::Relaxed);
        self.is_running = true;
    }

    /// The handler is done. The first call after [`Self::began`] counts.
    pub fn ended(&mut self) {
        if self.is_running {
            self.words().ended.store(monotonic_ns(), Ordering::Relaxed);
            self.is_running = false;
        }
    }

    /// What the worker says now. For the host, which believes none of it without a check.
    #[must_use]
    pub fn read(&self) -> Stamps {
        let words = self.words();
        Stamps {
            taken: words.taken.load(Ordering::Relaxed),
            began: words.began.load(Ordering::Relaxed),
            ended: words.ended.load(Ordering::Relaxed),
        }
    }
}

/// Now, in nanoseconds of `CLOCK_MONOTONIC`. Both sides read the same clock: sandboxes have no time namespace.
#[must_use]
#[inline]
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // The clock counts from the machine's start: never negative, and 584 years fit.
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}

#[cfg(all(test, not(miri)))]
mod tests {
    use crate::Region;
    use crate::layout::MIN_RING_BYTES;

    use super::*;

    #[test]
    fn the_host_reads_what_the_worker_stamped_and_the_next_request_starts_over() {
        let (host, worker) = Region::anonymous(MIN_RING_BYTES);
        let mut line = worker.stamps;
        assert_eq!(host.stamps.read(), Stamps::default());
        let before = monotonic_ns();
        line.taken();
        line.began();
        line.ended();
        let stamps = host.stamps.read();
        assert!(before <= stamps.taken && stamps.taken <= stamps.began);
        assert!(stamps.began <= stamps.ended && stamps.ended <= monotonic_ns());
        line.ended();
        assert_eq!(host.stamps.read(), stamps, "only the first end counts");
        line.taken();
        let next = host.stamps.read();
        assert!(next.taken >= stamps.ended);
        assert_eq!((next.began, next.ended), (0, 0));
        line.ended();
        assert_eq!(host.stamps.read(), next, "nothing ends that never began");
    }
}
