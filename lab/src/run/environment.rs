//! The machine that the lab runs on.

use std::fs;
use std::thread;

use rustix::time::{ClockId, clock_getres};
use serde::Serialize;

/// What a reader needs to know of the machine to compare results.
#[derive(Debug, Serialize)]
pub struct Environment {
    /// Name and release of the kernel.
    pub kernel: String,
    /// Name of the processor, where the kernel tells it.
    pub processor: Option<String>,
    /// Processors that may be used.
    pub processors: usize,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// What the kernel takes the time from.
    pub clock_source: Option<String>,
    /// Resolution of the monotonic clock, in ns.
    pub clock_resolution_ns: i64,
    /// Least time between two different readings of it, in ns: what a time stamp costs.
    pub clock_step_ns: u64,
}

impl Environment {
    /// Of this machine, now.
    pub fn read() -> Self {
        let name = rustix::system::uname();
        let resolution = clock_getres(ClockId::Monotonic);
        let first_value = |path: &str, key: &str| {
            let text = fs::read_to_string(path).ok()?;
            let line = text.lines().find(|line| line.starts_with(key))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        };
        let memory = first_value("/proc/meminfo", "MemTotal");
        let memory = memory.and_then(|text| text.split_whitespace().next()?.parse::<u64>().ok());
        let source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        Self {
            kernel: format!(
                "{} {}",
                name.sysname().to_string_lossy(),
                name.release().to_string_lossy()
            ),
            processor: first_value("/proc/cpuinfo", "model name"),
            processors: thread::available_parallelism().map_or(1, Into::into),
            memory_bytes: memory.map(|kib| kib * 1024),
            clock_source: fs::read_to_string(source)
                .ok()
                .map(|text| text.trim().to_owned()),
            clock_resolution_ns: resolution.tv_sec * 1_000_000_000 + resolution.tv_nsec,
            clock_step_ns: clock_step(),
        }
    }
}

/// The least difference of a thousand neighbouring readings.
fn clock_step() -> u64 {
    let mut least = u64::MAX;
    let mut last = std::time::Instant::now();
    for _ in 0..1_000 {
        let now = std::time::Instant::now();
        let step = u64::try_from((now - last).as_nanos()).unwrap_or(u64::MAX);
        if step > 0 {
            least = least.min(step);
        }
        last = now;
    }
    least
}

/// Processor time of the whole machine since it was booted, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Steal {
    stolen: u64,
    all: u64,
}

impl Steal {
    pub(crate) fn read() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// Of `/proc/stat`, whose first line has user, nice, system, idle, iowait, irq, softirq and steal; guests are in user.
    fn parse(text: &str) -> Option<Self> {
        let fields = text
            .lines()
            .next()?
            .strip_prefix("cpu ")?
            .split_whitespace();
        let ticks: Vec<u64> = fields
            .take(8)
            .map_while(|field| field.parse().ok())
            .collect();
        Some(Self {
            stolen: *ticks.get(7)?,
            all: ticks.iter().sum(),
        })
    }

    /// The share that a hypervisor took since then.
    pub(crate) fn share_since(self, before: Self) -> Option<f64> {
        let all = self.all.checked_sub(before.all).filter(|all| *all > 0)?;
        Some(self.stolen.saturating_sub(before.stolen) as f64 / all as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_is_a_share_of_all_time() {
        let before = Steal::parse("cpu  10 0 10 70 5 0 5 0 3 0\ncpu0 1\n").expect("eight fields");
        let after = Steal::parse("cpu  20 0 20 140 5 0 5 10 3 0\n").expect("eight fields");
        assert_eq!(after.share_since(before), Some(0.1));
        assert_eq!(before.share_since(before), None);
        assert_eq!(Steal::parse("cpu  1 2 3\n"), None);
    }

    #[test]
    fn this_machine_has_an_environment() {
        let found = Environment::read();
        assert!(
            found.kernel.starts_with("Linux ") && found.processors > 0,
            "{found:?}"
        );
        assert!(found.memory_bytes > Some(1 << 20) && found.clock_resolution_ns > 0);
    }
}
