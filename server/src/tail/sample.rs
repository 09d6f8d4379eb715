//! One reading of the counters.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use crate::sandbox::Throttling;

/// Bytes of `/proc/stat` that hold its first line.
const STAT_BYTES: usize = 256;
/// Bytes of a file of pressure stall information.
const PRESSURE_BYTES: usize = 256;

/// Counters since the host's start, at one time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Sample {
    /// When, in µs since 1970.
    pub at: i64,
    /// Time of all processors, and of it what was idle and what the hypervisor took, in ticks.
    pub ticks: Ticks,
    /// Time in which something waited for a processor, µs; none where the kernel does not tell.
    pub cpu: Option<u64>,
    /// The same for memory.
    pub memory: Option<u64>,
    /// The same for disks.
    pub io: Option<u64>,
    /// Sandboxes that were ever held back for their quota.
    pub throttled: Vec<Throttled>,
}

/// Processor time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Ticks {
    pub all: u64,
    pub idle: u64,
    pub steal: u64,
}

/// A function's sandboxes together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Throttled {
    pub function: Arc<str>,
    pub periods: u64,
    pub us: u64,
}

/// The kernel's files, held open.
#[derive(Debug)]
pub(super) struct Files {
    stat: Option<File>,
    cpu: Option<File>,
    memory: Option<File>,
    io: Option<File>,
}

impl Files {
    pub(super) fn open() -> Self {
        let open = |path| File::open(path).ok();
        Self {
            stat: open("/proc/stat"),
            cpu: open("/proc/pressure/cpu"),
            memory: open("/proc/pressure/memory"),
            io: open("/proc/pressure/io"),
        }
    }

    /// Reads them.
    pub(super) fn read(&self, at: i64, throttling: Vec<Throttling>) -> Sample {
        let pressure = |file: &Option<File>| some_us(&beginning::<PRESSURE_BYTES>(file.as_ref()?)?);
        let stat = self.stat.as_ref().and_then(beginning::<STAT_BYTES>);
        Sample {
            at,
            ticks: stat.and_then(|text| ticks(&text)).unwrap_or_default(),
            cpu: pressure(&self.cpu),
            memory: pressure(&self.memory),
            io: pressure(&self.io),
            throttled: by_function(throttling),
        }
    }
}

fn beginning<const BYTES: usize>(file: &File) -> Option<String> {
    let mut bytes = [0; BYTES];
    let length = file.read_at(&mut bytes, 0).ok()?;
    Some(String::from_utf8_lossy(&bytes[..length]).into_owned())
}

/// `total` of the line `some` (the kernel's Documentation/accounting/psi.rst).
fn some_us(text: &str) -> Option<u64> {
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let total = some
        .split(' ')
        .find_map(|word| word.strip_prefix("total="))?;
    total.parse().ok()
}

/// The first line of `/proc/stat` (proc_stat(5)): user, nice, system, idle, iowait, irq, softirq, steal; what follows is in the first
/// two already.
fn ticks(stat: &str) -> Option<Ticks> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let fields: Vec<u64> = line
        .split_whitespace()
        .take(8)
        .map_while(|field| field.parse().ok())
        .collect();
    Some(Ticks {
        all: fields.iter().sum(),
        idle: fields.get(3)? + fields.get(4).unwrap_or(&0),
        steal: *fields.get(7).unwrap_or(&0),
    })
}

fn by_function(all: Vec<Throttling>) -> Vec<Throttled> {
    let mut sums: Vec<Throttled> = Vec::new();
    for one in all {
        let us = u64::try_from(one.held.as_micros()).unwrap_or(u64::MAX);
        match sums.iter_mut().find(|sum| sum.function == one.function) {
            Some(sum) => {
                sum.periods += one.periods;
                sum.us = sum.us.saturating_add(us);
            }
            None => sums.push(Throttled {
                function: one.function,
                periods: one.periods,
                us,
            }),
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_kernels_files_are_read_by_their_manuals() {
        let stat = "cpu  10 20 30 400 50 6 7 8 9 0\ncpu0 1 2\n";
        let read = ticks(stat).expect("ticks");
        assert_eq!((read.all, read.idle, read.steal), (531, 450, 8));
        assert_eq!(ticks("cpu 1 2\n"), None);
        let psi = "some avg10=1.00 avg60=0.00 avg300=0.00 total=1234\nfull avg10=0.00 total=7\n";
        assert_eq!(some_us(psi), Some(1234));
        assert_eq!(some_us("full total=7\n"), None);
    }

    #[test]
    fn this_hosts_counters_only_grow() {
        let files = Files::open();
        let (first, second) = (files.read(1, Vec::new()), files.read(2, Vec::new()));
        assert!(first.ticks.all > 0 && second.ticks.all >= first.ticks.all);
        assert!(second.cpu >= first.cpu && second.io >= first.io);
    }

    #[test]
    fn a_functions_sandboxes_are_added_up() {
        let one = |function: &str, ms| Throttling {
            function: function.into(),
            periods: 1,
            held: Duration::from_millis(ms),
        };
        let sums = by_function(vec![one("a", 1), one("b", 2), one("a", 3)]);
        let seen: Vec<_> = sums
            .iter()
            .map(|sum| (&*sum.function, sum.periods, sum.us))
            .collect();
        assert_eq!(seen, [("a", 2, 4_000), ("b", 1, 2_000)]);
    }
}
