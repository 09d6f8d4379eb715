//! One sandbox's network while it lives: applies its version's policy, answers its DNS queries, counts its traffic.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::RwLock;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::broker::{self, Broker, Deadlines, Listener, Reach};
use super::function::{FunctionNetwork, WayOut};
use super::kernel;
use super::ledger::Outcome;
use super::permits::Permits;
use super::resolver::{self, Asker, Names};
use crate::model::{Network, NetworkPolicy};
use crate::sandbox::{BROKER, NetworkError, Outbound, Refusal, RefusalReason};

/// How often the kernel's counters are read: while they change, and otherwise. Traffic since the last reading is lost
/// when the sandbox ends.
const COUNT_OFTEN: Duration = Duration::from_secs(2);
const COUNT_SELDOM: Duration = Duration::from_secs(60);
/// How much longer than the answer's TTL the kernel permits new connections: connecting takes time.
const GRACE: Duration = Duration::from_secs(30);

/// Identifies sandboxes in the ledger.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// The network of a sandbox. Dropping it stops its tasks.
pub struct Attached {
    _running: DropGuard,
}

/// State shared by its tasks.
pub(super) struct Inner {
    number: u64,
    outbound: Outbound,
    function: Arc<FunctionNetwork>,
    /// What the kernel was told last. Held while addresses are allowed, so that none is by a policy that is not in force any
    /// more.
    in_force: RwLock<Arc<NetworkPolicy>>,
    permits: Mutex<Permits>,
    broker: Option<Arc<Broker>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.function.ledger.lock().ended(self.number);
    }
}

impl WayOut {
    /// Starts serving a sandbox's outbound network. Needs a runtime.
    pub fn attach(&self, mut outbound: Outbound) -> Attached {
        let function = self.version.function.clone();
        let sockets = outbound.take_resolver();
        let id = outbound.id();
        let inner = Arc::new(Inner {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            outbound,
            function: function.clone(),
            in_force: RwLock::new(self.policy.clone()),
            permits: Mutex::default(),
            broker: self.broker.clone(),
        });
        function.node.register(id, &inner);
        function.joined(&inner);
        let ended = CancellationToken::new();
        let asker = Arc::new(Asker::new(inner.clone(), function.node.upstream()));
        if let Some((udp, tcp)) = sockets {
            let (inner, serving) = (inner.clone(), ended.clone());
            tokio::spawn(ended.clone().run_until_cancelled_owned(async move {
                // First: the resolver's answers lead there.
                inner.serve_broker(&asker, &serving).await;
                if let Err(error) = resolver::serve(asker, udp, tcp).await {
                    tracing::warn!(%error, "a sandbox's names are not resolved");
                }
            }));
        }
        let changes = self.version.subscribe();
        let follow = follow(inner, changes);
        tokio::spawn(ended.clone().run_until_cancelled_owned(follow));
        Attached {
            _running: ended.drop_guard(),
        }
    }
}

/// Applies changes of the policy, and reads counters.
async fn follow(inner: Arc<Inner>, mut changes: tokio::sync::watch::Receiver<Network>) {
    let mut interval = COUNT_OFTEN;
    // The policy may have changed while the sandbox was created.
    changes.mark_changed();
    loop {
        tokio::select! {
            changed = changes.changed() => {
                if changed.is_err() {
                    return;
                }
                let network = changes.borrow_and_update().clone();
                // A sandbox whose policy became `none` keeps its interface but reaches nothing through it.
                let policy = network.policy().cloned().unwrap_or_default();
                match inner.apply(policy).await {
                    Ok(()) => {}
                    Err(error) if error.is_gone() => return,
                    Err(error) => {
                        tracing::error!(%error, "a changed network policy is not in force; trying again");
                        tokio::time::sleep(COUNT_OFTEN).await;
                        changes.mark_changed();
                    }
                }
            }
            () = tokio::time::sleep(interval) => {
                interval = match inner.count().await {
                    true => COUNT_OFTEN,
                    false => (interval * 2).min(COUNT_SELDOM),
                };
            }
        }
    }
}

impl Inner {
    /// Puts a policy in force.
    pub(super) async fn apply(&self, policy: Arc<NetworkPolicy>) -> Result<(), NetworkError> {
        let mut in_force = self.in_force.write().await;
        if **in_force == *policy {
            return Ok(());
        }
        let resolved = self.permits.lock().resolved(&policy, Instant::now());
        let translated = self.function.kernel(&policy, resolved);
        // Set before the kernel has it: no name may be allowed by the former policy, which may be wider.
        *in_force = policy;
        self.outbound
            .set_policy(&translated)
            .await
            .inspect_err(|_| {
                *in_force = Arc::default();
            })
    }

