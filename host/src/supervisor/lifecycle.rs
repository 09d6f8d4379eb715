//! The lifecycle of a sandbox: created, spawned, ready, destroying, removed; or failed at any point.

use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use hearth_init::criu::Outside;
use hearth_init::fields::Fields as _;
use hearth_init::{MAX_REPORT, Report, wire};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use super::launch::TemplateEnds;
use super::live::{Function, LiveSandbox, Waiting};
use super::{
    FIRST_INSTANCE_CGROUP, INSTANCE_CGROUP_POOL, OTHER_INSTANCE_CGROUPS, SETUP_TIMEOUT, Supervisor,
};
use crate::SandboxError;
use crate::protocol::request::Order;
use crate::protocol::{Key, Papers, Reply, Sequence};

/// Reports taken at once, more than a sandbox that is in order has to say: so that none keeps the others waiting.
const REPORTS: usize = 16;

/// The server waits for no template.
fn unblocked(socket: OwnedFd) -> io::Result<OwnedFd> {
    rustix::io::ioctl_fionbio(&socket, true)?;
    Ok(socket)
}

/// What leads out of a sandbox: a pipe has the same inode at both ends, each end of a socket its own.
fn outside(
    control: &OwnedFd,
    control_inode: u64,
    ends: &TemplateEnds,
) -> io::Result<(Outside, u64)> {
    let inode = |fd: &OwnedFd| Ok::<_, io::Error>(rustix::fs::fstat(fd)?.st_ino);
    let outside = Outside {
        control: control_inode,
        stdout: inode(&ends.stdout)?,
        stderr: inode(&ends.stderr)?,
    };
    Ok((outside, inode(control)?))
}

impl Supervisor {
    /// Makes a sandbox, if it may be made; of a restore, out of a pre-warmed one where there is one that fits.
    pub(super) fn create(
        &mut self,
        sequence: Sequence,
        order: Order,
        papers: Papers,
        policy: Option<OwnedFd>,
    ) -> Result<(), SandboxError> {
        self.check_order(&order)?;
        Self::check_names(&papers, &order)?;
        self.check_network(order.network)?;
        match self.restore_into_prewarmed(sequence, (order, papers, policy.map(Rc::new))) {
            Some(function) => self.create_anew(sequence, function),
            None => Ok(()),
        }
    }

    pub(super) fn create_anew(
        &mut self,
        sequence: Sequence,
        function: Function,
    ) -> Result<(), SandboxError> {
        let key = self.next;
        self.next += 1;
        let limit = function.0.restore_limit;
        // The key makes a sandbox's name another one than that of a predecessor that is still being removed.
        let name = format!("{}.{key}", function.1.id);
        let (mut live, ends) = LiveSandbox::start(&self.host, name, function)?;
        let watched = self.watch_init(key, &live);
        live.waiting = Some(Waiting {
            sequence,
            ends,
            anew: None,
        });
        if watched.is_err() {
            live.control = None;
        }
        self.live.insert(key, live);
        let kept_off = self
            .keep_off(key)
            .map_err(|error| SandboxError::step("cpuset", error));
        if let Err(error) = watched.and(kept_off) {
            self.fail(key, error);
            self.lose_init(key);
            return Ok(());
        }
        self.later(key, SETUP_TIMEOUT, move |supervisor| {
            supervisor.give_up_starting(key)
        });
        self.look_ahead(key, limit);
        Ok(())
    }

    /// What is done about a sandbox that is being created: its restore has a limit, and its first start finds a cgroup.
    pub(super) fn look_ahead(&mut self, key: Key, limit: Option<Duration>) {
        if let Some(limit) = limit {
            self.later(key, limit, move |supervisor| {
                supervisor.give_up_restoring(key, limit);
            });
        }
        self.later(key, FIRST_INSTANCE_CGROUP, move |supervisor| {
            supervisor.fill_pool(key, 1);
        });
    }

    /// Has init's reports wake the supervisor.
    pub(super) fn watch_init(&self, key: Key, live: &LiveSandbox) -> Result<(), SandboxError> {
        let control = live.control.as_ref();
        let control = control.ok_or_else(|| SandboxError::step("control", "it has none"))?;
        let data = EventData::new_u64(key * 2);
        epoll::add(&self.epoll, control, data, EventFlags::IN)
            .map_err(|error| SandboxError::step("epoll", error))
    }

    /// A restore's time is over: when it is not done, it is given up, with what CRIU had to say.
    pub(super) fn give_up_restoring(&mut self, key: Key, limit: Duration) {
        let Some(live) = self.live.get(&key) else {
            return;
        };
        if live.waiting.is_some() {
            let (limit, said) = (limit.as_millis(), live.criu_said());
            let detail = format!("timed out after {limit} ms; {said}");
            self.fail(key, SandboxError::restore(detail));
        }
    }

    /// A sandbox had its time to be made.
    pub(super) fn give_up_starting(&mut self, key: Key) {
        if let Some(live) = self.live.get_mut(&key)
            && (live.waiting.is_some() || live.builder.is_some())
        {
            live.kill_builder();
            let detail = format!("not ready after {} s", SETUP_TIMEOUT.as_secs());
            self.fail(key, SandboxError::step("start", detail));
        }
    }

