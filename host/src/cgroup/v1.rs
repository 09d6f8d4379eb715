//! Control files of cgroup v1.

use std::io;
use std::path::Path;

use super::Directories;
use super::tree::put;
use crate::limits::{CPU_PERIOD_US, Limits, TCP_BUFFERS};

pub fn limit_sandbox(sandbox: &Directories, limits: &Limits) -> io::Result<()> {
    limit_memory(&sandbox.memory, limits.memory)?;
    limit_tcp(&sandbox.memory)?;
    put(&sandbox.pids, "pids.max", limits.pids)?;
    put(&sandbox.cpu, "cpu.shares", limits.cpu_weight.v1)?;
    put(&sandbox.cpu, "cpu.cfs_period_us", CPU_PERIOD_US)?;
    put(&sandbox.cpu, "cpu.cfs_quota_us", limits.cpu_quota_us)
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
