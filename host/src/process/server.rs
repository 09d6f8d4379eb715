//! From root to the server: how the server's privileges are dropped, read top to bottom; steps 3 to 6 are those of
//! [`privileges`].
//! `server/docs/privileges.md` has the same steps as a list.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use hearth_init::wire;
use rustix::mount::{MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags};
use rustix::thread::CapabilitySet;

use super::handover::socket_of_stdin;
use super::{lock_down, privileges, sys};
use crate::protocol::{Message as _, Reply};
use crate::settings::ServerUser;

/// Variables by which the host process names two directories, as itself sees them.
pub(super) const DATA_DIR: &str = "HEARTH_HOST_DATA_DIR";
pub(super) const RUNTIMES: &str = "HEARTH_HOST_RUNTIMES";
/// What the server sees in place of the host's `/run`, and where in it the two directories are. The way to them on the host
/// may be closed to its user, as root's home is.
const PLACE: &str = "/run";
/// See [`PLACE`].
pub const DATA_PLACE: &str = "/run/hearth-data";
/// See [`PLACE`].
pub const RUNTIMES_PLACE: &str = "/run/hearth-runtimes";

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// It was started by hand.
    #[error("`hearth serve` is started by `hearth`, not by hand")]
    ByHand,
    /// A privilege could not be dropped.
    #[error("cannot drop privileges at {0}: {1}")]
    Step(&'static str, io::Error),
    /// What the host process said is not what it says.
    #[error("the host process sent an unexpected message")]
    Unexpected,
}

/// What the server starts with.
#[derive(Debug)]
pub struct Server {
    /// The socket to the host process.
    pub socket: OwnedFd,
    /// The socket to the gateway.
    pub gateway: OwnedFd,
    /// Listens for console and API.
    pub listener: OwnedFd,
    /// Listens for functions, if that is separate.
    pub functions_listener: Option<OwnedFd>,
    /// Where what it needs of the ingress waits, if there is one.
    pub ingress: Option<OwnedFd>,
    /// The MQTT brokers and their secrets, if there are any.
    pub brokers: Option<OwnedFd>,
    /// The data directory, as the server sees it.
    pub data_dir: PathBuf,
    /// The runtimes' directory, as the server sees it.
    pub runtimes: PathBuf,
    /// What both are to people.
    pub known_as: KnownAs,
    /// Holds the lock on the data directory.
    pub lock: OwnedFd,
}

/// The names of the directories that the server sees in other places than everybody else.
#[derive(Debug, Clone)]
pub struct KnownAs {
    /// The data directory.
    pub data_dir: PathBuf,
    /// The runtimes' directory.
    pub runtimes: PathBuf,
}

impl KnownAs {
    /// A text for people, in which the directories have the names that they know.
    #[must_use]
    pub fn with_known_names(&self, text: &str) -> String {
        let (data_dir, runtimes) = (self.data_dir.display(), self.runtimes.display());
        text.replace(DATA_PLACE, &data_dir.to_string())
            .replace(RUNTIMES_PLACE, &runtimes.to_string())
    }
}

fn step<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> ServerError {
    move |error| ServerError::Step(what, error.into())
}

impl Server {
    /// Takes what the host process passes on and drops everything that the server does not need. The process must have one
    /// thread only. What is left to be dropped, once the interpreters were asked for their versions: [`Self::lock_down`].
    ///
    /// # Errors
    /// [`ServerError`].
    pub fn begin() -> Result<Self, ServerError> {
        // 1. The socket is standard input, and is taken off it; no other descriptor was passed on.
        sys::close_from(3).map_err(step("descriptors"))?;
        let (Some(host_data_dir), Some(host_runtimes)) =
            (std::env::var_os(DATA_DIR), std::env::var_os(RUNTIMES))
        else {
            return Err(ServerError::ByHand);
        };
        let socket = socket_of_stdin().map_err(step("stdin"))?;
        let socket = socket.ok_or(ServerError::ByHand)?;
        let mut bytes = [0; Reply::BYTES];
        let (length, fds) = wire::receive(&socket, &mut bytes).map_err(step("the socket"))?;
        let Ok(Reply::Start {
            uid,
            gid,
            separate,
            ingress,
            brokers,
        }) = Reply::decode(&bytes[..length])
        else {
            return Err(ServerError::Unexpected);
        };
        let mut fds = fds.into_iter();
        let (Some(lock), Some(gateway), Some(listener)) = (fds.next(), fds.next(), fds.next())
        else {
            return Err(ServerError::Unexpected);
        };

        // 2. What it may see: its data, the runtimes, and nothing of the host's /run, where other services have their
        //    sockets. And processes of other users, functions among them: by name only, as on most hosts.
        place(Path::new(&host_data_dir), Path::new(&host_runtimes))?;
        show_processes()?;

        // 3. to 6.
        let user = ServerUser { uid, gid };
        privileges::drop_to(user, CapabilitySet::empty())
            .map_err(|(step, error)| ServerError::Step(step, error))?;
        Ok(Self {
            socket,
            gateway,
            listener,
            functions_listener: separate.then(|| fds.next()).flatten(),
            ingress: ingress.then(|| fds.next()).flatten(),
            brokers: brokers.then(|| fds.next()).flatten(),
            data_dir: DATA_PLACE.into(),
            runtimes: RUNTIMES_PLACE.into(),
            known_as: KnownAs {
                data_dir: host_data_dir.into(),
                runtimes: host_runtimes.into(),
            },
            lock,
        })
    }

