//! What can go wrong, and what the host can do.

use std::io;

use hearth_init::{fields_of, variants_of};

use crate::peer::PeerError;
use crate::protocol::{NAME_MAX, TEXT_MAX, cut};

/// The step in which a port is opened that another process has.
const TAKEN_STEP: &str = "taken";
/// The step of `hearth-init` in which CRIU is at work.
const RESTORE_STEP: &str = "restore";

/// Why there is no sandbox, or something was not done to it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SandboxError {
    /// The host lacks something the sandbox needs: which, and how to get it, in one line.
    #[error("{what} is not available: {reason}; {remedy}")]
    Missing {
        /// "user namespaces", "Landlock", "the memory cgroup" …
        what: String,
        /// What was tried and what the kernel said.
        reason: String,
        /// How to get it.
        remedy: String,
    },
    /// A step of the set-up failed.
    #[error("sandbox set-up failed at {step}: {detail}")]
    Step {
        /// The step.
        step: String,
        /// What went wrong.
        detail: String,
    },
    /// It has ended.
    #[error("the sandbox is gone")]
    Gone,
}

impl SandboxError {
    /// A step that failed. Texts for which no message has room are cut.
    pub fn step(step: &str, detail: impl ToString) -> Self {
        let (mut step, mut detail) = (step.to_owned(), detail.to_string());
        cut(&mut step, NAME_MAX);
        cut(&mut detail, TEXT_MAX);
        Self::Step { step, detail }
    }

    /// A restore that failed, or took too long.
    pub(crate) fn restore(detail: String) -> Self {
        Self::step(RESTORE_STEP, detail)
    }

    /// What was asked for is not granted, or makes no sense.
    pub fn specification(detail: impl ToString) -> Self {
        Self::step("specification", detail)
    }

    /// A port that another process has, as far as it can be seen which.
    pub(crate) fn taken(owner: Option<String>) -> Self {
        Self::step(
            TAKEN_STEP,
            owner.unwrap_or_else(|| "another process".to_owned()),
        )
    }

    /// Which process has a port; none if the error is another one.
    pub fn owner_of_port(&self) -> Option<&str> {
        match self {
            Self::Step { step, detail } if step == TAKEN_STEP => Some(detail),
            _ => None,
        }
    }

    /// Whether it was restoring that failed, or took too long.
    pub fn is_of_restore(&self) -> bool {
        matches!(self, Self::Step { step, .. } if step == RESTORE_STEP)
    }

    /// What makes sandboxes has ended.
    pub fn shut_down() -> Self {
        Self::step("host", "the sandboxes are shut down")
    }
}

variants_of!(SandboxError {
    0 => Gone,
    1 => Step { step, detail },
    2 => Missing { what, reason, remedy },
});

/// What this host can do, for `GET /api/v1/node`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capability {
    /// `userns`, `landlock`, `seccomp`, `cgroup`, `cgroup_fast_attach`, `criu`, `xdp`, `sk_msg` …
    pub name: String,
    /// Whether Hearth can use it.
    pub available: bool,
    /// Why not, or null.
    pub reason: Option<String>,
    /// Its version, where it has one ("v1", "v2", Landlock ABI "7").
    pub version: Option<String>,
}

fields_of!(Capability {
    name,
    available,
    reason,
    version,
});

impl Capability {
    /// One that can be used.
    pub fn available(name: &str, version: Option<String>) -> Self {
        Self {
            name: name.to_owned(),
            available: true,
            reason: None,
            version,
        }
    }

    /// One that cannot, and why.
    pub fn unavailable(name: &str, mut reason: String) -> Self {
        cut(&mut reason, TEXT_MAX);
        Self {
            name: name.to_owned(),
            available: false,
            reason: Some(reason),
            version: None,
        }
    }
}

/// Why the host process has stopped serving without having been asked to.
#[derive(Debug, thiserror::Error)]
pub enum HostProcessError {
    /// The server is not listened to any more.
    #[error("the server {0}")]
    Server(#[from] PeerError),
    /// Nor is the gateway.
    #[error("the gateway {0}")]
    Gateway(PeerError),
    /// The gateway has ended.
    #[error("the gateway has ended")]
    NoGateway,
    /// The kernel refused something that the process cannot do without.
    #[error("the host process cannot continue: {0}")]
    Kernel(#[from] io::Error),
}
