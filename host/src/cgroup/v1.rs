//! Control files of cgroup v1.

use std::fs;
use std::io;
use std::path::Path;

use super::processes::listed;
use super::tree::{about, put};
use super::{Directories, PROCS};
use crate::limits::{CPU_PERIOD_US, Limits, TCP_BUFFERS};

pub fn limit_sandbox(sandbox: &Directories, limits: &Limits) -> io::Result<()> {
    limit_memory(&sandbox.memory, limits.memory)?;
    limit_tcp(&sandbox.memory)?;
    put(&sandbox.pids, "pids.max", limits.pids)?;
    put(&sandbox.cpu, "cpu.shares", limits.cpu_weight.v1)?;
    put(&sandbox.cpu, "cpu.cfs_period_us", CPU_PERIOD_US)?;
    put(&sandbox.cpu, "cpu.cfs_quota_us", limits.cpu_quota_us)
}

/// Limits an instance's share of the sandbox's processor time: what is in its leaf gets a directory in the hierarchy of the CPU.
pub fn limit_cpu(leaf: &Path, cpu: &Path, quota_us: u64) -> io::Result<()> {
    if let Err(error) = fs::create_dir(cpu)
        && error.kind() != io::ErrorKind::AlreadyExists
    {
        return Err(about(cpu, &error));
    }
    put(cpu, "cpu.cfs_period_us", CPU_PERIOD_US)?;
    put(cpu, "cpu.cfs_quota_us", quota_us)?;
    // What they start from now on is there as well. Of a process that starts others meanwhile one may be missed until the next time.
    let there = listed(cpu);
    for process in listed(leaf) {
        if !there.contains(&process) {
            // It may have ended.
            let _ = fs::write(cpu.join(PROCS), process.to_string());
        }
    }
    Ok(())
}

/// Limits memory, and memory plus swap to the same where swap is counted, so that none is swapped out.
pub fn limit_memory(dir: &Path, bytes: u64) -> io::Result<()> {
    const WITH_SWAP: &str = "memory.memsw.limit_in_bytes";
    put(dir, "memory.limit_in_bytes", bytes)?;
    if dir.join(WITH_SWAP).exists() {
        put(dir, WITH_SWAP, bytes)?;
    }
    Ok(())
}

/// Limits what the buffers of TCP and UDP take, which v1 counts beside the memory and only where this is set. A kernel without
/// it has no such counter.
fn limit_tcp(sandbox: &Path) -> io::Result<()> {
    const BUFFERS: &str = "memory.kmem.tcp.limit_in_bytes";
    if sandbox.join(BUFFERS).exists() {
        put(sandbox, BUFFERS, TCP_BUFFERS)?;
    }
    Ok(())
}
