//! What the server may do once it runs: Landlock's rules and the system call filter.

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, NetPort,
    PathBeneath, PathFd, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetStatus, Scope,
};

use super::filter::{Calls, Failure};
use super::internet_sockets::internet_sockets;
use super::server::{DATA_PLACE, RUNTIMES_PLACE};

/// The newest Landlock whose rights were looked at one by one for what follows; older kernels get what they know.
const LANDLOCK_ABI: ABI = ABI::V6;
/// What it reads: time zones and the like, processes, cgroups and figures of the host.
const READABLE: [&str; 5] = ["/usr", "/etc", "/proc", "/sys", RUNTIMES_PLACE];

/// Restricts files to [`READABLE`] and the data directory, in which it may do all but execute; forbids to bind TCP sockets, to
/// connect them to other ports than these, and to signal processes but its own.
pub(super) fn restrict_files(connect: &[u16]) -> Result<(), Failure> {
    let all = AccessFs::from_all(LANDLOCK_ABI);
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .handle_access(AccessNet::from_all(LANDLOCK_ABI))?
        .scope(Scope::from_all(LANDLOCK_ABI))?
        .create()?;
    let mut allow = |path: &str, access: BitFlags<AccessFs>| -> Result<(), Failure> {
        (&mut rules).add_rule(PathBeneath::new(PathFd::new(path)?, access))?;
        Ok(())
    };
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    for path in READABLE {
        allow(path, read)?;
    }
    allow("/dev/null", AccessFs::ReadFile | AccessFs::WriteFile)?;
    allow("/dev/urandom", AccessFs::ReadFile.into())?;
    allow(DATA_PLACE, all & !AccessFs::Execute)?;
    for port in connect {
        rules = rules.add_rule(NetPort::new(*port, AccessNet::ConnectTcp))?;
    }
    match rules.restrict_self()?.ruleset {
        RulesetStatus::NotEnforced => Err("the kernel did not enforce the rules".into()),
        _ => Ok(()),
    }
}

/// System calls that it may make, by what makes them.
const CALLS: &[(&str, &[i64])] = &[
    (
        "files: packages, images, the database",
        &[
            libc::SYS_read,
            libc::SYS_write,
            libc::SYS_readv,
            libc::SYS_writev,
            libc::SYS_pread64,
            libc::SYS_pwrite64,
            libc::SYS_openat,
            libc::SYS_close,
            libc::SYS_fstat,
            libc::SYS_newfstatat,
            libc::SYS_statx,
            libc::SYS_lseek,
            libc::SYS_fcntl,
            libc::SYS_flock,
            libc::SYS_ftruncate,
            libc::SYS_fallocate,
            libc::SYS_fsync,
            libc::SYS_fdatasync,
            libc::SYS_syncfs,
            libc::SYS_renameat,
            libc::SYS_renameat2,
            libc::SYS_unlinkat,
            libc::SYS_mkdirat,
            libc::SYS_symlinkat,
            libc::SYS_linkat,
            libc::SYS_readlinkat,
            libc::SYS_getcwd,
            libc::SYS_umask,
            libc::SYS_fchmod,
            libc::SYS_fchmodat,
            libc::SYS_fchown,
            libc::SYS_utimensat,
            libc::SYS_getdents64,
            libc::SYS_statfs,
            libc::SYS_fstatfs,
            libc::SYS_faccessat,
            libc::SYS_faccessat2,
            libc::SYS_copy_file_range,
            libc::SYS_sendfile,
            libc::SYS_fadvise64,
        ],
    ),
    (
        "sockets that it has or was given: clients, templates, the host process",
        &[
            libc::SYS_socketpair,
            libc::SYS_accept4,
            libc::SYS_getsockname,
            libc::SYS_getpeername,
            libc::SYS_getsockopt,
            libc::SYS_setsockopt,
            libc::SYS_shutdown,
            libc::SYS_sendto,
            libc::SYS_recvfrom,
            libc::SYS_sendmsg,
            libc::SYS_recvmsg,
        ],
    ),
    (
        "waiting: the async runtime, pidfds of instances",
        &[
            libc::SYS_epoll_create1,
            libc::SYS_epoll_ctl,
            libc::SYS_epoll_pwait,
            libc::SYS_epoll_pwait2,
            libc::SYS_ppoll,
            libc::SYS_eventfd2,
            libc::SYS_timerfd_create,
            libc::SYS_timerfd_settime,
            libc::SYS_pipe2,
            libc::SYS_dup,
            libc::SYS_dup3,
            libc::SYS_pidfd_open,
            libc::SYS_futex,
            // Whether the host has it, which chains' members sleep in.
            libc::SYS_futex_waitv,
            libc::SYS_restart_syscall,
            libc::SYS_nanosleep,
            libc::SYS_clock_nanosleep,
            libc::SYS_clock_gettime,
            libc::SYS_clock_getres,
            libc::SYS_gettimeofday,
        ],
    ),
    (
        "memory: the allocator, channels, the database's index",
        &[
            libc::SYS_brk,
            libc::SYS_munmap,
            libc::SYS_mremap,
            libc::SYS_madvise,
            libc::SYS_mincore,
            libc::SYS_msync,
            libc::SYS_memfd_create,
            libc::SYS_membarrier,
            libc::SYS_getrandom,
        ],
    ),
    (
        "threads and itself",
        &[
            libc::SYS_set_robust_list,
            libc::SYS_get_robust_list,
            libc::SYS_rseq,
            libc::SYS_set_tid_address,
            libc::SYS_exit,
            libc::SYS_exit_group,
            libc::SYS_rt_sigaction,
            libc::SYS_rt_sigprocmask,
            libc::SYS_rt_sigreturn,
            libc::SYS_sigaltstack,
            libc::SYS_tgkill,
            libc::SYS_sched_yield,
            libc::SYS_sched_getaffinity,
            libc::SYS_sched_setattr,
            libc::SYS_sched_getattr,
            libc::SYS_setpriority,
            libc::SYS_sched_getparam,
            libc::SYS_sched_getscheduler,
            libc::SYS_getcpu,
            libc::SYS_getpid,
            libc::SYS_getppid,
            libc::SYS_gettid,
            libc::SYS_getuid,
            libc::SYS_geteuid,
            libc::SYS_getgid,
            libc::SYS_getegid,
            libc::SYS_getrusage,
            libc::SYS_prlimit64,
            libc::SYS_sysinfo,
            libc::SYS_uname,
        ],
    ),
];

