//! State of the host: CPU, memory, disk, and the server's own usage.

use std::path::Path;

use procfs_core::process::StatM;
use procfs_core::{FromRead as _, LoadAverage};
use rustix::param;

use crate::system::HostMemory;

/// Figures of the host; 0 for what cannot be read.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Host {
    /// Share of all processors' time that was not idle since the sample before, 0 to 1; none in the first sample.
    pub cpu: Option<f64>,
    /// Processors the server may use.
    pub cpus: usize,
    /// Load averages over 1, 5 and 15 minutes.
    pub load: [f64; 3],
    /// Memory, bytes.
    pub memory_total: u64,
    /// Available without swapping.
    pub memory_available: u64,
    /// Size of the file system the data directory is on, bytes.
    pub disk_total: u64,
    /// The part of it that the server may still write.
    pub disk_available: u64,
    /// Resident memory of the server, bytes.
    pub resident: u64,
}

/// Processor time since boot, in ticks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Ticks {
    idle: u64,
    all: u64,
}

/// Reads everything. `before` is what the last reading returned.
pub(super) fn read(data_dir: &Path, before: Option<Ticks>) -> (Host, Option<Ticks>) {
    let text = |path| std::fs::read_to_string(path).unwrap_or_default();
    let memory = HostMemory::read();
    let ticks = ticks(&text("/proc/stat"));
    let disk = rustix::fs::statvfs(data_dir).ok();
    let host = Host {
        cpu: before
            .zip(ticks)
            .and_then(|(before, now)| busy(before, now)),
        cpus: crate::system::cores() as usize,
        load: load(&text("/proc/loadavg")),
        memory_total: memory.total,
        memory_available: memory.available,
        disk_total: disk.as_ref().map_or(0, |d| d.f_blocks * d.f_frsize),
        disk_available: disk.as_ref().map_or(0, |d| d.f_bavail * d.f_frsize),
        resident: resident(&text("/proc/self/statm")),
    };
    (host, ticks)
}

/// The first line of `/proc/stat` (proc_stat(5)): user, nice, system, idle, iowait, irq, softirq, steal; what follows is
/// in the first two already. procfs-core's `KernelStats` would parse every processor's line, and asks for the boot time.
fn ticks(stat: &str) -> Option<Ticks> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let fields: Vec<u64> = line
        .split_whitespace()
        .take(8)
        .map_while(|field| field.parse().ok())
        .collect();
    Some(Ticks {
        idle: fields.get(3)? + fields.get(4).unwrap_or(&0),
        all: fields.iter().sum(),
    })
}

/// Share of the time between two readings that was not idle; none when there was no time between them.
fn busy(before: Ticks, now: Ticks) -> Option<f64> {
    let all = now.all.checked_sub(before.all).filter(|all| *all > 0)?;
    // The time waited for disks may go backwards on some kernels.
    let idle = now.idle.saturating_sub(before.idle).min(all);
    Some((all - idle) as f64 / all as f64)
}

fn load(text: &str) -> [f64; 3] {
    let load = LoadAverage::from_read(text.as_bytes());
    load.map_or([0.0; 3], |load| {
        [load.one, load.five, load.fifteen].map(f64::from)
    })
}

/// Resident memory, bytes.
fn resident(statm: &str) -> u64 {
    let sizes = StatM::from_read(statm.as_bytes());
    sizes.map_or(0, |sizes| sizes.resident) * param::page_size() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_the_share_that_was_not_idle() {
        let before = ticks("cpu  100 0 100 700 100 0 0 0 50 0\ncpu0 1 2\n").unwrap();
        assert_eq!(
            before,
            Ticks {
                idle: 800,
                all: 1000
            }
        );
        let now = ticks("cpu  150 0 125 750 175 0 0 0 50 0\n").unwrap();
        assert_eq!(busy(before, now), Some(75.0 / 200.0));
        assert_eq!(busy(now, now), None);
        assert_eq!(busy(now, before), None);
        assert_eq!(ticks(""), None);
        assert_eq!(ticks("cpu x"), None);
    }

    #[test]
    fn this_host_has_processors_memory_and_a_disk() {
        let (first, ticks) = read(Path::new("/"), None);
        assert!(first.cpu.is_none() && ticks.is_some());
        assert!(first.cpus > 0 && first.memory_total > first.memory_available);
        assert!(first.disk_total > 0 && first.resident > 0);
        let (nowhere, _) = read(Path::new("/no/such/place"), None);
        assert_eq!(nowhere.disk_total, 0);
    }

    #[test]
    fn averages_and_pages_are_read_by_place() {
        assert_eq!(load("0.50 1.25 2.00 1/234 5678\n"), [0.5, 1.25, 2.0]);
        assert_eq!(load(""), [0.0; 3]);
        assert_eq!(resident(""), 0);
        assert_eq!(resident("100 7 3 1 0 9 0\n"), 7 * param::page_size() as u64);
    }
}
