//! The lifecycle of a sandbox: created, spawned, ready, destroying, removed; or failed at any point.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use hearth_init::criu::Outside;
use hearth_init::{MAX_REPORT, Report, wire};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use tokio::sync::oneshot;

use super::jobs::{Job, RETRY};
use super::launch::TemplateEnds;
use super::live::{LiveSandbox, Waiting};
use super::mailbox::Key;
use super::thread::{FIRST_INSTANCE_CGROUP, OTHER_INSTANCE_CGROUPS, SETUP_TIMEOUT, Thread};
use super::{Dumpable, INSTANCE_CGROUP_POOL, RESTORE_STEP, Sandbox, SandboxError, SandboxSpec};

/// The server waits for no template.
fn unblocked(socket: OwnedFd) -> io::Result<OwnedFd> {
    rustix::io::ioctl_fionbio(&socket, true)?;
    Ok(socket)
}

/// What leads out of a sandbox: a pipe has the same inode at both ends, each end of a socket its own.
fn dumpable(
    control: &OwnedFd,
    control_inode: u64,
    ends: &TemplateEnds,
    init: Option<&OwnedFd>,
) -> io::Result<Dumpable> {
    let inode = |fd: &OwnedFd| Ok::<_, io::Error>(rustix::fs::fstat(fd)?.st_ino);
    Ok(Dumpable {
        init: init.ok_or(io::ErrorKind::NotConnected)?.try_clone()?,
        outside: Outside {
            control: control_inode,
            stdout: inode(&ends.stdout)?,
            stderr: inode(&ends.stderr)?,
        },
        control_peer: inode(control)?,
    })
}

impl Thread {
    pub(super) fn create(
        &mut self,
        spec: SandboxSpec,
        reply: oneshot::Sender<Result<Sandbox, SandboxError>>,
    ) {
        if let Some((spec, reply)) = self.restore_into_prewarmed(spec, reply) {
            self.create_anew(spec, reply);
        }
    }

    pub(super) fn create_anew(
        &mut self,
        spec: SandboxSpec,
        reply: oneshot::Sender<Result<Sandbox, SandboxError>>,
    ) {
        let key = self.next;
        self.next += 1;
        let limit = spec.restore.as_ref().map(|source| source.limit);
        let started = if self.closing && !self.closed.is_empty() {
            Err(SandboxError::shut_down())
        } else {
            // The key makes a sandbox's name another one than that of a predecessor that is still being removed.
            let name = format!("{}.{key}", spec.id);
            LiveSandbox::start(self, &name, spec)
        };
        let (mut live, ends) = match started {
            Ok(started) => started,
            Err(error) => {
                // It may not be waited for any more.
                let _ = reply.send(Err(error));
                return;
            }
        };
        let watched = live.control.as_ref().map(|control| {
            epoll::add(
                &self.epoll,
                control,
                EventData::new_u64(key * 2),
                EventFlags::IN,
            )
        });
        if let Some(Err(error)) = watched {
            let _ = reply.send(Err(SandboxError::step("epoll", error)));
            live.control = None;
        } else {
            live.waiting = Some(Waiting {
                reply,
                ends,
                anew: None,
            });
        }
        let unwatched = live.control.is_none();
        self.live.insert(key, live);
        if unwatched {
            self.lose_init(key);
        } else {
            self.later(SETUP_TIMEOUT, 0, Job::GiveUpStarting(key));
            if let Some(limit) = limit {
                self.later(limit, 0, Job::GiveUpRestoring(key, limit));
            }
            // While the sandbox is being created, so that its first start finds a cgroup.
            self.later(FIRST_INSTANCE_CGROUP, 0, Job::FillPool(key, 1));
        }
    }

    /// A restore's time is over: when it is not done, it is given up, with what CRIU had to say.
    pub(super) fn give_up_restoring(&mut self, key: Key, limit: Duration) {
        let Some(live) = self.live.get(&key) else {
            return;
        };
        if live.waiting.is_some() {
            let (limit, said) = (limit.as_millis(), live.criu_said());
            let detail = format!("timed out after {limit} ms; {said}");
            self.fail(key, SandboxError::step(RESTORE_STEP, detail));
        }
    }

    /// Reads what init has to say.
    pub(super) fn on_report(&mut self, key: Key) {
        let mut buffer = [0; MAX_REPORT];
        loop {
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
            match serde_json::from_slice(&buffer[..length]) {
                Ok(Report::Spawned { pid }) => match fds.pop() {
                    Some(pidfd) => self.spawned(key, pidfd),
                    None => self.end_unheld(key, pid),
                },
                Ok(Report::Prewarmed) => self.prewarmed_ready(key),
                Ok(Report::Ready { control_inode }) => self.ready(key, fds.pop(), control_inode),
                Ok(Report::Failed { step, detail }) => {
                    self.fail(key, SandboxError::Step { step, detail });
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
            self.later(RETRY.0, 0, Job::ReapUnheld(pid));
        }
        if let Some(live) = self.live.get_mut(&key) {
            live.gone = true;
            live.control = None;
            live.kill_builder();
        }
        let error = "no descriptor is free for its PID 1";
        self.fail(key, SandboxError::step("pidfd", error));
    }

    pub(super) fn spawned(&mut self, key: Key, pidfd: OwnedFd) {
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
        if live.prewarmed.is_none()
            && let Some(builder) = live.builder.take()
        {
            self.later(RETRY.0, 0, Job::Reap(builder));
        }
        if let Err(error) = watched {
            self.fail(key, SandboxError::step("pidfd", error));
        }
    }

    pub(super) fn ready(&mut self, key: Key, control: Option<OwnedFd>, control_inode: u64) {
        let control = control.ok_or(io::ErrorKind::InvalidData.into());
        let control = match control.and_then(unblocked) {
            Ok(control) => control,
            Err(error) => return self.fail(key, SandboxError::step("control", error)),
        };
        let Some(live) = self.live.get_mut(&key) else {
            return;
        };
        let Some(Waiting { reply, ends, .. }) = live.waiting.take() else {
            return;
        };
        let builder = live.builder.take();
        let dumpable = match dumpable(&control, control_inode, &ends, live.init.as_ref()) {
            Ok(dumpable) => dumpable,
            Err(error) => {
                // It may not be waited for any more.
                let _ = reply.send(Err(SandboxError::step("control", error)));
                return self.destroy(key, None);
            }
        };
        let sandbox = Sandbox {
            control: Some(control),
            dumpable,
            stdout: Some(ends.stdout),
            stderr: Some(ends.stderr),
            key,
            uid: live.uid,
            template: live.group.template(),
            pool: Arc::clone(&live.pool),
            ended: live.ended.subscribe(),
            mailbox: self.mailbox.clone(),
            attach: self.attach.clone(),
        };
        // If nothing waits any more, the sandbox is dropped here, which destroys it.
        drop(reply.send(Ok(sandbox)));
        // That of a former pre-warmed sandbox exits shortly.
        if let Some(builder) = builder {
            self.later(RETRY.0, 0, Job::Reap(builder));
        }
        self.later(
            OTHER_INSTANCE_CGROUPS,
            0,
            Job::FillPool(key, INSTANCE_CGROUP_POOL),
        );
    }
}
