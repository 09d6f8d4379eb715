//! One sandbox as the sandbox thread knows it.

use std::fs;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Arc;

use hearth_init::criu::{CriuProgram, RESTORE_LOG, RestoreSpec, last_words};
use hearth_init::{JailSpec, SWEEP, wire};
use parking_lot::Mutex;
use rustix::process::{Signal, WaitId, WaitIdOptions};
use tokio::sync::{oneshot, watch};

use super::cgroup::{Group, Leaf};
use super::launch::{TemplateEnds, launch};
use super::limits::Limits;
use super::thread::Thread;
use super::{Sandbox, SandboxError, SandboxSpec};

/// Directory of a restored sandbox beside its root, where CRIU writes its log.
const CRIU_WORK: &str = "criu";

/// The end of a sandbox. Taken down before its cgroups are removed, with what they knew.
#[derive(Debug, Clone)]
pub struct Ended {
    /// "the template exited with status 1" …
    pub how: String,
    /// Whether the template's leaf met its memory limit.
    pub out_of_memory: bool,
}

/// A sandbox that is being made, runs or goes away.
pub struct Live {
    /// Its cgroups.
    pub group: Group,
    /// Its directory, which holds its root.
    dir: PathBuf,
    /// Host uid of template and instances.
    pub uid: u32,
    /// Init's control socket, until it ends.
    pub control: Option<OwnedFd>,
    /// The process that builds the sandbox, until it is reaped.
    pub builder: Option<Child>,
    /// PID 1, from its start until it is reaped.
    pub init: Option<OwnedFd>,
    /// Who waits for it to be made, and the ends to hand over.
    pub waiting: Option<Waiting>,
    /// How the template ended, as init told it.
    pub template_end: Option<(Option<i32>, Option<i32>)>,
    /// What [`Sandbox::exited`] waits for.
    pub ended: watch::Sender<Option<Ended>>,
    /// Prepared cells.
    pub pool: Arc<Mutex<Vec<Leaf>>>,
    /// Cells made so far; names them.
    pub cells: u64,
    /// Nothing of it runs any more.
    pub gone: bool,
    /// It shall be removed.
    pub destroying: bool,
    /// Who waits for that.
    pub destroyed: Vec<oneshot::Sender<()>>,
}

/// The answer to a [`super::mailbox::Message::Create`].
pub struct Waiting {
    /// Where to.
    pub reply: oneshot::Sender<Result<Sandbox, SandboxError>>,
    /// The server's ends of what the template has.
    pub ends: TemplateEnds,
}

impl Live {
    /// Makes the cgroups and the directory and starts `hearth-init`.
    pub fn start(
        thread: &Thread,
        name: &str,
        spec: SandboxSpec,
    ) -> Result<(Self, TemplateEnds), SandboxError> {
        let Thread {
            init,
            dir: run,
            top,
            criu,
            ..
        } = thread;
        check(&spec)?;
        let limits = Limits::here(&spec);
        let group = top
            .sandbox(name, &limits)
            .map_err(|error| SandboxError::step("cgroup", error))?;
        let dir = run.join(name);
        let uid = spec.uid_base + 1;
        let root = dir.join("root");
        let launched = make_directory(&dir)
            .and_then(|()| make_directory(&root))
            .and_then(|()| match &spec.restore {
                Some(_) => make_directory(&dir.join(CRIU_WORK)),
                None => Ok(()),
            })
            .map_err(|error| SandboxError::step("directory", error))
            .and_then(|()| {
                launch(init, &jail_spec(spec, &dir, &limits, &group, criu.as_ref()))
                    .map_err(|error| SandboxError::step("launch", error))
            });
        let launched = match launched {
            Ok(launched) => launched,
            Err(error) => {
                // Nothing runs; what cannot be removed now is cleared at the next start.
                let _ = group.remove();
                let _ = fs::remove_dir_all(&dir);
                return Err(error);
            }
        };
        let live = Self {
            group,
            dir,
            uid,
            control: Some(launched.control),
            builder: Some(launched.builder),
            init: None,
            waiting: None,
            template_end: None,
            ended: watch::Sender::new(None),
            pool: Arc::default(),
            cells: 0,
            gone: false,
            destroying: false,
            destroyed: Vec::new(),
        };
        Ok((live, launched.template))
    }

    /// Makes a cell.
    pub fn cell(&mut self) -> io::Result<Leaf> {
        self.cells += 1;
        self.group.cell(self.cells)
    }

