//! The machine, as the kernel describes it.

use super::document::SystemInfo;

/// Describes this machine.
pub fn describe() -> SystemInfo {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let memory_kb: u64 = value_in("/proc/meminfo", "MemTotal")
        .trim_end_matches("kB")
        .trim()
        .parse()
        .unwrap_or(0);
    SystemInfo {
        os: value_in("/etc/os-release", "PRETTY_NAME"),
        kernel_version: kernel.trim().to_owned(),
        cpu_model: value_in("/proc/cpuinfo", "model name"),
        cpu_cores: std::thread::available_parallelism().map_or(1, usize::from),
        memory_bytes: memory_kb * 1024,
    }
}

/// The value of the first line `KEY: VALUE` or `KEY=VALUE`; empty if there is no such line.
fn value_in(file: &str, key: &str) -> String {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines()
        .find(|line| line.starts_with(key))
        .and_then(|line| line.split_once([':', '=']))
        .map(|(_, value)| value.trim().trim_matches('"').to_owned())
        .unwrap_or_default()
}