    /// Reads what init has to say.
    pub(super) fn on_report(&mut self, key: Key) {
        let mut buffer = [0; MAX_REPORT];
        for _ in 0..REPORTS {
            let Some(live) = self.live.get_mut(&key) else {
                return;
            };
            let Some(control) = &live.control else { return };
            let (length, mut fds) = match wire::receive(control, &mut buffer) {
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => (0, Vec::new()), // reset: gone
            };
            if length == 0 {
                live.control = None; // closing it takes it out of epoll
                self.lose_init(key);
                return;
            }
            match Report::from_bytes(&buffer[..length]) {
                // Stage 0 says it, and before PID 1 can say anything.
                Ok(Report::Spawned { .. }) if live.init.is_some() || live.gone => {
                    self.fail(key, SandboxError::step("report", "it has another PID 1"));
                }
                Ok(Report::Spawned { pid }) => match fds.pop() {
                    Some(pidfd) => self.spawned(key, pidfd),
                    None => self.end_unheld(key, pid),
                },
                Ok(Report::Prewarmed) => self.prewarmed_ready(key),
                Ok(Report::Ready { control_inode }) => self.ready(key, fds.pop(), control_inode),
                Ok(Report::Failed { step, detail }) => {
                    self.fail(key, SandboxError::step(&step, detail));
                }
                Ok(Report::TemplateEnded { code, signal }) => {
                    live.template_end = Some((code, signal));
                }
                Err(error) => self.fail(key, SandboxError::step("report", error)),
            }
        }
    }

    /// There was no room for PID 1's descriptor: ends it by its number, which is its own until this thread, whose child it
    /// is, has reaped it.
    fn end_unheld(&mut self, key: Key, pid: i32) {
        let Some(live) = self.live.get_mut(&key) else {
            return;
        };
        let child = Pid::from_raw(pid)
            .filter(|_| live.init.is_none() && live.builder.is_some())
            .filter(|pid| matches!(waitpid(Some(*pid), WaitOptions::NOHANG), Ok(None)));
        if let Some(pid) = child {
            // It lives: it was not reaped.
            let _ = kill_process(pid, Signal::KILL);
            self.reap_unheld(pid, 0);
        }
        if let Some(live) = self.live.get_mut(&key) {
            live.gone = true;
            live.control = None;
            live.kill_builder();
        }
        let error = "no descriptor is free for its PID 1";
        self.fail(key, SandboxError::step("pidfd", error));
    }

    fn spawned(&mut self, key: Key, pidfd: OwnedFd) {
        let Some(live) = self.live.get_mut(&key) else {
            return;
        };
        let watched = epoll::add(
            &self.epoll,
            &pidfd,
            EventData::new_u64(key * 2 + 1),
            EventFlags::IN,
        );
        live.init = Some(pidfd);
        if live.destroying {
            live.kill();
        }
        // The builder of a pre-warmed sandbox is needed once more.
        if live.prewarmed.is_none() {
            self.reap_builder(key);
        }
        if let Err(error) = watched {
            return self.fail(key, SandboxError::step("pidfd", error));
        }
        self.attach_network(key);
    }

    fn ready(&mut self, key: Key, control: Option<OwnedFd>, control_inode: u64) {
        let control = control.ok_or(io::ErrorKind::InvalidData.into());
        let control = match control.and_then(unblocked) {
            Ok(control) => control,
            Err(error) => return self.fail(key, SandboxError::step("control", error)),
        };
        let Some(live) = self.live.get_mut(&key) else {
            return;
        };
        let Some(waiting) = live.waiting.take() else {
            return;
        };
        let attached = live.way_out.take();
        match outside(&control, control_inode, &waiting.ends) {
            Ok(outside) => live.outside = Some(outside),
            Err(error) => {
                live.waiting = Some(waiting);
                return self.fail(key, SandboxError::step("control", error));
            }
        }
        let prepared = std::mem::take(&mut live.prepared);
        let created = Reply::Created {
            sequence: waiting.sequence,
            key,
            name: live.name.clone(),
            uid: live.uid,
            was_prewarmed: waiting.anew.is_some(),
            interface: attached.as_ref().map_or(0, |attached| attached.interface),
        };
        let TemplateEnds { stdout, stderr } = waiting.ends;
        let resolver = attached.into_iter().flat_map(|attached| attached.resolver);
        let fds = [control, stdout, stderr].into_iter().chain(resolver);
        self.server.send(created, fds.collect());
        for leaf in prepared {
            self.say(Reply::Prepared(key, leaf));
        }
        // That of a former pre-warmed sandbox exits shortly.
        self.reap_builder(key);
        self.later(key, OTHER_INSTANCE_CGROUPS, move |supervisor| {
            supervisor.fill_pool(key, INSTANCE_CGROUP_POOL - 1);
            supervisor.allow_boosts(key);
        });
    }
}
