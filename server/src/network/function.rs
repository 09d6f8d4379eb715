//! A function's network: what each of its versions may reach, and what was observed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;

use super::attached::Inner;
use super::broker::Broker;
use super::labels::Labelled;
use super::ledger::{DestinationView, Ledger, NetworkTotals};
use super::reached::ReachedView;
use super::{Node, kernel};
use crate::model::{Network, NetworkPolicy, Rule};
use crate::sandbox::{KernelPolicy, Resolved};

/// How long a change waits for each sandbox to apply it: the gateway answers within a millisecond.
const SETTLE: Duration = Duration::from_secs(1);

/// The number of the next function's group.
static NEXT_GROUP: AtomicU64 = AtomicU64::new(1);

/// State shared by all versions of a function.
pub struct FunctionNetwork {
    pub(super) node: Node,
    pub(super) ledger: Mutex<Ledger>,
    /// Of its sandboxes, which share its limits.
    group: u64,
    versions: Mutex<Vec<Weak<VersionNetwork>>>,
    sandboxes: Mutex<Vec<Weak<Inner>>>,
}

impl FunctionNetwork {
    fn new(node: Node) -> Arc<Self> {
        Arc::new(Self {
            node,
            ledger: Mutex::default(),
            group: NEXT_GROUP.fetch_add(1, Ordering::Relaxed),
            versions: Mutex::default(),
            sandboxes: Mutex::default(),
        })
    }

    /// The network of a function that starts with this version, or has none yet.
    pub fn after(former: Option<&VersionNetwork>, node: &Node) -> Arc<Self> {
        former.map_or_else(|| Self::new(node.clone()), |former| former.function.clone())
    }

    /// The network of one of its versions. What other versions may reach does not change before [`Self::apply`].
    pub fn version(self: &Arc<Self>, network: Network) -> Arc<VersionNetwork> {
        let version = Arc::new(VersionNetwork {
            function: self.clone(),
            network: watch::Sender::new(network),
        });
        let mut versions = self.versions.lock();
        versions.retain(|known| known.strong_count() > 0);
        versions.push(Arc::downgrade(&version));
        version
    }

    /// Applies the active version's policy to all sandboxes of the function, including those of other versions that are
    /// still serving requests.
    pub fn apply(&self, network: &Network) {
        if let Some(policy) = network.policy() {
            self.ledger.lock().forget_allowed(policy);
        }
        for version in self.versions.lock().iter().filter_map(Weak::upgrade) {
            version.network.send_replace(network.clone());
        }
    }

    /// Waits, up to a limit, until the kernel has applied it to all live sandboxes.
    pub async fn settle(&self, network: &Network) {
        let policy = network.policy().cloned().unwrap_or_default();
        let sandboxes: Vec<_> = self
            .sandboxes
            .lock()
            .iter()
            .filter_map(Weak::upgrade)
            .collect();
        for sandbox in sandboxes {
            // The sandbox's own task retries failures.
            let applied = tokio::time::timeout(SETTLE, sandbox.apply(policy.clone()));
            let _ = applied.await;
        }
    }

    /// A policy for one of its sandboxes in the kernel's words.
    pub(super) fn kernel(&self, policy: &NetworkPolicy, resolved: Vec<Resolved>) -> KernelPolicy {
        KernelPolicy {
            group: self.group,
            ..kernel::policy(policy, self.node.open(), resolved)
        }
    }

    pub(super) fn joined(&self, sandbox: &Arc<Inner>) {
        let mut sandboxes = self.sandboxes.lock();
        sandboxes.retain(|known| known.strong_count() > 0);
        sandboxes.push(Arc::downgrade(sandbox));
    }

    /// Reads the kernel's counters.
    pub async fn refresh(&self) {
        let sandboxes: Vec<_> = self
            .sandboxes
            .lock()
            .iter()
            .filter_map(Weak::upgrade)
            .collect();
        for sandbox in sandboxes {
            sandbox.count().await;
        }
    }

    /// Traffic since the server started, as of the last reading.
    pub fn totals(&self) -> NetworkTotals {
        self.ledger.lock().totals()
    }

    /// Destinations that were refused, or allowed because of a dry run, since the server started; latest first.
    pub fn destinations(&self) -> Vec<DestinationView> {
        self.ledger.lock().destinations()
    }

    /// What was reached since the server started; the latest first.
    pub fn reached(&self) -> Vec<ReachedView> {
        self.ledger.lock().reached.views()
    }

    /// Traffic and refusals by destination, for metrics.
    pub fn labelled(&self) -> Vec<(Arc<str>, Labelled)> {
        self.ledger.lock().labels.all()
    }

    /// Entries that would allow what a dry run has seen.
    pub fn suggestions(&self) -> Vec<Rule> {
        self.ledger.lock().suggestions()
    }
}

/// The outbound network of one version.
pub struct VersionNetwork {
    pub(super) function: Arc<FunctionNetwork>,
    network: watch::Sender<Network>,
}

impl VersionNetwork {
    /// Its function's.
    pub fn function(&self) -> &Arc<FunctionNetwork> {
        &self.function
    }

    /// What it may reach now.
    pub fn now(&self) -> Network {
        self.network.borrow().clone()
    }

    /// The way out of a sandbox to be created; none if the policy is `none`.
    pub fn way_out(self: &Arc<Self>) -> Option<WayOut> {
        let policy = self.network.borrow().policy().cloned()?;
        Some(WayOut {
            version: self.clone(),
            policy,
            broker: None,
        })
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<Network> {
        self.network.subscribe()
    }
}

/// The way out of one sandbox, before the sandbox exists.
pub struct WayOut {
    pub(super) version: Arc<VersionNetwork>,
    pub(super) policy: Arc<NetworkPolicy>,
    pub(super) broker: Option<Arc<Broker>>,
}

impl WayOut {
    /// Adds a broker for the hosts that secrets are bound to.
    #[must_use]
    pub fn with(self, broker: Option<Arc<Broker>>) -> Self {
        Self { broker, ..self }
    }

    /// The certificate that the sandbox has to trust, PEM; none without a broker.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn certificate(&self) -> std::io::Result<Option<&str>> {
        let broker = self.broker.as_ref();
        broker.map(|broker| broker.certificate()).transpose()
    }

    /// What the kernel allows from the start.
    pub fn kernel(&self) -> KernelPolicy {
        self.version.function.kernel(&self.policy, Vec::new())
    }
}
