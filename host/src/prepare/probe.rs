//! What this host supports: tested by `hearth-init` in separate processes before anything depends on it.

use std::ffi::OsStr;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use hearth_init::fields::Fields;
use hearth_init::{Outcome, ProbeReport};

use crate::cgroup::Version;
use crate::{Capability, SandboxError};

/// Name of the program.
const INIT: &str = "hearth-init";
/// Environment variable with the path of the program.
const INIT_VARIABLE: &str = "HEARTH_INIT";

/// Finds the `hearth-init` binary: `HEARTH_INIT`, else next to this executable, else in a directory above it (tests are
/// built into `target/debug/deps`).
pub fn find_init() -> Result<PathBuf, SandboxError> {
    let missing = |reason: String| SandboxError::Missing {
        what: "the program hearth-init".to_owned(),
        reason,
        remedy: "build it with `cargo build -p hearth-init`, or set HEARTH_INIT to its path"
            .to_owned(),
    };
    if let Some(path) = std::env::var_os(INIT_VARIABLE) {
        let path = PathBuf::from(path);
        return if path.is_file() {
            Ok(path)
        } else {
            Err(missing(format!(
                "{INIT_VARIABLE} names {}, which is not a file",
                path.display()
            )))
        };
    }
    let executable = std::env::current_exe().map_err(|error| missing(error.to_string()))?;
    executable
        .ancestors()
        .skip(1)
        .take(3)
        .map(|dir| dir.join(INIT))
        .find(|path| path.is_file())
        .ok_or_else(|| {
            missing(format!(
                "not found next to {} or above it",
                executable.display()
            ))
        })
}

/// What the kernel can do.
pub struct Probed(pub(super) Vec<Capability>);

impl Probed {
    /// Tries everything a sandbox needs from the kernel. Changes nothing on the host.
    ///
    /// # Errors
    /// [`SandboxError::Missing`]: the first thing that is missing.
    pub fn kernel(init: &Path) -> Result<Self, SandboxError> {
        kernel(init).map(Self)
    }
}

fn kernel(init: &Path) -> Result<Vec<Capability>, SandboxError> {
    let report: ProbeReport = run(init, &[OsStr::new("probe")])?;
    for check in &report.checks {
        if let Some(reason) = &check.error {
            return Err(missing(&check.name, reason.clone()));
        }
    }
    let version = |name: &str| {
        report
            .checks
            .iter()
            .find(|check| check.name == name)
            .and_then(|check| check.version.clone())
    };
    // A check skipped after an earlier failure was found above; a missing one means that the two programs have
    // different versions.
    for name in [
        "root",
        "seccomp",
        "landlock",
        "namespaces",
        "id_map",
        "overlay",
        "mounts",
        "proc",
        "loopback",
    ] {
        if !report.checks.iter().any(|check| check.name == name) {
            return Err(missing(name, format!("{} did not test it", init.display())));
        }
    }
    Ok(vec![
        Capability::available("userns", None),
        Capability::available("landlock", version("landlock")),
        Capability::available("seccomp", None),
    ])
}

/// The cgroup's version, and whether attaching is fast. Makes it fast if it can; `dir` is a private directory.
pub fn cgroup(init: &Path, version: Version, dir: &Path) -> [Capability; 2] {
    let mount = dir.join("favordynmods");
    let made = std::fs::DirBuilder::new().mode(0o700).create(&mount);
    let result = match made {
        Err(error) => Err(error.to_string()),
        Ok(()) => run::<Outcome>(init, &[OsStr::new("favordynmods"), mount.as_os_str()])
            .map_err(|error| error.to_string())
            .and_then(|report| report.error.map_or(Ok(()), Err)),
    };
    // It is empty; when it stays, it is cleared with the rest of the directory.
    let _ = std::fs::remove_dir(&mount);
    [
        Capability::available("cgroup", Some(version.name().to_owned())),
        match result {
            Ok(()) => Capability::available("cgroup_fast_attach", None),
            Err(reason) => Capability::unavailable("cgroup_fast_attach", reason),
        },
    ]
}

/// Runs `hearth-init` and reads its report.
fn run<T: Fields>(init: &Path, arguments: &[&OsStr]) -> Result<T, SandboxError> {
    let failed = |detail: String| SandboxError::Step {
        step: "probe".to_owned(),
        detail: format!("{}: {detail}", init.display()),
    };
    let output = Command::new(init)
        .args(arguments)
        .env_clear()
        .stdin(Stdio::null())
        .output()
        .map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(format!(
            "{}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        )));
    }
    T::from_bytes(&output.stdout).map_err(|error| failed(error.to_string()))
}

fn missing(check: &str, reason: String) -> SandboxError {
    let (what, remedy) = match check {
        "root" => (
            "root",
            "start the server as root (sudo), and in a container with all capabilities (privileged)",
        ),
        "seccomp" => (
            "seccomp",
            "use a kernel with CONFIG_SECCOMP_FILTER (distribution kernels have it)",
        ),
        "landlock" => (
            "Landlock",
            "use Linux 5.13 or later with `landlock` in the kernel parameter lsm=",
        ),
        "namespaces" | "id_map" => (
            "user namespaces",
            "set the sysctls user.max_user_namespaces and kernel.unprivileged_userns_clone above 0, and run a container privileged",
        ),
        "overlay" => (
            "overlayfs",
            "use a kernel with overlayfs (`modprobe overlay`; distribution kernels have it); run containers privileged",
        ),
        "proc" => (
            "a /proc for a new pid namespace",
            "run the container privileged, so that nothing is mounted over parts of its own /proc",
        ),
        "loopback" => (
            "a network namespace with a loopback",
            "use a kernel with CONFIG_NET_NS and CONFIG_INET (distribution kernels have them)",
        ),
        _ => (
            "mounting in a user namespace",
            "use Linux 5.12 or later, and run a container privileged",
        ),
    };
    SandboxError::Missing {
        what: what.to_owned(),
        reason,
        remedy: remedy.to_owned(),
    }
}
