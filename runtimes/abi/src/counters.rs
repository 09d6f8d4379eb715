//! What an instance counts while it serves a request: page faults, lost processors, its collector's pauses.
//!
//! The counters are always on, so they must cost nothing that a warm request would notice. The kernel's are read with
//! `getrusage` (about 0.3 µs): before the worker waits for a request, when nobody waits for it, and after the handler only
//! if the request has taken [`COUNTED_NS`] or more. One that was faster has no counters. The collector's pauses are told by
//! the runtime's own hooks ([`paused`]).
//!
//! A handler that runs in another process than the worker ([`OtherProcess`]) has its page faults counted by `/proc/PID/stat`, which
//! takes 3 µs, and so only with requests that take [`COUNTED_ELSEWHERE_NS`]. Its other counters are unknown.
//!
//! Like the stamps beside which they travel they are claims: the host bounds what it believes.

use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use crate::layout::CounterWords;

/// A request is counted if the worker has had it for this long, in nanoseconds: the reading is then below a hundredth of it.
pub const COUNTED_NS: u64 = 50_000;

/// The same where the counters are those of another process, and the reading takes 3 µs.
pub const COUNTED_ELSEWHERE_NS: u64 = 300_000;

/// How long a worker may wait, in nanoseconds, before what happened meanwhile is left out of the request that ends the wait. It has
/// slept by then, which costs a hundred times the reading.
pub(crate) const WAITED_NS: u64 = 1_000_000;

/// Counters of one request, of the thread or process that runs the handler, from its arrival at the worker to the handler's end, or to the beginning of a streamed answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Page faults served from memory: first touches and copies on write.
    pub minor_faults: u32,
    /// Page faults that waited for a disk.
    pub major_faults: u32,
    /// What stopped the handler; unknown of another process.
    pub stops: Option<Stops>,
}

/// What stopped a handler.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stops {
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

/// Another process that runs the handler.
#[derive(Debug)]
pub struct OtherProcess(File);

impl OtherProcess {
    /// The process with this id, as this process sees it.
    ///
    /// # Errors
    /// There is none, or its `/proc` is not to be read.
    pub fn new(pid: u32) -> io::Result<Self> {
        Ok(Self(File::open(format!("/proc/{pid}/stat"))?))
    }

    /// Its page faults so far, those of all its threads and of the children that it has waited for: minor and major. None once it has
    /// ended.
    fn faults(&self) -> Option<(u64, u64)> {
        let mut bytes = [0; STAT_BYTES];
        let length = self.0.read_at(&mut bytes, 0).ok()?;
        faults(&bytes[..length])
    }
}

/// As many bytes of `/proc/PID/stat` as hold its first 13 fields, a name of 16 bytes among them.
const STAT_BYTES: usize = 256;

/// `minflt`, `cminflt`, `majflt` and `cmajflt` of proc_pid_stat(5), in pairs. The name before them may have any characters.
fn faults(stat: &[u8]) -> Option<(u64, u64)> {
    let after_name = stat.iter().rposition(|&byte| byte == b')')? + 2;
    let mut fields = stat.get(after_name..)?.split(|&byte| byte == b' ').skip(7);
    let mut next = || -> Option<u64> { str::from_utf8(fields.next()?).ok()?.parse().ok() };
    let (minor, of_children) = (next()?, next()?);
    Some((minor + of_children, next()? + next()?))
}

/// Whose counters are read.
#[derive(Debug, Default)]
pub(crate) enum Source {
    /// The calling thread's.
    #[default]
    ThisThread,
    Process(OtherProcess),
}

impl Source {
    /// How long a request must have been with the worker to be counted, in nanoseconds.
    pub(crate) fn least_ns(&self) -> u64 {
        match self {
            Self::ThisThread => COUNTED_NS,
            Self::Process(_) => COUNTED_ELSEWHERE_NS,
        }
    }

    /// Where the counters stand now. One system call.
    pub(crate) fn read(&self) -> Option<Mark> {
        match self {
            Self::ThisThread => Some(Mark::now()),
            Self::Process(process) => {
                let (minor_faults, major_faults) = process.faults()?;
                Some(Mark {
                    minor_faults,
                    major_faults,
                    stops: None,
                })
            }
        }
    }
}

/// Where the counters stood.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Mark {
    minor_faults: u64,
    major_faults: u64,
    stops: Option<StopsMark>,
}

#[derive(Debug, Clone, Copy, Default)]
struct StopsMark {
    preemptions: u64,
    pauses: u32,
    paused_ns: u64,
}

