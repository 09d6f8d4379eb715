//! What this host has: processors and memory.

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
    /// Reads `/proc/meminfo` and `/proc/pressure/memory`, either of which may be empty.
    pub fn parse(meminfo: &str, pressure: &str) -> Self {
        let field = |name: &str| {
            meminfo
                .lines()
                .filter_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
                .find_map(|rest| rest.split_whitespace().next()?.parse::<u64>().ok())
                .map_or(0, |kib| kib * 1024)
        };
        let stalled_percent = pressure
            .lines()
            .filter_map(|line| line.strip_prefix("full "))
            .flat_map(str::split_whitespace)
            .find_map(|field| field.strip_prefix("avg10=")?.parse().ok())
            .unwrap_or(0.0);
        Self {
            total: field("MemTotal"),
            available: field("MemAvailable"),
            stalled_percent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_files_are_read() {
        let meminfo = "MemTotal:       24000 kB\nMemFree: 1 kB\nMemAvailable:   12000 kB\n";
        let pressure = "some avg10=9.00 avg60=1.00 avg300=0.00 total=3\nfull avg10=2.50 avg60=0.00 avg300=0.00 total=1\n";
        let expected = HostMemory {
            total: 24_000 * 1024,
            available: 12_000 * 1024,
            stalled_percent: 2.5,
        };
        assert_eq!(HostMemory::parse(meminfo, pressure), expected);
        assert_eq!(HostMemory::parse("", ""), HostMemory::default());
    }
}
