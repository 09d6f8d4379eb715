//! When the worker took a request and when its handler ran: three instants.
//!
//! The worker writes them with plain stores, so they cost neither a frame nor a system call ([`monotonic_ns`] reads the
//! vDSO's clock). As they come they go to a cache line that only the worker uses, and all three to the line of its ring's
//! head when the handler is done. The host fetches that line anyway to see that there is an answer, and the head was loaded with
//! acquire, so the stamps it finds there are at least as new as the answer's first frame. The worker's own line it reads
//! only for a request that has no answer.
//!
//! **They are claims.** A hostile worker writes there what it likes, at any time. The host loads each word once and uses the
//! values only as far as they agree with its own clock: see `stages.rs` of the server.

use core::sync::atomic::Ordering;
use std::sync::Arc;

use rustix::time::{ClockId, clock_gettime};

use crate::area::Control;
use crate::counters::{Counters, Mark, OtherProcess, Source, WAITED_NS};
use crate::layout::{HEADER_BYTES, STAMPS, StampWords, TO_HOST_CONTROL};
use crate::region::Mapping;

/// The worker's timestamps of the current request, in nanoseconds of [`monotonic_ns`]. 0: not yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stamps {
    /// The whole request was read from the ring.
    pub taken: u64,
    /// The handler was called.
    pub began: u64,
    /// The handler returned or raised, or its streamed answer began.
    pub ended: u64,
}

/// One side's view of the stamps.
#[derive(Debug)]
pub struct StampLine {
    /// The worker's own timestamps of the current request.
    current: *const StampWords,
    /// Stamps of the last response, on the cache line of the worker → host ring's head.
    answered: Control,
    /// The worker's copy of the request's, so that it reads nothing back from shared memory.
    stamps: Stamps,
    /// The worker's: what stands beside the head is this request's.
    is_told: bool,
    /// The worker's: where the handler's counters stood before this request, if they were read, and when.
    mark: (u64, Option<Mark>),
    /// The worker's: whose counters are the handler's.
    source: Source,
    _mapping: Arc<Mapping>,
}

// SAFETY: the words are atomics, and the mapping that they lie in may be used from every thread.
unsafe impl Send for StampLine {}
// SAFETY: as above.
unsafe impl Sync for StampLine {}

impl StampLine {
    pub(crate) fn new(mapping: &Arc<Mapping>) -> Self {
        assert!(mapping.len() >= HEADER_BYTES);
        // SAFETY: `layout` asserts that the line lies in the header's page, which was just checked to be mapped.
        let current = unsafe { mapping.base().add(STAMPS) };
        Self {
            current: current.cast::<StampWords>(),
            answered: Control::new(Arc::clone(mapping), TO_HOST_CONTROL),
            stamps: Stamps::default(),
            is_told: true,
            mark: Default::default(),
            source: Source::default(),
            _mapping: Arc::clone(mapping),
        }
    }

    #[inline]
    fn current(&self) -> &StampWords {
        // SAFETY: the mapping is page-aligned and `STAMPS` a multiple of the words' alignment (asserted in `layout`), and it
        // stays mapped while `self` lives. The words are atomics, for which every bit pattern is valid and which may
        // change under a shared reference.
        unsafe { &*self.current }
    }

    /// The worker has nothing to do and is about to wait for a request: what is counted from now on is that one's.
    pub fn rests(&mut self) {
        self.mark = (monotonic_ns(), self.source.read());
    }

    /// The handler runs in another process than the worker: its page faults are counted from the next rest on.
    pub fn count(&mut self, process: OtherProcess) {
        self.source = Source::Process(process);
        self.mark = Default::default();
    }

    /// The worker has read a whole request. Forgets what was said of the one before.
    pub fn taken(&mut self) {
        self.stamps = Stamps {
            taken: monotonic_ns(),
            ..Stamps::default()
        };
        self.current().write(self.stamps);
        self.is_told = false;
        // Another process's take too long to be read while somebody waits; one that nothing is asked of does little.
        let is_cheap = matches!(self.source, Source::ThisThread);
        if is_cheap && self.stamps.taken.saturating_sub(self.mark.0) > WAITED_NS {
            self.mark = (self.stamps.taken, self.source.read());
        }
    }

    /// The worker calls the handler.
    pub fn began(&mut self) {
        self.stamps.began = monotonic_ns();
        let began = &self.current().began;
        began.store(self.stamps.began, Ordering::Relaxed);
    }

    /// The handler is done, or will not be called; the answer's first frame is about to be published. The first call after
    /// [`Self::taken`] counts.
    pub fn ended(&mut self) {
        if self.is_told {
            return;
        }
        if self.stamps.began != 0 {
            self.stamps.ended = monotonic_ns();
        }
        let took = self.stamps.ended.saturating_sub(self.stamps.taken);
        let is_counted = took >= self.source.least_ns();
        let mark = self.mark.1.filter(|_| is_counted);
        let counters = mark.and_then(|mark| Some(mark.until(&self.source.read()?)));
        let published = &self.answered.head.0;
        published.stamps.write(self.stamps);
        published.counters.write(counters.as_ref());
        self.is_told = true;
    }

