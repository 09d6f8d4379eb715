//! What this host has: processors and memory.

use procfs_core::{FromBufRead as _, FromRead as _, Meminfo, MemoryPressure, VmStat};

/// Processors that this process may use.
#[must_use]
pub fn cores() -> u32 {
    std::thread::available_parallelism()
        .map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(u32::MAX))
}

/// The host's memory. A figure that is not known is 0.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct HostMemory {
    /// MemTotal, bytes; 0 when unknown.
    pub total: u64,
    /// MemAvailable, bytes.
    pub available: u64,
    /// PSI's `full avg10`, percent. It includes those who wait because of their own cgroup's limit.
    pub stalled_percent: f64,
    /// How often the kernel has reclaimed memory since it booted because the host had too little: in the background (`pageoutrun`) or for
    /// somebody who waited (`allocstall_…`). What it reclaims because of a cgroup's limit is not among them (`mm/vmscan.c`), unlike
    /// in `pgscan_…` of newer kernels.
    pub reclaims: u64,
}

impl HostMemory {
    /// Reads `/proc/meminfo`, `/proc/pressure/memory` and `/proc/vmstat`.
    #[must_use]
    pub fn read() -> Self {
        let text = |path| std::fs::read_to_string(path).unwrap_or_default();
        Self::parse(
            &text("/proc/meminfo"),
            &text("/proc/pressure/memory"),
            &text("/proc/vmstat"),
        )
    }

    /// What the files say, each of which may be empty.
    fn parse(meminfo: &str, pressure: &str, vmstat: &str) -> Self {
        let memory = Meminfo::from_read(meminfo.as_bytes()).ok();
        let pressure = MemoryPressure::from_read(pressure.as_bytes());
        let counters = VmStat::from_buf_read(vmstat.as_bytes())
            .map(|VmStat(counters)| counters)
            .unwrap_or_default();
        let reclaims = counters
            .iter()
            .filter(|(name, _)| *name == "pageoutrun" || name.starts_with("allocstall_"));
        Self {
            total: memory.as_ref().map_or(0, |memory| memory.mem_total),
            available: memory.and_then(|memory| memory.mem_available).unwrap_or(0),
            stalled_percent: pressure.map_or(0.0, |pressure| pressure.full.avg10.into()),
            reclaims: reclaims.map(|(_, count)| count.unsigned_abs()).sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_files_are_read() {
        let others = "Buffers Cached SwapCached Active Inactive SwapTotal SwapFree Dirty Writeback Mapped Slab \
                      Committed_AS VmallocTotal VmallocUsed VmallocChunk HugePages_Free";
        let others: String = others
            .split(' ')
            .map(|name| format!("{name}: 7 kB\n"))
            .collect();
        let meminfo =
            format!("MemTotal:       24000 kB\nMemFree: 1 kB\nMemAvailable:   12000 kB\n{others}");
        let pressure = "some avg10=9.00 avg60=1.00 avg300=0.00 total=3\nfull avg10=2.50 avg60=0.00 avg300=0.00 total=1\n";
        let expected = HostMemory {
            total: 24_000 * 1024,
            available: 12_000 * 1024,
            stalled_percent: 2.5,
            reclaims: 42,
        };
        let vmstat = "pageoutrun 30\nallocstall_dma 0\nallocstall_normal 5\nallocstall_movable 7\npgscan_direct 9\n";
        assert_eq!(HostMemory::parse(&meminfo, pressure, vmstat), expected);
        assert_eq!(HostMemory::parse("", "", ""), HostMemory::default());
        let here = HostMemory::read();
        assert!(here.total > here.available && here.available > 0);
    }
}
