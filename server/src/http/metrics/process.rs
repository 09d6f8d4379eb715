//! Metrics of the server process from `/proc/self`.

use std::fmt::Error;

use procfs_core::FromRead as _;
use procfs_core::process::Stat;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use rustix::param;

/// Figures of the process; 0 for what cannot be read.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Process {
    /// User and system time, seconds.
    pub cpu_seconds: f64,
    /// Resident memory, bytes.
    pub resident_bytes: u64,
    /// Threads.
    pub threads: u64,
    /// Open descriptors.
    pub open_fds: u64,
}

impl Process {
    /// Encodes them.
    pub(super) fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let Process {
            cpu_seconds,
            resident_bytes,
            threads,
            open_fds,
        } = *self;
        encoder
            .encode_descriptor(
                "process_cpu_seconds",
                "User and system time of the server",
                None,
                MetricType::Counter,
            )?
            .encode_counter::<NoLabelSet, _, f64>(&cpu_seconds, None)?;
        for (name, help, value) in [
            (
                "process_resident_memory_bytes",
                "Resident memory of the server",
                resident_bytes,
            ),
            ("process_threads", "Threads of the server", threads),
            (
                "process_open_fds",
                "Open descriptors of the server",
                open_fds,
            ),
        ] {
            encoder
                .encode_descriptor(name, help, None, MetricType::Gauge)?
                .encode_gauge(&value)?;
        }
        Ok(())
    }
}

/// Reads them.
pub(super) fn read() -> Process {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let open_fds = std::fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count() as u64);
    Process {
        open_fds,
        ..parse(
            &stat,
            param::clock_ticks_per_second(),
            param::page_size() as u64,
        )
    }
}

fn parse(stat: &str, ticks: u64, page: u64) -> Process {
    let Ok(stat) = Stat::from_read(stat.as_bytes()) else {
        return Process::default();
    };
    Process {
        cpu_seconds: (stat.utime + stat.stime) as f64 / ticks.max(1) as f64,
        resident_bytes: stat.rss * page,
        threads: u64::try_from(stat.num_threads).unwrap_or(0),
        open_fds: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_is_parsed_behind_a_hostile_name() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194304 1 0 0 0 150 50 0 0 20 0 9 0 100 1000 25 9 1 1 0 0 0 0 0 0 0 0 0 0 17";
        let process = parse(stat, 100, 4096);
        assert_eq!(process.cpu_seconds, 2.0);
        assert_eq!(process.threads, 9);
        assert_eq!(process.resident_bytes, 25 * 4096);
        assert_eq!(parse("", 100, 4096), Process::default());
    }

    #[test]
    fn this_process_has_memory_and_descriptors() {
        let process = read();
        assert!(process.resident_bytes > 0 && process.open_fds > 0 && process.threads > 0);
    }
}
