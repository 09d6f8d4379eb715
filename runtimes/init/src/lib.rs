//! The protocol between the server and `hearth-init`.
//!
//! `hearth-init` is the jail and PID 1 of a sandbox. The server starts it with one end of a SEQPACKET socket pair as
//! its standard input, and sends one [`START`] datagram with its descriptors. A pre-warmed sandbox, started without a
//! function, gets one later, with [`ASSIGN`]. Every other datagram from the server is a one-byte command ([`SWEEP`]);
//! every datagram to the server is a [`Report`]. End of file on the socket means that the other side is gone.

#![deny(unsafe_code)]

use std::path::PathBuf;

pub mod criu;
pub mod fields;
pub mod wire;

use criu::{CriuProgram, RestoreSpec};

/// First datagram to init: comes with the descriptors of [`START_FDS`].
pub const START: u8 = b'S';
/// To a pre-warmed sandbox: its function. Comes with the [`Assignment`] in a memfd.
pub const ASSIGN: u8 = b'A';
/// To a PID 1 whose function has a network, before the template runs: it is there.
pub const NETWORK: u8 = b'N';
/// Command to PID 1: kill every process that was reparented to it, which is what dead instances leave behind.
pub const SWEEP: u8 = b'W';
/// The template finds its control socket under this number.
pub const TEMPLATE_CONTROL_FD: i32 = 3;
/// Descriptors that come with [`START`]: the [`JailSpec`] in a memfd, then the template's stdout and stderr.
pub const START_FDS: usize = 3;
/// Longest [`Report`] in bytes; protects the server's receive buffer. Details are cut to fit.
pub const MAX_REPORT: usize = 4096;
/// The template's number inside. Far above what helpers of a restore take before it, since a process is restored under
/// its old number and that must be free; far below `pid_max` of the smallest machine.
pub const TEMPLATE_PID: i32 = 1000;
/// User and group of the template and the instances, as they see it. Host id: `uid_base + 1`.
pub const INNER_UID: u32 = 1000;

/// Everything `hearth-init` needs to know to build one sandbox.
#[derive(Debug, Clone)]
pub struct JailSpec {
    /// Existing private directory that becomes the root; init fills it.
    pub root: PathBuf,
    /// `cgroup.procs` (or v1 `cgroup.procs`) files into which init writes itself before it does anything else.
    pub cgroup_procs: Vec<PathBuf>,
    /// Host uid and gid of PID 1 (0 inside); the next one is that of template and instances (1000 inside).
    pub uid_base: u32,
    /// Host directory bound read-only to `/opt/hearth/<runtime_name>`.
    pub runtime_dir: PathBuf,
    /// Directory name below `/opt/hearth`.
    pub runtime_name: String,
    /// The CRIU that dumps or restores the template. For a dump, the root contains its notes on the kernel.
    pub criu: Option<CriuProgram>,
    /// Existing host directory for a restoring CRIU: its log goes to [`criu::WORK`] in it, and the image of a
    /// pre-warmed sandbox is mounted on [`criu::IMAGE`].
    pub criu_dir: Option<PathBuf>,
    /// The function. Without one this is a pre-warmed sandbox, with CRIU started in it, for a function assigned later;
    /// it then needs `criu` and `criu_dir`.
    pub assignment: Option<Assignment>,
}

/// The function a sandbox is for.
#[derive(Debug, Clone)]
pub struct Assignment {
    /// Host name inside.
    pub hostname: String,
    /// Host directory below which the code is. Nobody but root can change the way to it.
    pub code_root: PathBuf,
    /// The code in it, bound read-only to `/var/task`; no link on the way there is followed.
    pub code: PathBuf,
    /// Program and arguments of the template, as seen inside; the program is an absolute path.
    pub argv: Vec<String>,
    /// The template's whole environment.
    pub env: Vec<(String, String)>,
    /// Size of `/tmp` in bytes.
    pub tmp_bytes: u64,
    /// Size of `/dev/shm` in bytes.
    pub shm_bytes: u64,
    /// Most processes and threads of the sandbox's user (`RLIMIT_NPROC`), a second guard beside the cgroup's.
    pub max_processes: u64,
    /// Largest file in bytes (`RLIMIT_FSIZE`).
    pub max_file_bytes: u64,
    /// Restore the template from an image instead of starting `argv`. Needs `criu` and `criu_dir`.
    pub restore: Option<RestoreSpec>,
    /// Whether it has a network, which comes from outside: PID 1 waits for [`NETWORK`] before the template runs.
    pub network: bool,
    /// A certificate, PEM, that it trusts besides those that the host does.
    pub trust: Option<String>,
    /// Which of the processors that the sandbox may use is its only one, by its place among them.
    pub processor: Option<u32>,
}

fields_of!(JailSpec {
    root,
    cgroup_procs,
    uid_base,
    runtime_dir,
    runtime_name,
    criu,
    criu_dir,
    assignment,
});
fields_of!(Assignment {
    hostname,
    code_root,
    code,
    argv,
    env,
    tmp_bytes,
    shm_bytes,
    max_processes,
    max_file_bytes,
    restore,
    network,
    trust,
    processor,
});

/// Reports from init to the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// PID 1 exists; comes with its pidfd. It is a child of the server.
    Spawned {
        /// Its number on the host, for a server that has no descriptor left to receive the pidfd.
        pid: i32,
    },
    /// A pre-warmed sandbox is complete and waits for [`ASSIGN`].
    Prewarmed,
    /// The template's program runs. Comes with the server's end of its control socket, which was made in the sandbox's
    /// network namespace: CRIU sees no socket of another one.
    Ready {
        /// Inode of the template's end, by which an image knows the socket.
        control_inode: u64,
    },
    /// The sandbox could not be made.
    Failed {
        /// The step, a stable word: `cgroup`, `mount`, `namespaces` …
        step: String,
        /// What was tried and what the kernel said.
        detail: String,
    },
    /// The template ended; PID 1 exits next, and the kernel kills what is left in the sandbox.
    TemplateEnded {
        /// Its exit status, if it exited.
        code: Option<i32>,
        /// The signal that killed it, if one did.
        signal: Option<i32>,
    },
}

variants_of!(Report {
    0 => Spawned { pid },
    1 => Prewarmed,
    2 => Ready { control_inode },
    3 => Failed { step, detail },
    4 => TemplateEnded { code, signal },
});

/// What `hearth-init probe` prints on its standard output: one entry for each thing the sandbox needs.
#[derive(Debug, Clone)]
pub struct ProbeReport {
    /// In the order in which they were tried; those after a failed one that they depend on are absent.
    pub checks: Vec<Check>,
}

/// The result of trying one thing.
#[derive(Debug, Clone)]
pub struct Check {
    /// `root`, `seccomp`, `landlock`, `namespaces`, `id_map`, `mounts`, `proc`.
    pub name: String,
    /// The version, where there is one.
    pub version: Option<String>,
    /// Why not, or nothing when it works.
    pub error: Option<String>,
}

fields_of!(ProbeReport { checks });
fields_of!(Check {
    name,
    version,
    error,
});

/// What `hearth-init favordynmods`, `criu` and `dump` print.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// What went wrong, or nothing.
    pub error: Option<String>,
}

fields_of!(Outcome { error });
