//! What this host has: processors and memory.

use procfs_core::{FromRead as _, Meminfo, MemoryPressure};

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
    /// PSI's `full avg10`, percent.
    pub stalled_percent: f64,
}

impl HostMemory {
    /// Reads `/proc/meminfo` and `/proc/pressure/memory`.
    #[must_use]
    pub fn read() -> Self {
        let text = |path| std::fs::read_to_string(path).unwrap_or_default();
        Self::parse(&text("/proc/meminfo"), &text("/proc/pressure/memory"))
    }

    /// What both files say, either of which may be empty.
    fn parse(meminfo: &str, pressure: &str) -> Self {
        let memory = Meminfo::from_read(meminfo.as_bytes()).ok();
        let pressure = MemoryPressure::from_read(pressure.as_bytes());
        Self {
            total: memory.as_ref().map_or(0, |memory| memory.mem_total),
            available: memory.and_then(|memory| memory.mem_available).unwrap_or(0),
            stalled_percent: pressure.map_or(0.0, |pressure| pressure.full.avg10.into()),
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
        };
        assert_eq!(HostMemory::parse(&meminfo, pressure), expected);
        assert_eq!(HostMemory::parse("", ""), HostMemory::default());
        let here = HostMemory::read();
        assert!(here.total > here.available && here.available > 0);
    }
}