    /// Tells PID 1 to kill what dead instances left to it. False when it has to be told again later.
    pub fn sweep(&self) -> bool {
        match &self.control {
            Some(control) => match wire::send(control, &[SWEEP], &[]) {
                Err(error) => error.kind() != io::ErrorKind::WouldBlock,
                Ok(()) => true,
            },
            None => true,
        }
    }

    /// Kills PID 1, and with it everything inside. Before there is one there is nothing to kill: the builder is let be,
    /// since PID 1 may be there already, as a child that nobody could reap without the pidfd that is on its way.
    pub fn kill(&self) {
        if let Some(init) = &self.init {
            // Already dead is as good.
            let _ = rustix::process::pidfd_send_signal(init, Signal::KILL);
        }
    }

    /// Kills the process that builds the sandbox: for one that hangs.
    pub fn kill_builder(&mut self) {
        if let Some(builder) = &mut self.builder {
            // Already dead is as good.
            let _ = builder.kill();
        }
    }

    /// What the CRIU that restores into it has said up to now, in one line.
    pub fn criu_said(&self) -> String {
        let log = self.dir.join(CRIU_WORK).join(RESTORE_LOG);
        match fs::File::open(log).and_then(|log| last_words(&log)) {
            Ok(said) if !said.is_empty() => format!("CRIU said: {said}"),
            Ok(_) => "CRIU had not said anything".to_owned(),
            Err(_) => "CRIU had not begun".to_owned(),
        }
    }

    /// Takes PID 1's status and says how the sandbox ended. For when its pidfd is readable.
    pub fn reap(&mut self) -> Ended {
        let status = self.init.take().and_then(|init| {
            rustix::process::waitid(WaitId::PidFd(init.as_fd()), WaitIdOptions::EXITED)
                .ok()
                .flatten()
        });
        let out_of_memory = self.group.template().oom_kills() > 0;
        let signal = |signal: i32| {
            if out_of_memory && signal == Signal::KILL.as_raw() {
                "ran out of memory".to_owned()
            } else {
                format!("was killed by signal {signal}")
            }
        };
        let how = match self.template_end {
            Some((_, Some(number))) => format!("the template {}", signal(number)),
            Some((Some(code), None)) => format!("the template exited with status {code}"),
            _ => match status.and_then(|status| status.terminating_signal()) {
                Some(number) => format!("PID 1 of the sandbox {}", signal(number)),
                None => "PID 1 of the sandbox exited".to_owned(),
            },
        };
        Ended { how, out_of_memory }
    }

    /// Removes its cgroups and its directory. Fails while the kernel is not done with a process.
    pub fn remove(&self) -> io::Result<()> {
        self.group.remove()?;
        // Its mounts were in a mount namespace that is gone.
        match fs::remove_dir_all(&self.dir) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

/// Names become paths here.
fn check(spec: &SandboxSpec) -> Result<(), SandboxError> {
    let plain = |name: &str| {
        !name.is_empty()
            && name
                .bytes()
                .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'))
    };
    if plain(&spec.id) && plain(spec.runtime_name) {
        Ok(())
    } else {
        Err(SandboxError::step(
            "specification",
            format!(
                "the names {:?} and {:?} must be of a-z, 0-9 and -",
                spec.id, spec.runtime_name
            ),
        ))
    }
}

fn make_directory(dir: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o700).create(dir)
}

fn jail_spec(
    spec: SandboxSpec,
    dir: &Path,
    limits: &Limits,
    group: &Group,
    criu: Option<&CriuProgram>,
) -> JailSpec {
    JailSpec {
        root: dir.join("root"),
        cgroup_procs: group.procs_of_init(),
        hostname: spec.hostname,
        uid_base: spec.uid_base,
        code_dir: spec.code_dir,
        runtime_dir: spec.runtime_dir,
        runtime_name: spec.runtime_name.to_owned(),
        argv: spec.argv,
        env: spec.env,
        tmp_bytes: limits.tmp,
        shm_bytes: limits.shm,
        max_processes: limits.pids,
        // No file can be larger than the memory it is in.
        max_file_bytes: limits.cell_memory,
        criu: criu
            .filter(|_| spec.dumpable || spec.restore.is_some())
            .cloned(),
        restore: spec.restore.map(|source| RestoreSpec {
            images: source.images,
            work: dir.join(CRIU_WORK),
            outside: source.outside,
        }),
    }
}
