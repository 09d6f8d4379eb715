//! What the kernel reports of one process: memory, time, threads, descriptors, mappings.
//!
//! Not parsed by `procfs-core`: tests ask for flags of mappings that it drops (`dp`, `sl`).

use std::fs;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

/// A mapping of a process's memory.
#[derive(Debug)]
pub struct Mapping {
    /// Its addresses.
    pub range: Range<u64>,
    /// `VmFlags` in their two letters each, as proc(5) lists them.
    pub flags: Vec<String>,
}

/// A figure of `/proc/PID/status`: `VmHWM`, the most memory it had so far, in KiB.
///
/// # Errors
/// When the process is gone or tells no such figure.
pub fn status(pid: u32, name: &str) -> io::Result<u64> {
    figure(&read(pid, "status")?, name)
}

/// Proportional set size in KiB.
///
/// # Errors
/// When the process is gone.
pub fn pss_kib(pid: u32) -> io::Result<u64> {
    figure(&read(pid, "smaps_rollup")?, "Pss")
}

/// What nobody shares with it, in KiB.
///
/// # Errors
/// When the process is gone.
pub fn private_kib(pid: u32) -> io::Result<u64> {
    let text = read(pid, "smaps_rollup")?;
    Ok(figure(&text, "Private_Clean")? + figure(&text, "Private_Dirty")?)
}

/// User and system time of the threads that it has, finer than the ticks of `/proc/PID/stat`.
///
/// # Errors
/// When the process is gone, or a thread ends meanwhile.
pub fn cpu_time(pid: u32) -> io::Result<Duration> {
    let mut sum = 0;
    for thread in threads(pid)? {
        let text = read(pid, &format!("task/{thread}/schedstat"))?;
        let time = text.split_whitespace().next();
        sum += time
            .and_then(|time| time.parse::<u64>().ok())
            .ok_or_else(|| missing("schedstat"))?;
    }
    Ok(Duration::from_nanos(sum))
}

/// User and system time, of threads that have ended as well: in the ticks of `/proc/PID/stat`, 10 ms each. None when it has
/// ended.
pub fn cpu_ticks(pid: u32) -> Option<Duration> {
    const TICK: Duration = Duration::from_millis(10);
    let text = read(pid, "stat").ok()?;
    let (_, tail) = text.rsplit_once(')')?;
    let mut fields = tail.split_whitespace().skip(11);
    let user: u32 = fields.next()?.parse().ok()?;
    let system: u32 = fields.next()?.parse().ok()?;
    Some(TICK * (user + system))
}

/// Its threads.
///
/// # Errors
/// When the process is gone.
pub fn threads(pid: u32) -> io::Result<Vec<u32>> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"))?;
    let ids = tasks
        .flatten()
        .filter_map(|task| task.file_name().to_str()?.parse().ok());
    Ok(ids.collect())
}

/// Its children, those that nobody has waited for included, oldest first.
///
/// # Errors
/// When the process is gone.
pub fn children(pid: u32) -> io::Result<Vec<u32>> {
    let text = read(pid, &format!("task/{pid}/children"))?;
    let pids = text.split_whitespace().filter_map(|pid| pid.parse().ok());
    Ok(pids.collect())
}

/// What its descriptors lead to, in no order: a path, with ` (deleted)` behind it where that is so, or a kind such as
/// `socket:[1234]`.
///
/// # Errors
/// When the process is gone.
pub fn descriptors(pid: u32) -> io::Result<Vec<PathBuf>> {
    let links = fs::read_dir(format!("/proc/{pid}/fd"))?;
    // One may be closed meanwhile.
    let targets = links.flatten().map(|link| fs::read_link(link.path()));
    Ok(targets.flatten().collect())
}

/// Its mappings by address.
///
/// # Errors
/// When the process is gone.
pub fn mappings(pid: u32) -> io::Result<Vec<Mapping>> {
    let mut found: Vec<Mapping> = Vec::new();
    for line in read(pid, "smaps")?.lines() {
        if let Some(flags) = line.strip_prefix("VmFlags:") {
            let last = found.last_mut().ok_or_else(|| missing("mapping"))?;
            last.flags = flags.split_whitespace().map(str::to_owned).collect();
            continue;
        }
        let first = line.split_whitespace().next().unwrap_or_default();
        let Some((start, end)) = first.split_once('-') else {
            continue;
        };
        let address = |text| u64::from_str_radix(text, 16).map_err(|_| missing("address"));
        found.push(Mapping {
            range: address(start)?..address(end)?,
            flags: Vec::new(),
        });
    }
    Ok(found)
}

fn read(pid: u32, file: &str) -> io::Result<String> {
    fs::read_to_string(format!("/proc/{pid}/{file}"))
}

/// The number in the line of this name.
fn figure(text: &str, name: &str) -> io::Result<u64> {
    text.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
        .and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        .ok_or_else(|| missing(name))
}

fn missing(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("no {what}"))
}