impl Mark {
    /// Where this thread's stand now. One system call.
    fn now() -> Self {
        let usage = usage();
        let count = |value: libc::c_long| value.cast_unsigned();
        Self {
            minor_faults: count(usage.ru_minflt),
            major_faults: count(usage.ru_majflt),
            stops: Some(StopsMark {
                preemptions: count(usage.ru_nivcsw),
                pauses: PAUSES.load(Ordering::Relaxed),
                paused_ns: PAUSED_NS.load(Ordering::Relaxed),
            }),
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
            stops: self.stops.zip(now.stops).map(|(before, now)| Stops {
                preemptions: grown(before.preemptions, now.preemptions),
                pauses: now.pauses.wrapping_sub(before.pauses),
                paused_ns: now.paused_ns.saturating_sub(before.paused_ns),
            }),
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

/// What the word says that tells what was counted.
const NOTHING: u64 = 0;
const ALL: u64 = 1;
const FAULTS: u64 = 2;

impl CounterWords {
    /// Writes a request's counters, or that it has none.
    #[inline]
    pub(crate) fn write(&self, counters: Option<&Counters>) {
        if let Some(counters) = counters {
            let faults = pair(counters.minor_faults, counters.major_faults);
            self.faults.store(faults, Ordering::Relaxed);
            if let Some(stops) = &counters.stops {
                let both = pair(stops.preemptions, stops.pauses);
                self.stops.store(both, Ordering::Relaxed);
                self.paused.store(stops.paused_ns, Ordering::Relaxed);
            }
        }
        let counted = match counters.map(|counters| counters.stops) {
            None => NOTHING,
            Some(None) => FAULTS,
            Some(Some(_)) => ALL,
        };
        self.counted.store(counted, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn read(&self) -> Option<Counters> {
        let stops = match self.counted.load(Ordering::Relaxed) {
            ALL => {
                let (preemptions, pauses) = halves(self.stops.load(Ordering::Relaxed));
                Some(Stops {
                    preemptions,
                    pauses,
                    paused_ns: self.paused.load(Ordering::Relaxed),
                })
            }
            FAULTS => None,
            _ => return None,
        };
        let (minor_faults, major_faults) = halves(self.faults.load(Ordering::Relaxed));
        Some(Counters {
            minor_faults,
            major_faults,
            stops,
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
        let stops = counters.stops.expect("this thread's");
        assert!(stops.pauses >= 2 && stops.paused_ns >= 10_000);
    }

    #[test]
    fn counters_travel_through_the_words() {
        let words = CounterWords::default();
        assert_eq!(words.read(), None);
        let counters = Counters {
            minor_faults: u32::MAX,
            major_faults: 2,
            stops: Some(Stops {
                preemptions: 3,
                pauses: u32::MAX,
                paused_ns: u64::MAX,
            }),
        };
        words.write(Some(&counters));
        assert_eq!(words.read(), Some(counters));
        let faults = Counters {
            stops: None,
            ..counters
        };
        words.write(Some(&faults));
        assert_eq!(words.read(), Some(faults));
        words.write(None);
        assert_eq!(words.read(), None);
        words.counted.store(3, Ordering::Relaxed);
        assert_eq!(words.read(), None, "only 1 and 2 say that there are any");
    }

    #[test]
    fn counters_that_go_back_are_none() {
        let stops = |all| StopsMark {
            preemptions: all,
            pauses: 9,
            paused_ns: all,
        };
        let mark = |all| Mark {
            minor_faults: all,
            major_faults: all,
            stops: Some(stops(all)),
        };
        let none = Counters {
            stops: Some(Stops::default()),
            ..Counters::default()
        };
        assert_eq!(mark(9).until(&mark(9)), none);
        assert_eq!(mark(9).until(&mark(0)), none);
    }

    #[test]
    fn another_processs_page_faults_are_counted() {
        let stat = b"7 (a (b) c) S 1 7 7 0 -1 4194560 100 20 3 4 0 0 0 0 20 0 1 0 42\n";
        assert_eq!(faults(stat), Some((120, 7)));
        for broken in [
            &b""[..],
            b"7 (a",
            b"7 (a)",
            b"7 (a) S 1 2",
            b"7 (a) S 1 7 7 0 -1 0 x 0 0 0 0",
        ] {
            assert_eq!(faults(broken), None);
        }
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("a child");
        let other = Source::Process(OtherProcess::new(child.id()).expect("its counters"));
        let mark = other.read().expect("it runs");
        let counters = mark.until(&other.read().expect("it runs"));
        assert_eq!(counters.stops, None);
        child.kill().expect("killed");
        child.wait().expect("it ends");
        assert!(other.read().is_none(), "it has ended");
        assert!(OtherProcess::new(child.id()).is_err());
    }
}
