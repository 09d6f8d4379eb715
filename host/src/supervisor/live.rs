//! One sandbox as the supervisor knows it.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;
use std::process::Child;
use std::rc::Rc;
use std::time::Instant;

use hearth_init::criu::{Outside, RESTORE_LOG, WORK, last_words};
use hearth_init::fields::Fields as _;
use hearth_init::{ASSIGN, SWEEP, wire};
use rustix::process::{Signal, WaitId, WaitIdOptions};

use super::launch::TemplateEnds;
use super::outbound::WayOut;
use super::site::{Site, assignment};
use crate::cgroup::{Group, Leaf};
use crate::images::Dumpable;
use crate::limits::Limits;
use crate::memfd::sealed;
use crate::protocol::request::Order;
use crate::protocol::{Key, LeafNumber, Papers, Reply, Sequence};
use crate::{Host, SandboxError};

/// Directory beside a restored sandbox's root that is CRIU's.
pub(super) const CRIU_DIR: &str = "criu";
/// Instance cgroups of one sandbox beyond two for each instance: those that are prepared, and those of instances that are
/// being killed. Protects the kernel's memory from a server that asks for more and more.
const LEAVES_EXTRA: usize = 64;

/// What a sandbox is made from, with the policy of its network.
pub(super) type Function = (Order, Papers, Option<Rc<OwnedFd>>);

/// A sandbox that is being made, runs or goes away.
pub(super) struct LiveSandbox {
    /// Name of its cgroup and its directory.
    pub(super) name: String,
    /// Its cgroups.
    pub(super) group: Group,
    /// Its directory, which holds its root.
    pub(super) dir: PathBuf,
    /// Host uid of template and instances.
    pub(super) uid: u32,
    /// Most instances.
    pub(super) max_instances: u32,
    /// Init's control socket, until it ends.
    pub(super) control: Option<OwnedFd>,
    /// The process that builds the sandbox, until it is reaped. For a pre-warmed sandbox it stays until a function is
    /// assigned.
    pub(super) builder: Option<Child>,
    /// PID 1, from its start until it is reaped.
    pub(super) init: Option<OwnedFd>,
    /// The ends to hand over while it is pre-warmed.
    pub(super) prewarmed: Option<TemplateEnds>,
    /// Its network.
    pub(super) way_out: WayOut,
    /// Which request waits for it to be made, and the ends to hand over.
    pub(super) waiting: Option<Waiting>,
    /// What leads out of it, once it runs: the server has it then.
    pub(super) outside: Option<(Outside, u64)>,
    /// How the template exited, as reported by init.
    pub(super) template_end: Option<(Option<i32>, Option<i32>)>,
    /// Instance cgroups that there are.
    pub(super) leaves: HashSet<LeafNumber>,
    /// Those that are being removed.
    pub(super) removed_leaves: HashSet<LeafNumber>,
    /// PID 1 had no room for the last order to sweep.
    pub(super) sweep_is_due: bool,
    /// Those among them that the server is notified of once it runs.
    pub(super) prepared: Vec<LeafNumber>,
    /// Instances that are stopped, and whether others are with them.
    pub(super) frozen: HashMap<LeafNumber, bool>,
    /// From when on one of its instances may be boosted; none where the kernel does not let it.
    pub(super) boosted_from: Option<Instant>,
    /// Number of instance cgroups created so far; used to name them.
    pub(super) instance_cgroups: u64,
    /// Nothing of it runs any more.
    pub(super) gone: bool,
    /// It shall be removed.
    pub(super) destroying: bool,
    /// Its removal has begun.
    pub(super) removing: bool,
    /// The server wants to know when it is.
    pub(super) tell: bool,
}

/// What is to be answered to a [`Request::Create`](crate::protocol::Request::Create).
pub(super) struct Waiting {
    /// Which one.
    pub(super) sequence: Sequence,
    /// The server's ends of what the template has.
    pub(super) ends: TemplateEnds,
    /// What to create again if this was pre-warmed and fails.
    pub(super) anew: Option<Box<Function>>,
}

impl LiveSandbox {
    /// Makes the cgroups and the directory and starts `hearth-init`.
    pub(super) fn start(
        host: &Host,
        name: String,
        (order, papers, policy): Function,
    ) -> Result<(Self, TemplateEnds), SandboxError> {
        let limits = Limits::here(&order);
        let restores = papers.image.is_some();
        let site = Site {
            name,
            uid_base: order.uid_base,
            criu: host.criu.as_ref().filter(|_| order.dumpable || restores),
            restores,
            limits: Some(&limits),
            runtime: &papers.runtime.clone(),
        };
        let way_out = WayOut::of(policy);
        let assignment = assignment(host, papers, &limits, &order)?;
        let (mut live, ends) = site.launch(host, Some(assignment))?;
        live.way_out = way_out;
        live.max_instances = order.max_instances;
        Ok((live, ends))
    }

