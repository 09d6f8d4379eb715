//! What the server asks for, taken as if a hostile one had asked: every number and name is checked against what the host
//! process itself knows.

use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::time::Duration;

use super::{INSTANCE_CGROUP_POOL, Supervisor};
use crate::helpers::News;
use crate::limits::SANDBOX_INSTANCES_MAX;
use crate::protocol::papers::is_image_name;
use crate::protocol::request::Order;
use crate::protocol::{Key, Papers, Protocol, Reply, Request, Sequence};
use crate::{SandboxError, UIDS, ports};

/// Most sandboxes at a time. Each has processes, cgroups and descriptors: protects the host from a server that asks for
/// more and more.
const SANDBOXES_MAX: usize = 4096;
/// Longest id of a sandbox: with the key it is a name.
const ID_MAX: usize = 100;
/// Longest limit of a restore. The longest boot, whose time a restore gets, is shorter.
const RESTORE_LIMIT_MAX: Duration = Duration::from_secs(600);
/// Smallest and largest memory of an instance, bytes.
const MEMORY_BYTES: Range<u64> = (1 << 20)..(1 << 40);

impl Supervisor {
    /// Does what one request asks for. What is not granted is refused, or ignored where nobody waits for an answer: a
    /// sandbox may be gone by the time that a request about it arrives.
    pub(super) fn handle(&mut self, request: Request, fds: Vec<OwnedFd>) {
        if self.closing {
            return self.refuse(&request);
        }
        match request {
            Request::Create(sequence, order) => {
                let mut fds = fds.into_iter();
                let (papers, policy) = (fds.next().map(Papers::open), fds.next());
                let made = match papers {
                    Some(Err(error)) => Err(SandboxError::specification(error)),
                    Some(Ok(papers)) if policy.is_some() == order.network => {
                        self.create(sequence, order, papers, policy)
                    }
                    _ => Err(SandboxError::step("papers", rustix::io::Errno::MFILE)),
                };
                self.refuse_failed(sequence, made);
            }
            Request::Destroy(key) => self.destroy_and_say(key),
            Request::InstanceCgroup(sequence, key) => {
                let made = match self.live.get_mut(&key) {
                    Some(live) if live.is_running() => live
                        .instance_cgroup()
                        .and_then(|leaf| self.keep_off(key).map(|()| leaf))
                        .map_err(|error| SandboxError::step("cgroup", error)),
                    _ => Err(SandboxError::Gone),
                };
                self.say(match made {
                    Ok(leaf) => Reply::InstanceCgroup(sequence, key, leaf),
                    Err(error) => Reply::Refused(sequence, error),
                });
            }
            Request::FillPool(key, count) => {
                self.fill_pool(key, count.min(INSTANCE_CGROUP_POOL));
            }
            Request::Attach(target) => self.attach(target),
            Request::Kill(target) => self.kill(target),
            Request::Release(target) => self.release(target),
            Request::Freeze(target, with_template) => self.freeze(target, with_template),
            Request::Thaw(target, with_template) => self.thaw(target, with_template),
            Request::LimitCpu(target, quota_us) => self.limit_cpu(target, quota_us),
            Request::Dedicate(sequence, target, cores) => {
                let asked = self.dedicate(sequence, target, cores);
                self.refuse_failed(sequence, asked);
            }
            Request::FreezeTemplate(key) => self.freeze_template(key),
            Request::ThawTemplate(key) => self.thaw_template(key),
            Request::KeepPrewarmed(uid_base, runtime) => self.keep_prewarmed(uid_base, &runtime),
            Request::EndPrewarmed(runtime) => self.end_prewarmed(&runtime),
            Request::Dump(sequence, key, mappings, image) => {
                let asked = self.dump(sequence, key, mappings, image);
                self.refuse_failed(sequence, asked);
            }
            Request::RemoveImage(sequence, image) => {
                let asked = match is_image_name(&image) {
                    true => self.images.ask(sequence, move |images| {
                        images.remove(&image).map(|()| Reply::Done(sequence))
                    }),
                    false => Err(SandboxError::specification("not the name of an image")),
                };
                self.refuse_failed(sequence, asked);
            }
            Request::Socket(sequence, key, purpose) => self.socket(sequence, key, purpose),
            Request::Shutdown(sequence) => {
                self.closed.push(sequence);
                self.close();
            }
            Request::OpenPort(sequence, protocol, port) => {
                self.open_port(sequence, protocol, port);
            }
            Request::Prioritize(thread, raised) => self.prioritize(thread, raised),
            Request::Connect(sequence, chain) => {
                let asked = self.chains.take(move |chains| {
                    Some(match chains.connect(chain) {
                        Ok(ends) => News::Connection(sequence, ends),
                        Err(error) => News::Say(Reply::Refused(sequence, error)),
                    })
                });
                self.refuse_failed(sequence, asked);
            }
            Request::EndChain(chain) => {
                let ended = self.chains.take(move |chains| {
                    chains.end(chain);
                    None
                });
                if let Err(error) = ended {
                    tracing::warn!(%error, "a chain's network namespace stays until the end");
                }
            }
        }
    }