    /// What the worker says of the answer that was received last. For the host, which believes none of it without a check.
    #[must_use]
    pub fn answered(&self) -> Stamps {
        self.answered.head.0.stamps.read()
    }

    /// What the worker has counted of the request whose answer was received last; none if that was too short. For the host, as
    /// above.
    #[must_use]
    pub fn counters(&self) -> Option<Counters> {
        self.answered.head.0.counters.read()
    }

    /// What the worker says of a request that it has not answered yet; the end is unknown. For the host, as above.
    #[must_use]
    pub fn unanswered(&self) -> Stamps {
        self.current().read()
    }
}

impl StampWords {
    #[inline]
    fn write(&self, stamps: Stamps) {
        self.taken.store(stamps.taken, Ordering::Relaxed);
        self.began.store(stamps.began, Ordering::Relaxed);
        self.ended.store(stamps.ended, Ordering::Relaxed);
    }

    #[inline]
    fn read(&self) -> Stamps {
        Stamps {
            taken: self.taken.load(Ordering::Relaxed),
            began: self.began.load(Ordering::Relaxed),
            ended: self.ended.load(Ordering::Relaxed),
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
    use crate::counters::{COUNTED_ELSEWHERE_NS, COUNTED_NS};
    use crate::layout::MIN_RING_BYTES;

    use super::*;

    #[test]
    fn the_host_reads_what_the_worker_stamped_and_the_next_request_starts_over() {
        let (host, worker) = Region::anonymous(MIN_RING_BYTES);
        let mut line = worker.stamps;
        assert_eq!(host.stamps.answered(), Stamps::default());
        let before = monotonic_ns();
        line.taken();
        line.began();
        let reached = host.stamps.unanswered();
        assert!(before <= reached.taken && reached.taken <= reached.began);
        assert_eq!(reached.ended, 0);
        assert_eq!(
            host.stamps.answered(),
            Stamps::default(),
            "nothing is answered"
        );
        line.ended();
        let stamps = host.stamps.answered();
        assert_eq!((stamps.taken, stamps.began), (reached.taken, reached.began));
        assert!(stamps.began <= stamps.ended && stamps.ended <= monotonic_ns());
        line.ended();
        assert_eq!(host.stamps.answered(), stamps, "only the first end counts");
        line.taken();
        let next = host.stamps.unanswered();
        assert!(next.taken >= stamps.ended);
        assert_eq!((next.began, next.ended), (0, 0));
        assert_eq!(
            host.stamps.answered(),
            stamps,
            "the last answer is still that one"
        );
        line.ended();
        assert_eq!(
            host.stamps.answered(),
            next,
            "nothing ends that never began"
        );
    }

    #[test]
    fn only_requests_that_take_a_while_have_counters() {
        let (host, worker) = Region::anonymous(MIN_RING_BYTES);
        let mut line = worker.stamps;
        line.rests();
        line.taken();
        line.began();
        while monotonic_ns() < line.stamps.taken + COUNTED_NS {}
        crate::counters::paused(1_000);
        line.ended();
        let counters = host.stamps.counters().expect("counters");
        let stops = counters.stops.expect("this thread's");
        assert!(stops.pauses >= 1 && stops.paused_ns >= 1_000);
        // Undecodable: no handler, no time in one.
        line.rests();
        line.taken();
        line.ended();
        assert_eq!(host.stamps.counters(), None);
    }

    #[test]
    fn another_processs_counters_are_read_of_slow_requests_only() {
        let (host, worker) = Region::anonymous(MIN_RING_BYTES);
        let mut line = worker.stamps;
        line.rests();
        line.count(OtherProcess::new(std::process::id()).expect("its counters"));
        // Kept, so that the next request has pages that were never touched.
        let mut kept = Vec::new();
        let mut request = |line: &mut StampLine, ns: u64| {
            line.taken();
            line.began();
            let mut pages = vec![0_u8; 4 << 20];
            for page in pages.chunks_mut(4096) {
                page[0] = 1;
            }
            core::hint::black_box(&pages);
            kept.push(pages);
            while monotonic_ns() < line.stamps.taken + ns {}
            line.ended();
            host.stamps.counters()
        };
        assert_eq!(
            request(&mut line, COUNTED_ELSEWHERE_NS),
            None,
            "read before nothing"
        );
        line.rests();
        let counters = request(&mut line, COUNTED_ELSEWHERE_NS).expect("counters");
        assert!(
            counters.minor_faults > 0 && counters.stops.is_none(),
            "{counters:?}"
        );
    }
}
