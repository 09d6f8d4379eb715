//! Whether a chain is in service.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use super::latency::HopLatency;
use super::rates::EdgeRates;

/// What each member runs: the version of its function, and the engine's count of that function's deployments, which changes when
/// the same version is started again.
pub(super) type Running = BTreeMap<String, (u32, u64)>;

/// Whether a chain is in service.
pub(super) enum State {
    /// Its members are being started for the first time since the server was.
    Starting,
    /// They run.
    Ready {
        /// What they run.
        running: Running,
        /// Why they do not run what they should.
        reason: Option<String>,
        /// How long they had requests.
        latency: Arc<HopLatency>,
        /// How fast descriptors are sent.
        rates: Arc<EdgeRates>,
    },
    /// A member did not start when the server did.
    Failed {
        /// Why.
        reason: String,
        /// When it was tried.
        since: Instant,
    },
}

impl State {
    pub(super) fn ready(running: Running, members: usize) -> Self {
        Self::Ready {
            running,
            reason: None,
            latency: Arc::new(HopLatency::new(members)),
            rates: Arc::default(),
        }
    }

    pub(super) fn failed(reason: String) -> Self {
        Self::Failed {
            reason,
            since: Instant::now(),
        }
    }

    /// The same with a reason, unless it has one of its own.
    pub(super) fn with_reason(&self, why: String) -> Self {
        match self {
            Self::Ready {
                running,
                latency,
                rates,
                ..
            } => Self::Ready {
                running: running.clone(),
                reason: Some(why),
                latency: latency.clone(),
                rates: rates.clone(),
            },
            Self::Starting => Self::Starting,
            Self::Failed { reason, since } => Self::Failed {
                reason: reason.clone(),
                since: *since,
            },
        }
    }

    pub(super) fn is_starting(&self) -> bool {
        matches!(self, Self::Starting)
    }
}
