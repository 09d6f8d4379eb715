//! What the gateway may do once it runs: Landlock's rules and the system call filter.

use std::os::fd::BorrowedFd;

use hearth_host::process::filter::{Calls, Failure};
use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, PathBeneath, Ruleset,
    RulesetAttr as _, RulesetCreatedAttr as _, RulesetStatus, Scope,
};

/// The newest Landlock whose rights were looked at one by one for what follows; older kernels get what they know.
const LANDLOCK_ABI: ABI = ABI::V6;

/// Forbids all files but those in this directory; to bind and to connect TCP sockets; to signal other processes.
pub(super) fn restrict_files(directory: Option<BorrowedFd<'_>>) -> Result<(), Failure> {
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(LANDLOCK_ABI))?
        .handle_access(AccessNet::from_all(LANDLOCK_ABI))?
        .scope(Scope::from_all(LANDLOCK_ABI))?
        .create()?;
    if let Some(directory) = directory {
        let access = AccessFs::ReadFile | AccessFs::ReadDir | AccessFs::WriteFile;
        rules = rules.add_rule(PathBeneath::new(directory, access))?;
    }
    match rules.restrict_self()?.ruleset {
        RulesetStatus::NotEnforced => Err("the kernel did not enforce the rules".into()),
        _ => Ok(()),
    }
}

/// System calls that it may make, by what makes them. No socket is among them: it has those that it needs, or gets them.
const CALLS: &[(&str, &[i64])] = &[
    (
        "sockets that it has or was given: netlink, the host process, the server",
        &[
            libc::SYS_sendto,
            libc::SYS_recvfrom,
            libc::SYS_sendmsg,
            libc::SYS_recvmsg,
        ],
    ),
    (
        "policies, and settings of the host's network; logging",
        &[
            libc::SYS_openat,
            libc::SYS_getdents64,
            libc::SYS_fstat,
            libc::SYS_statx,
            libc::SYS_lseek,
            libc::SYS_read,
            libc::SYS_pread64,
            libc::SYS_pwrite64,
            libc::SYS_write,
            libc::SYS_writev,
            libc::SYS_close,
        ],
    ),
    (
        "waiting",
        &[
            libc::SYS_epoll_create1,
            libc::SYS_epoll_ctl,
            libc::SYS_epoll_pwait,
            libc::SYS_eventfd2,
            libc::SYS_futex,
            libc::SYS_restart_syscall,
            libc::SYS_nanosleep,
            libc::SYS_clock_nanosleep,
            libc::SYS_clock_gettime,
        ],
    ),
    (
        "memory",
        &[
            libc::SYS_brk,
            libc::SYS_munmap,
            libc::SYS_mremap,
            libc::SYS_madvise,
            libc::SYS_getrandom,
        ],
    ),
    (
        "threads and itself",
        &[
            libc::SYS_set_robust_list,
            libc::SYS_rseq,
            libc::SYS_exit,
            libc::SYS_exit_group,
            libc::SYS_rt_sigaction,
            libc::SYS_rt_sigprocmask,
            libc::SYS_rt_sigreturn,
            libc::SYS_sigaltstack,
            libc::SYS_sched_yield,
            libc::SYS_sched_getaffinity,
            libc::SYS_getcpu,
            libc::SYS_getpid,
            libc::SYS_gettid,
        ],
    ),
];

/// Older names of some of these, which only this architecture has.
#[cfg(target_arch = "x86_64")]
const OLD_CALLS: &[i64] = &[libc::SYS_epoll_wait];
#[cfg(not(target_arch = "x86_64"))]
const OLD_CALLS: &[i64] = &[];

/// The index of an interface, a socket that does not block, and whether it logs to a terminal.
const IOCTLS: [u64; 3] = [libc::SIOCGIFINDEX, libc::FIONBIO, libc::TCGETS];
/// Entries of the maps that it has, and attaching the programs that it has to interfaces (`linux/bpf.h`): it can neither load
/// programs nor make maps.
const BPFS: [u64; 6] = [1, 2, 3, 21, 24, 28];
/// The seals of a policy, and how a directory was opened.
const FCNTLS: [libc::c_int; 2] = [libc::F_GET_SEALS, libc::F_GETFL];
/// Names of threads and of memory.
const PRCTLS: [libc::c_int; 2] = [libc::PR_SET_NAME, libc::PR_SET_VMA];

/// Allows [`CALLS`] and what the gateway needs beside them.
pub(super) fn restrict_calls() -> Result<(), Failure> {
    calls()?.restrict()
}

fn calls() -> Result<Calls, Failure> {
    let all = CALLS.iter().flat_map(|(_, calls)| calls.iter());
    let mut calls = Calls::new(all.chain(OLD_CALLS).copied())?;
    calls.one_of(libc::SYS_ioctl, 1, IOCTLS)?;
    calls.one_of(libc::SYS_bpf, 0, BPFS)?;
    calls.one_of(libc::SYS_fcntl, 1, FCNTLS.map(|command| command as u64))?;
    calls.one_of(libc::SYS_prctl, 0, PRCTLS.map(|option| option as u64))?;
    Ok(calls)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_compiles() {
        assert!(calls().unwrap().program().unwrap().len() < 4096);
    }
}