    /// Everything is being shut down.
    fn refuse(&mut self, request: &Request) {
        match *request {
            Request::Create(sequence, _)
            | Request::InstanceCgroup(sequence, _)
            | Request::Dedicate(sequence, ..)
            | Request::Dump(sequence, ..)
            | Request::RemoveImage(sequence, _)
            | Request::Socket(sequence, ..)
            | Request::OpenPort(sequence, ..)
            | Request::Connect(sequence, _) => {
                self.say(Reply::Refused(sequence, SandboxError::shut_down()));
            }
            Request::Destroy(key) => self.destroy_and_say(key),
            Request::Shutdown(sequence) => self.closed.push(sequence),
            _ => {}
        }
    }

    /// Opens a port, or says who has it.
    fn open_port(&mut self, sequence: Sequence, protocol: Protocol, port: u16) {
        let settings = &self.host.settings.ports;
        if !ports::is_allowed(port, settings) {
            let error = SandboxError::specification("functions may not have this port");
            return self.say(Reply::Refused(sequence, error));
        }
        match ports::open(protocol, port, settings) {
            Ok(socket) => self.server.send(Reply::Socket(sequence), vec![socket]),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                let asked = self.attach.ask(sequence, move |()| {
                    let owner = ports::owner(protocol, port);
                    Err(SandboxError::taken(owner))
                });
                self.refuse_failed(sequence, asked);
            }
            Err(error) => self.say(Reply::Refused(sequence, SandboxError::step("port", error))),
        }
    }

    /// Tells the server when that was not granted.
    pub(super) fn refuse_failed(&mut self, sequence: Sequence, asked: Result<(), SandboxError>) {
        if let Err(error) = asked {
            self.say(Reply::Refused(sequence, error));
        }
    }

    /// Whether a sandbox with these numbers may be made.
    pub(super) fn check_order(&self, order: &Order) -> Result<(), SandboxError> {
        let refused = |what: &str| Err(SandboxError::specification(what));
        if !MEMORY_BYTES.contains(&order.memory_bytes) {
            return refused("the memory is out of bounds");
        }
        if !(1..=SANDBOX_INSTANCES_MAX).contains(&order.max_instances) {
            return refused("the number of instances is out of bounds");
        }
        if order
            .restore_limit
            .is_some_and(|limit| limit > RESTORE_LIMIT_MAX)
        {
            return refused("the limit of the restore is out of bounds");
        }
        self.check_uid(order.uid_base)
    }

    /// Whether a sandbox may have this pair of uids: it is the sandboxes', and no other sandbox has it.
    pub(super) fn check_uid(&self, uid_base: u32) -> Result<(), SandboxError> {
        let is_pair = |uid: u32| (uid - UIDS.start).is_multiple_of(2);
        if !UIDS.contains(&uid_base)
            || !UIDS.contains(&uid_base.saturating_add(1))
            || !is_pair(uid_base)
        {
            return Err(SandboxError::specification("the uid is not a sandbox's"));
        }
        if self.live.len() >= SANDBOXES_MAX {
            return Err(SandboxError::step("host", "there are too many sandboxes"));
        }
        if self.live.values().any(|live| live.uid == uid_base + 1) {
            return Err(SandboxError::specification("the uid is another sandbox's"));
        }
        Ok(())
    }

    /// Whether a sandbox's names may be these. What else the papers hold was checked when they were read.
    pub(super) fn check_names(papers: &Papers, order: &Order) -> Result<(), SandboxError> {
        papers.check().map_err(SandboxError::specification)?;
        if papers.id.len() > ID_MAX {
            return Err(SandboxError::specification("the id is too long"));
        }
        if papers.image.is_some() != order.restore_limit.is_some() {
            return Err(SandboxError::specification("an image without a limit"));
        }
        Ok(())
    }

    /// Has the template of a sandbox dumped.
    fn dump(
        &mut self,
        sequence: Sequence,
        key: Key,
        mappings: u64,
        image: String,
    ) -> Result<(), SandboxError> {
        if !is_image_name(&image) {
            return Err(SandboxError::specification("not the name of an image"));
        }
        let live = self.live.get(&key).filter(|live| live.is_running());
        let dumpable = live
            .and_then(|live| live.dumpable())
            .ok_or(SandboxError::Gone)?;
        self.images.ask(sequence, move |images| {
            images
                .dump(&image, mappings, &dumpable)
                .map(|()| Reply::Done(sequence))
        })
    }
}