    /// Reads the kernel's counters. Returns whether they have changed.
    pub(super) async fn count(&self) -> bool {
        match self.outbound.counters().await {
            Ok(counters) => self.function.ledger.lock().count(self.number, counters),
            Err(_) => false,
        }
    }

    /// Records a packet that the kernel reported for this sandbox.
    pub(super) fn refused(&self, refusal: &Refusal) {
        let outcome = match refusal.reason {
            RefusalReason::Policy => Outcome::Refused,
            RefusalReason::Forbidden => Outcome::Forbidden,
            RefusalReason::Limit => Outcome::Limited,
            RefusalReason::DryRun => Outcome::DryRun,
        };
        let protocol = refusal.protocol.map(kernel::of_kernel);
        let address = refusal.address.to_canonical();
        let name = self.name_of(address);
        let destination = (address, refusal.port, protocol);
        let mut ledger = self.function.ledger.lock();
        ledger.packet(name, destination, outcome, Timestamp::now());
    }

    /// Listens where bound names lead to, and forwards what comes.
    async fn serve_broker(&self, asker: &Arc<Asker<Self>>, ended: &CancellationToken) {
        let Some(broker) = &self.broker else {
            return;
        };
        let mut listeners = Vec::new();
        for port in broker.ports() {
            match self.outbound.listen(port).await {
                Ok(socket) => listeners.push(Listener { port, socket }),
                Err(error) if error.is_gone() => return,
                Err(error) => tracing::error!(%error, port, "the broker of secrets cannot listen"),
            }
        }
        let trust = self.function.node.trust();
        let (broker, deadlines) = (broker.clone(), Deadlines::default());
        let served = broker::serve(broker, asker.clone(), trust, deadlines, listeners, ended);
        if let Err(error) = served {
            tracing::error!(%error, "the broker of secrets does not work");
        }
    }

    /// The name that it was told an address for last.
    pub(super) fn name_of(&self, address: IpAddr) -> Option<Arc<str>> {
        self.permits.lock().name_of(address)
    }

    /// Whose it is.
    pub(super) fn function(&self) -> &Arc<FunctionNetwork> {
        &self.function
    }

    async fn allow(
        &self,
        policy: &NetworkPolicy,
        name: &Arc<str>,
        address: IpAddr,
        ttl: Duration,
    ) -> Result<(), NetworkError> {
        for (ports, protocol) in policy.of_name(name) {
            for ports in kernel::ranges(ports) {
                let protocol = kernel::protocol(protocol);
                self.outbound.allow(address, protocol, ports, ttl).await?;
            }
        }
        self.permits
            .lock()
            .note(address, name, Instant::now() + ttl);
        Ok(())
    }
}

impl Names for Inner {
    async fn may_ask(&self, name: &str) -> bool {
        let policy = self.in_force.read().await.clone();
        let allowed = policy.dry_run || policy.allows_name(name);
        let mut ledger = self.function.ledger.lock();
        ledger.asked();
        if !allowed {
            ledger.name_refused(name.into(), Outcome::Refused, Timestamp::now());
        }
        allowed
    }

    fn broker(&self, name: &str) -> Option<IpAddr> {
        let broker = self.broker.as_ref()?;
        broker.is_bound(name).then_some(BROKER.into())
    }

    fn limited(&self, name: &str) {
        let mut ledger = self.function.ledger.lock();
        ledger.name_refused(name.into(), Outcome::Limited, Timestamp::now());
    }

    async fn admit(&self, name: &str, addresses: Vec<IpAddr>, ttl: Duration) -> Vec<IpAddr> {
        let policy = self.in_force.read().await;
        let mut admitted = Vec::new();
        // The policy may have been replaced in the meantime.
        if !(policy.dry_run || policy.allows_name(name)) {
            return admitted;
        }
        let name: Arc<str> = name.into();
        for address in addresses {
            if !kernel::is_reachable(address, self.function.node.open()) {
                let mut ledger = self.function.ledger.lock();
                let destination = (address.to_canonical(), 0, None);
                let name = Some(name.clone());
                ledger.packet(name, destination, Outcome::Forbidden, Timestamp::now());
                continue;
            }
            match self.allow(&policy, &name, address, ttl + GRACE).await {
                Ok(()) => admitted.push(address),
                Err(error) => tracing::debug!(%error, %address, "an address was not allowed"),
            }
        }
        admitted
    }
}

impl Reach for Asker<Inner> {
    async fn addresses(&self, name: &str) -> Vec<IpAddr> {
        Self::addresses(self, name).await
    }

    async fn dial(&self, to: SocketAddr) -> Result<std::net::TcpStream, NetworkError> {
        self.names().outbound.dial(to).await
    }
}
