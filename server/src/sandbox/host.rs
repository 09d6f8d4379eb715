//! The interface to the sandbox thread.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::sync::Arc;

use hearth_init::criu::CriuProgram;
use tokio::sync::oneshot;

use super::cgroup::{Tag, Top};
use super::mailbox::{Mailbox, Message};
use super::{
    Capability, PrewarmedBoard, PrewarmedSpec, Sandbox, SandboxError, SandboxSpec, attach, cgroup,
    probe, thread,
};
use crate::model::Network;

/// The narrow interface to everything that needs root: a thread with a mailbox. Cheap to clone.
#[derive(Clone)]
pub struct Host(Arc<HostInner>);

struct HostInner {
    mailbox: Mailbox,
    capabilities: Vec<Capability>,
    prewarmed: PrewarmedBoard,
}

impl Drop for HostInner {
    fn drop(&mut self) {
        self.mailbox.send(Message::Orphaned);
    }
}

impl Host {
    /// Probes the host and starts the sandbox thread. `dir` is a private directory for roots (`DATA_DIR/run`), `init`
    /// the path of the `hearth-init` binary ([`find_init`]). Clears what an earlier server left there and in the cgroups.
    /// May block for some ten milliseconds, and for seconds when there is much to clear.
    ///
    /// # Errors
    /// [`SandboxError::Missing`] when the host cannot give something that every sandbox needs.
    pub fn start(dir: &Path, init: &Path) -> Result<Self, SandboxError> {
        Self::start_with_criu(dir, init, None)
    }

    /// The same, with a CRIU by which templates can be dumped and restored.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_with_criu(
        dir: &Path,
        init: &Path,
        criu: Option<CriuProgram>,
    ) -> Result<Self, SandboxError> {
        let failed = |step: &'static str| move |error: io::Error| SandboxError::step(step, error);
        let mut capabilities = probe::kernel(init)?;
        let tag = Tag::new();
        let top = Top::open(&tag)?;
        cgroup::clear_stale_directories(dir);
        let dir = dir.join(tag.as_str());
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&dir)
            .map_err(|error| {
                SandboxError::step("directory", format!("{}: {error}", dir.display()))
            })?;
        top.record(&dir).map_err(failed("directory"))?;
        capabilities.extend(probe::cgroup(init, &top, &dir));

        let attach = attach::start().map_err(failed("thread"))?;
        let prewarmed = PrewarmedBoard::default();
        let board = prewarmed.clone();
        let mailbox = thread::start(init.to_owned(), dir, top, attach, criu, board)
            .map_err(failed("thread"))?;
        Ok(Self(Arc::new(HostInner {
            mailbox,
            capabilities,
            prewarmed,
        })))
    }

    /// Pre-warms a sandbox for restores of this runtime, without waiting for it. Does nothing without CRIU.
    pub fn keep_prewarmed(&self, spec: PrewarmedSpec) {
        self.0.mailbox.send(Message::KeepPrewarmed(Box::new(spec)));
    }

    /// Ends the pre-warmed sandbox of this runtime, without waiting for it.
    pub fn end_prewarmed(&self, runtime_name: &'static str) {
        self.0.mailbox.send(Message::EndPrewarmed(runtime_name));
    }

    /// The pre-warmed sandboxes.
    pub fn prewarmed(&self) -> &PrewarmedBoard {
        &self.0.prewarmed
    }

    /// What was probed.
    pub fn capabilities(&self) -> &[Capability] {
        &self.0.capabilities
    }

    /// One of them by name.
    pub fn capability(&self, name: &str) -> Option<&Capability> {
        self.0
            .capabilities
            .iter()
            .find(|capability| capability.name == name)
    }

    /// Makes a sandbox and starts the template in it. Dropping the future undoes it.
    ///
    /// # Errors
    /// [`SandboxError::Step`] with the step that failed; nothing of it is left then.
    pub async fn create(&self, spec: SandboxSpec) -> Result<Sandbox, SandboxError> {
        if spec.network == Network::Outbound {
            return Err(SandboxError::Missing {
                what: "outbound network",
                reason: probe::OUTBOUND_REASON.to_owned(),
                remedy: "use \"network\": \"none\"",
            });
        }
        let (reply, answer) = oneshot::channel();
        self.0.mailbox.send(Message::Create(Box::new(spec), reply));
        answer
            .await
            .unwrap_or_else(|_| Err(SandboxError::shut_down()))
    }

    /// Destroys every sandbox and removes all cgroups and directories. Waits until that is done.
    pub async fn shutdown(&self) {
        let (reply, answer) = oneshot::channel();
        self.0.mailbox.send(Message::Shutdown(reply));
        // An error means that the thread has ended before, with nothing left to do.
        let _ = answer.await;
    }
}
