//! Dispatches the host process's messages.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use hearth_host::SandboxError;
use hearth_host::protocol::{Key, Message as _, Reply, Request};
use rustix::process::Signal;

use super::{Answer, Client};
use crate::host_error::HostError;
use crate::sandbox::link::Listener;
use crate::sandbox::sandbox::{Ended, Sandbox, Shared};

impl Client {
    fn shared(&self, key: Key) -> Option<Arc<Shared>> {
        self.sandboxes.lock().get(&key).cloned()
    }
}

impl Listener for Client {
    type Said = Reply;

    fn take(self: &Arc<Self>, reply: Reply, mut fds: Vec<OwnedFd>) {
        match reply {
            Reply::Created {
                sequence,
                key,
                ref name,
                uid,
                was_prewarmed,
                interface,
            } => {
                if fds.len() != reply.descriptors() {
                    // None was free to receive them.
                    let error = SandboxError::step("control", rustix::io::Errno::MFILE);
                    self.link.answer(sequence, Err(error));
                    return self.send(Request::Destroy(key));
                }
                let shared = Arc::<Shared>::default();
                self.sandboxes.lock().insert(key, shared.clone());
                if was_prewarmed {
                    self.prewarmed.count_use();
                }
                let sandbox = Sandbox::new(self.clone(), key, name, uid, interface, shared, fds);
                self.link.answer(sequence, Ok(Answer::Sandbox(sandbox)));
            }
            Reply::Socket(sequence) => {
                // None was free to receive it.
                let missing = || SandboxError::step("socket", rustix::io::Errno::MFILE);
                let socket = fds.pop().ok_or_else(missing);
                self.link.answer(sequence, socket.map(Answer::Socket));
            }
            Reply::Connection(sequence) => {
                // None was free to receive them.
                let missing = |_| SandboxError::step("connection", rustix::io::Errno::MFILE);
                let ends = <[OwnedFd; 2]>::try_from(fds).map_err(missing);
                self.link.answer(sequence, ends.map(Answer::Connection));
            }
            Reply::Refused(sequence, error) => self.link.answer(sequence, Err(error)),
            Reply::Done(sequence) => self.link.answer(sequence, Ok(Answer::Done)),
            Reply::InstanceCgroup(sequence, _, leaf) => {
                self.link.answer(sequence, Ok(Answer::InstanceCgroup(leaf)));
            }
            Reply::Prepared(key, leaf) => {
                if let Some(shared) = self.shared(key) {
                    shared.pool.lock().put(leaf);
                }
            }
            Reply::AttachFailed(key, leaf, detail) => {
                let refused = self
                    .shared(key)
                    .and_then(|shared| shared.refused.lock().remove(&leaf));
                if let Some(refused) = refused {
                    // The receiver may have ended it.
                    let _ = refused.send(HostError::new(detail));
                }
            }
            Reply::Ended {
                key,
                out_of_memory,
                code,
                signal,
                init_signal,
            } => {
                let template = (code.is_some() || signal.is_some()).then_some((code, signal));
                if let Some(shared) = self.shared(key) {
                    shared.ended.send_replace(Some(Ended {
                        how: how_it_ended(template, init_signal, out_of_memory),
                        out_of_memory,
                        template,
                    }));
                }
            }
            Reply::Destroyed(key) => {
                let shared = self.sandboxes.lock().remove(&key);
                if let Some(waiting) = shared.and_then(|shared| shared.destroyed.lock().take()) {
                    // It may not be waited for any more.
                    let _ = waiting.send(());
                }
            }
            Reply::Prewarmed {
                runtime,
                kept,
                ready,
            } => self.prewarmed.show(&runtime, kept.then_some(ready)),
            // Said at the beginning only.
            Reply::Start { .. } | Reply::Capability(_) | Reply::Up { .. } => {}
        }
    }

    /// The host process is gone, and with it every sandbox.
    fn lose(&self) {
        self.link.lose();
        let sandboxes = std::mem::take(&mut *self.sandboxes.lock());
        for shared in sandboxes.into_values() {
            shared.ended.send_if_modified(|ended| {
                let is_news = ended.is_none();
                ended.get_or_insert_with(|| Ended {
                    how: "the sandbox was destroyed".to_owned(),
                    out_of_memory: false,
                    template: None,
                });
                is_news
            });
            drop(shared.destroyed.lock().take());
        }
    }
}

/// "the template exited with status 1" …, by the template's status or signal as PID 1 has reported them, and by the signal that
/// killed PID 1.
fn how_it_ended(
    template: Option<(Option<i32>, Option<i32>)>,
    init_signal: Option<i32>,
    out_of_memory: bool,
) -> String {
    let killed = |number: i32| match out_of_memory && number == Signal::KILL.as_raw() {
        true => "ran out of memory".to_owned(),
        false => format!("was killed by signal {number}"),
    };
    match (template, init_signal) {
        (Some((_, Some(number))), _) => format!("the template {}", killed(number)),
        (Some((Some(code), None)), _) => format!("the template exited with status {code}"),
        (_, Some(number)) => format!("PID 1 of the sandbox {}", killed(number)),
        _ => "PID 1 of the sandbox exited".to_owned(),
    }
}
