//! The network of a function: what each of its versions may reach, and what was seen.

use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;

use super::attached::Inner;
use super::broker::Broker;
use super::ledger::{DestinationView, Ledger, NetworkTotals};
use super::{Node, kernel};
use crate::model::{Network, NetworkPolicy, Rule};
use crate::sandbox::KernelPolicy;

/// How long a change waits for each sandbox to be told: the host process answers in a millisecond.
const SETTLE: Duration = Duration::from_secs(1);

/// What all versions of a function share.
pub struct FunctionNetwork {
    pub(super) node: Node,
    pub(super) ledger: Mutex<Ledger>,
    versions: Mutex<Vec<Weak<VersionNetwork>>>,
    sandboxes: Mutex<Vec<Weak<Inner>>>,
}

impl FunctionNetwork {
    fn new(node: Node) -> Arc<Self> {
        Arc::new(Self {
            node,
            ledger: Mutex::default(),
            versions: Mutex::default(),
            sandboxes: Mutex::default(),
        })
    }

    /// That of a function with this version, or of one that has none yet.
    pub fn after(former: Option<&VersionNetwork>, node: &Node) -> Arc<Self> {
        former.map_or_else(|| Self::new(node.clone()), |former| former.function.clone())
    }

    /// The network of one of its versions. What other versions may reach stays as it is until [`Self::apply`].
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

    /// What the active version may reach holds for all sandboxes of the function, also for those of other versions that still
    /// serve requests.
    pub fn apply(&self, network: &Network) {
        if let Some(policy) = network.policy() {
            self.ledger.lock().forget_allowed(policy);
        }
        for version in self.versions.lock().iter().filter_map(Weak::upgrade) {
            version.network.send_replace(network.clone());
        }
    }

    /// Waits until the kernel has been told of it, in all sandboxes that live; not for long.
    pub async fn settle(&self, network: &Network) {
        let policy = network.policy().cloned().unwrap_or_default();
        let sandboxes: Vec<_> = self
            .sandboxes
            .lock()
            .iter()
            .filter_map(Weak::upgrade)
            .collect();
        for sandbox in sandboxes {
            // What fails is tried again by the sandbox's own task.
            let told = tokio::time::timeout(SETTLE, sandbox.apply(policy.clone()));
            let _ = told.await;
        }
    }

    pub(super) fn joined(&self, sandbox: &Arc<Inner>) {
        let mut sandboxes = self.sandboxes.lock();
        sandboxes.retain(|known| known.strong_count() > 0);
        sandboxes.push(Arc::downgrade(sandbox));
    }

    /// Asks the kernel for what it has counted.
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

    /// Traffic since the server started, as far as it was asked for.
    pub fn totals(&self) -> NetworkTotals {
        self.ledger.lock().totals()
    }

    /// What was refused, or allowed because of a dry run, since the server started; the latest first.
    pub fn destinations(&self) -> Vec<DestinationView> {
        self.ledger.lock().destinations()
    }

    /// Entries that would allow what a dry run has seen.
    pub fn suggestions(&self) -> Vec<Rule> {
        self.ledger.lock().suggestions()
    }
}

/// What one version may reach.
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

    /// The way out of a sandbox that is to be made; none if it has none.
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

/// The way out of one sandbox, before it is made.
pub struct WayOut {
    pub(super) version: Arc<VersionNetwork>,
    pub(super) policy: Arc<NetworkPolicy>,
    pub(super) broker: Option<Arc<Broker>>,
}

impl WayOut {
    /// The same, with a broker for the hosts that secrets are bound to.
    #[must_use]
    pub fn with(self, broker: Option<Arc<Broker>>) -> Self {
        Self { broker, ..self }
    }

    /// The certificate that the sandbox has to trust, PEM; none if it needs none.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn certificate(&self) -> std::io::Result<Option<&str>> {
        let broker = self.broker.as_ref();
        broker.map(|broker| broker.certificate()).transpose()
    }

    /// What the kernel is to allow from the first moment on.
    pub fn kernel(&self) -> KernelPolicy {
        kernel::policy(&self.policy, self.version.function.node.open(), Vec::new())
    }
}