    /// The same for a pre-warmed sandbox, which waits for a function.
    pub(super) fn start_prewarmed(
        host: &Host,
        name: String,
        uid_base: u32,
        runtime: &str,
    ) -> Result<Self, SandboxError> {
        let site = Site {
            name,
            uid_base,
            criu: host.criu.as_ref(),
            restores: true,
            limits: None,
            runtime,
        };
        let (mut live, ends) = site.launch(host, None)?;
        live.prewarmed = Some(ends);
        Ok(live)
    }

    /// Assigns a function to a pre-warmed sandbox: its limits first, then the rest.
    pub(super) fn assign(
        &mut self,
        host: &Host,
        (order, papers, policy): Function,
    ) -> Result<TemplateEnds, SandboxError> {
        let failed = |error: io::Error| SandboxError::step("assign", error);
        let limits = Limits::here(&order);
        let way_out = WayOut::of(policy);
        let assignment = assignment(host, papers, &limits, &order)?;
        self.group.limit(&limits).map_err(failed)?;
        self.max_instances = order.max_instances;
        let gone = || failed(io::ErrorKind::NotConnected.into());
        let control = self.control.as_ref().ok_or_else(gone)?;
        let assign = sealed(&assignment.to_bytes()).map_err(failed)?;
        wire::send(control, &[ASSIGN], &[assign.as_fd()]).map_err(failed)?;
        self.way_out = way_out;
        self.prewarmed.take().ok_or_else(gone)
    }

    /// Whether the server has it: it was told of it, and does not want it to be removed.
    pub(super) fn is_running(&self) -> bool {
        self.outside.is_some() && !self.destroying
    }

    /// The cgroup of an instance.
    pub(super) fn leaf(&self, number: LeafNumber) -> Leaf {
        self.group.leaf(number)
    }

    /// Creates an instance cgroup.
    pub(super) fn instance_cgroup(&mut self) -> io::Result<LeafNumber> {
        let there = self.leaves.len() + self.removed_leaves.len();
        if there >= 2 * self.max_instances as usize + LEAVES_EXTRA {
            return Err(io::Error::other(
                "the sandbox has too many instance cgroups",
            ));
        }
        self.instance_cgroups += 1;
        self.group.instance_cgroup(self.instance_cgroups)?;
        self.leaves.insert(self.instance_cgroups);
        Ok(self.instance_cgroups)
    }

    /// What it takes to dump its template.
    pub(super) fn dumpable(&self) -> Option<Dumpable> {
        let (outside, control_peer) = self.outside?;
        Some(Dumpable {
            init: self.init.as_ref()?.try_clone().ok()?,
            outside,
            control_peer,
            template: self.group.template(),
        })
    }

    /// Tells PID 1 to kill the orphans of dead instances. False if this must be retried later.
    pub(super) fn sweep(&self) -> bool {
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
    pub(super) fn kill(&self) {
        if let Some(init) = &self.init {
            // Already dead is as good.
            let _ = rustix::process::pidfd_send_signal(init, Signal::KILL);
        }
    }

    /// Kills the process that builds the sandbox: for one that hangs.
    pub(super) fn kill_builder(&mut self) {
        if let Some(builder) = &mut self.builder {
            // Already dead is as good.
            let _ = builder.kill();
        }
    }

    /// What the CRIU that restores into it has said up to now, in one line.
    pub(super) fn criu_said(&self) -> String {
        let log = self.dir.join(CRIU_DIR).join(WORK).join(RESTORE_LOG);
        match fs::File::open(log).and_then(|log| last_words(&log)) {
            Ok(said) if !said.is_empty() => format!("CRIU said: {said}"),
            // The log is made ahead of it.
            _ => "CRIU had not begun".to_owned(),
        }
    }

    /// Takes PID 1's status and says how the sandbox ended. For when its pidfd is readable.
    pub(super) fn reap(&mut self, key: Key) -> Reply {
        let status = self.init.take().and_then(|init| {
            rustix::process::waitid(WaitId::PidFd(init.as_fd()), WaitIdOptions::EXITED)
                .ok()
                .flatten()
        });
        let (code, signal) = self.template_end.unwrap_or_default();
        Reply::Ended {
            key,
            out_of_memory: self.group.template().oom_kills() > 0,
            code,
            signal,
            init_signal: status.and_then(|status| status.terminating_signal()),
        }
    }

    /// Removes its cgroups and its directory. Fails while the kernel is not done with a process.
    pub(super) fn remove(&self) -> io::Result<()> {
        self.group.remove()?;
        // Its mounts were in a mount namespace that is gone.
        match fs::remove_dir_all(&self.dir) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}
