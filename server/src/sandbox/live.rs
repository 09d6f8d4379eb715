//! One sandbox as the sandbox thread knows it.

use std::fs;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;
use std::process::Child;
use std::sync::Arc;

use hearth_init::criu::{RESTORE_LOG, WORK, last_words};
use hearth_init::{ASSIGN, SWEEP, wire};
use parking_lot::Mutex;
use rustix::process::{Signal, WaitId, WaitIdOptions};
use tokio::sync::{oneshot, watch};

use super::cgroup::{Group, Leaf};
use super::launch::{TemplateEnds, in_memory};
use super::limits::Limits;
use super::site::{Site, assignment, check};
use super::thread::Thread;
use super::{PrewarmedSpec, Sandbox, SandboxError, SandboxSpec};

/// Directory beside a restored sandbox's root that is CRIU's.
pub(super) const CRIU_DIR: &str = "criu";

/// The end of a sandbox. Taken down before its cgroups are removed, with what they knew.
#[derive(Debug, Clone)]
pub struct Ended {
    /// "the template exited with status 1" …
    pub how: String,
    /// Whether the template's leaf met its memory limit.
    pub out_of_memory: bool,
    /// Status or signal of the template, if PID 1 has reported it.
    pub template: Option<(Option<i32>, Option<i32>)>,
}

/// A sandbox that is being made, runs or goes away.
pub struct LiveSandbox {
    /// Its cgroups.
    pub group: Group,
    /// Its directory, which holds its root.
    pub dir: PathBuf,
    /// Host uid of template and instances.
    pub uid: u32,
    /// Init's control socket, until it ends.
    pub control: Option<OwnedFd>,
    /// The process that builds the sandbox, until it is reaped. For a pre-warmed sandbox it stays until a function is
    /// assigned.
    pub builder: Option<Child>,
    /// PID 1, from its start until it is reaped.
    pub init: Option<OwnedFd>,
    /// The ends to hand over while it is pre-warmed.
    pub prewarmed: Option<TemplateEnds>,
    /// Who waits for it to be made, and the ends to hand over.
    pub waiting: Option<Waiting>,
    /// How the template exited, as reported by init.
    pub template_end: Option<(Option<i32>, Option<i32>)>,
    /// What [`Sandbox::exited`] waits for.
    pub ended: watch::Sender<Option<Ended>>,
    /// Prepared instance cgroups.
    pub pool: Arc<Mutex<Vec<Leaf>>>,
    /// Number of instance cgroups created so far; used to name them.
    pub instance_cgroups: u64,
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
    /// What to create again if this was pre-warmed and fails.
    pub anew: Option<Box<SandboxSpec>>,
}

impl LiveSandbox {
    /// Makes the cgroups and the directory and starts `hearth-init`.
    pub fn start(
        thread: &Thread,
        name: &str,
        spec: SandboxSpec,
    ) -> Result<(Self, TemplateEnds), SandboxError> {
        check(&[&spec.id, spec.runtime_name])?;
        let limits = Limits::here(&spec);
        let criu = thread
            .criu
            .as_ref()
            .filter(|_| spec.dumpable || spec.restore.is_some());
        let site = Site {
            name,
            uid_base: spec.uid_base,
            criu,
            restores: spec.restore.is_some(),
            limits: Some(&limits),
        };
        site.launch(thread, |mut jail| {
            jail.runtime_dir = spec.runtime_dir.clone();
            jail.runtime_name = spec.runtime_name.to_owned();
            jail.assignment = Some(assignment(spec, &limits));
            jail
        })
    }

    /// The same for a pre-warmed sandbox, which waits for a function.
    pub fn start_prewarmed(
        thread: &Thread,
        name: &str,
        spec: &PrewarmedSpec,
    ) -> Result<Self, SandboxError> {
        check(&[&spec.id, spec.runtime_name])?;
        let site = Site {
            name,
            uid_base: spec.uid_base,
            criu: thread.criu.as_ref(),
            restores: true,
            limits: None,
        };
        let (mut live, ends) = site.launch(thread, |mut jail| {
            jail.runtime_dir = spec.runtime_dir.clone();
            jail.runtime_name = spec.runtime_name.to_owned();
            jail
        })?;
        live.prewarmed = Some(ends);
        Ok(live)
    }

    /// Assigns a function to a pre-warmed sandbox: its limits first, then the rest.
    pub fn assign(&mut self, spec: SandboxSpec) -> io::Result<TemplateEnds> {
        let limits = Limits::here(&spec);
        self.group.limit(&limits)?;
        let control = self.control.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        let order = in_memory(&serde_json::to_vec(&assignment(spec, &limits))?)?;
        wire::send(control, &[ASSIGN], &[order.as_fd()])?;
        self.prewarmed
            .take()
            .ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Creates an instance cgroup.
    pub fn instance_cgroup(&mut self) -> io::Result<Leaf> {
        self.instance_cgroups += 1;
        self.group.instance_cgroup(self.instance_cgroups)
    }

    /// Tells PID 1 to kill the orphans of dead instances. False if this must be retried later.
    pub fn sweep(&self) -> bool {
        match &self.control {
            Some(control) => match wire::send(control, &[SWEEP], &[]) {
                Err(error) => error.kind() != io::ErrorKind::WouldBlock,
                Ok(()) => true,
            },
            None => true,
        }
    }

    /// Kills PID 1, and with it everything inside. Before PID 1 is known, nothing is killed: the builder is left
    /// running, since PID 1 may already exist as a child that cannot be reaped without the pidfd still to come.
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
        let log = self.dir.join(CRIU_DIR).join(WORK).join(RESTORE_LOG);
        match fs::File::open(log).and_then(|log| last_words(&log)) {
            Ok(said) if !said.is_empty() => format!("CRIU said: {said}"),
            // The log is made ahead of it.
            _ => "CRIU had not begun".to_owned(),
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
        Ended {
            how,
            out_of_memory,
            template: self.template_end,
        }
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