    /// Drops the rest: files but its own, and system calls but those it makes. From here on it can start no program. The
    /// process must still have one thread only. It can connect TCP sockets to these ports: those of DNS servers
    /// and MQTT brokers.
    ///
    /// # Errors
    /// [`ServerError`].
    pub fn lock_down(&self, connect: &[u16]) -> Result<(), ServerError> {
        // 7. Files and ports, by Landlock.
        lock_down::restrict_files(connect)
            .map_err(|error| ServerError::Step("the Landlock rules", io::Error::other(error)))?;
        // 8. System calls, last, since the filter forbids most of the above.
        lock_down::restrict_calls()
            .map_err(|error| ServerError::Step("the system call filter", io::Error::other(error)))
    }
}

/// Mounts another `/proc` if the host's hides the processes of other users (`hidepid` in proc(5)): the server watches the
/// processes of functions.
fn show_processes() -> Result<(), ServerError> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").map_err(step("/proc"))?;
    if !hides_processes(&mounts) {
        return Ok(());
    }
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    rustix::mount::mount("proc", "/proc", "proc", flags, c"hidepid=0").map_err(step("/proc"))
}

/// Takes the text of a `mountinfo` file (proc(5)).
fn hides_processes(mountinfo: &str) -> bool {
    let proc = mountinfo
        .lines()
        .rev()
        .find(|line| line.split(' ').nth(4) == Some("/proc"));
    proc.is_some_and(|line| {
        let mut options = line.rsplit(' ').next().unwrap_or_default().split(',');
        options.any(|option| {
            option.starts_with("hidepid=") && !["hidepid=0", "hidepid=off"].contains(&option)
        })
    })
}

/// Puts the two directories where the server can reach them, in a mount namespace of its own.
fn place(data_dir: &Path, runtimes: &Path) -> Result<(), ServerError> {
    sys::unshare_mounts().map_err(step("a mount namespace"))?;
    let private = MountPropagationFlags::REC | MountPropagationFlags::PRIVATE;
    rustix::mount::mount_change("/", private).map_err(step("making all mounts private"))?;
    let copy = |dir: &Path| {
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        rustix::mount::open_tree(rustix::fs::CWD, dir, flags).map_err(step("copying mounts"))
    };
    // Before /run is covered: either may be in it.
    let mounts = [
        (copy(data_dir)?, DATA_PLACE),
        (copy(runtimes)?, RUNTIMES_PLACE),
    ];
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    rustix::mount::mount("tmpfs", PLACE, "tmpfs", flags, c"mode=0755,size=64k")
        .map_err(step("covering /run"))?;
    for (mount, place) in mounts {
        fs::DirBuilder::new()
            .mode(0o755)
            .create(place)
            .map_err(step("making a directory in /run"))?;
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        rustix::mount::move_mount(&mount, "", rustix::fs::CWD, place, flags)
            .map_err(step("placing a directory in /run"))?;
    }
    std::env::set_current_dir("/").map_err(step("leaving the working directory"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proc_that_hides_processes_is_told() {
        let line = |options| {
            format!(
                "1 0 0:1 / / rw - ext4 /dev/vda rw\n22 1 0:20 / /proc rw,nosuid shared:5 - proc proc {options}\n"
            )
        };
        for options in [
            "rw,hidepid=2",
            "rw,gid=4,hidepid=invisible",
            "rw,hidepid=noaccess,gid=4",
        ] {
            assert!(hides_processes(&line(options)), "{options}");
        }
        for options in ["rw", "rw,hidepid=0", "rw,hidepid=off,gid=4"] {
            assert!(!hides_processes(&line(options)), "{options}");
        }
        // What is mounted last is what is seen.
        let covered = line("rw,hidepid=2") + &line("rw");
        assert!(!hides_processes(&covered));
        assert!(!hides_processes(""));
    }
}