/// Older names of some of these, which only this architecture has.
#[cfg(target_arch = "x86_64")]
const OLD_CALLS: &[i64] = &[
    libc::SYS_open,
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_access,
    libc::SYS_readlink,
    libc::SYS_rename,
    libc::SYS_unlink,
    libc::SYS_mkdir,
    libc::SYS_rmdir,
    libc::SYS_symlink,
    libc::SYS_link,
    libc::SYS_chmod,
    libc::SYS_epoll_wait,
    libc::SYS_poll,
    libc::SYS_pipe,
    libc::SYS_dup2,
    libc::SYS_time,
    libc::SYS_getrlimit,
    libc::SYS_setrlimit,
    libc::SYS_arch_prctl,
];
#[cfg(not(target_arch = "x86_64"))]
const OLD_CALLS: &[i64] = &[];

/// What it may ask of a device, and a terminal is one: nothing by which it could type into it (`TIOCSTI`).
const IOCTLS: [u64; 5] = [
    libc::FIONBIO,
    libc::FIONREAD,
    libc::FIOCLEX,
    // Whether it is a terminal at all.
    libc::TCGETS,
    libc::TCGETS2,
];
/// What it may change of itself: names of threads and of memory. Not that it ends with the host process.
const PRCTLS: [libc::c_int; 2] = [libc::PR_SET_NAME, libc::PR_SET_VMA];

/// What it may do with a map of eBPF: look up, update, delete, list keys, and ask what it is. It makes none, and loads nothing.
const MAP_COMMANDS: [u64; 5] = [1, 2, 3, 4, 15];

/// Allows [`CALLS`] and what the server needs beside them.
pub(super) fn restrict_calls() -> Result<(), Failure> {
    calls()?.restrict()
}

fn calls() -> Result<Calls, Failure> {
    let all = CALLS.iter().flat_map(|(_, calls)| calls.iter());
    let mut calls = Calls::new(all.chain(OLD_CALLS).copied())?;
    calls.one_of(libc::SYS_ioctl, 1, IOCTLS)?;
    calls.one_of(libc::SYS_prctl, 0, PRCTLS.map(|option| option as u64))?;
    // The maps of the ingress, through the descriptors that it has.
    calls.one_of(libc::SYS_bpf, 0, MAP_COMMANDS)?;
    // Questions to DNS servers, and MQTT brokers: sockets of the Internet, no others. To which TCP ports they connect, Landlock says.
    calls.allow(libc::SYS_socket, internet_sockets()?);
    calls.allow(libc::SYS_bind, Vec::new());
    calls.allow(libc::SYS_connect, Vec::new());
    Ok(calls)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_compiles_and_lists_no_call_twice() {
        assert!(calls().unwrap().program().unwrap().len() < 4096);
        let mut all: Vec<i64> = CALLS.iter().flat_map(|(_, calls)| calls.to_vec()).collect();
        all.extend(OLD_CALLS);
        let before = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), before);
    }
}
