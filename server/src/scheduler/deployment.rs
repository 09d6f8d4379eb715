//! A deployment: one function version in service, with its template and its instances.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::becoming::Ahead;
use super::boot::{TemplateSlot, TemplateStatus};
use super::boot_failure::BootFailure;
use super::decisions::Decisions;
use super::evictor::KeepValue;
use super::lease::{Handed, Origin};
use super::pool::{Counts, Limits, Pool};
use super::resources::Resources;
use crate::instance::{FunctionKey, Imported, Instance};
use crate::model::{DecisionCounts, FunctionSpec, LogEntry, LogLine, Note, Start, Threads};
use crate::network::{Broker, FunctionNetwork, VersionNetwork, WayOut};
use crate::package::Package;

/// Identifies deployments at the gates.
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// Answers a waiting request.
pub(super) type Waiter = oneshot::Sender<Result<Handed, Arc<BootFailure>>>;
/// The pool of instances and waiting requests; see [`Pool`].
pub(super) type InstancePool = Pool<Box<Instance>, Waiter>;

/// See [`Deployment::compare_on`].
#[derive(Debug, Clone, Copy)]
struct Compared {
    processor: Option<u32>,
}

/// One function version in service.
pub struct Deployment {
    /// The function's row id, once it is stored.
    pub function: FunctionKey,
    /// The function's name.
    pub name: Arc<str>,
    /// See [`Self::version`].
    pub(super) version: AtomicU32,
    /// Its settings. For the network, see [`Self::network`].
    pub spec: FunctionSpec,
    /// What it may reach over the network.
    pub network: Arc<VersionNetwork>,
    /// Puts secrets into its requests.
    broker: Option<Arc<Broker>>,
    /// Its unpacked code, kept on disk while a sandbox may read it.
    pub package: Package,
    pub(super) resources: Arc<Resources>,
    pub(super) slot: TemplateSlot,
    /// What its import leaves running, once known.
    pub(super) threads: Mutex<Option<Threads>>,
    pub(super) ahead: Ahead,
    pub(super) pool: Mutex<InstancePool>,
    pub(super) decisions: Arc<Decisions>,
    pub(super) keep_value: Mutex<KeepValue>,
    pub(super) id: u64,
    /// Locked while the template is brought up.
    pub(super) booting: tokio::sync::Mutex<()>,
    import_lines: Mutex<Vec<LogLine>>,
    notes: Mutex<Vec<Note>>,
    retired: AtomicBool,
    /// How it is set up for a comparison, if it is for one.
    compared: OnceLock<Compared>,
}

impl Deployment {
    /// Bytes of one instance, as last measured.
    pub fn instance_bytes(&self) -> u64 {
        self.keep_value.lock().instance_bytes()
    }

    /// Expected duration of a start.
    pub fn start_cost(&self) -> Duration {
        self.pool.lock().start_cost()
    }

    /// A deployment without a template. It inherits the estimates of its function's `former` version, and what is known
    /// of the `threads` that its own import leaves running.
    pub fn new(
        function: FunctionKey,
        version: u32,
        spec: FunctionSpec,
        package: Package,
        resources: Arc<Resources>,
        former: Option<&Self>,
        threads: Option<Threads>,
    ) -> Arc<Self> {
        let limits = Limits::of(&spec, resources.controllers);
        let network =
            FunctionNetwork::after(former.map(|former| &*former.network), &resources.network);
        let network = network.version(spec.network.clone());
        let learned = former.map(|former| former.pool.lock().learned());
        Arc::new(Self {
            function,
            name: spec.name.as_str().into(),
            version: AtomicU32::new(version),
            network,
            broker: Broker::new(&spec.name, &spec.secrets, &resources.secrets),
            spec,
            package,
            resources,
            slot: TemplateSlot::empty(),
            threads: Mutex::new(threads),
            ahead: Ahead::default(),
            pool: Mutex::new(Pool::new(limits, Instant::now(), learned)),
            decisions: former.map_or_else(Arc::default, |former| former.decisions.clone()),
            keep_value: Mutex::new(former.map_or_else(KeepValue::default, |former| {
                former.keep_value.lock().continued()
            })),
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            booting: tokio::sync::Mutex::default(),
            import_lines: Mutex::default(),
            notes: Mutex::default(),
            retired: AtomicBool::new(false),
            compared: OnceLock::new(),
        })
    }

    /// Sets it up for a comparison: its template is always booted, on this processor if one is given. All that are restored from one image
    /// have their memory where it had it, and so the same speed.
    pub fn compare_on(&self, processor: Option<u32>) {
        // Once, when it is made.
        let _ = self.compared.set(Compared { processor });
    }

    /// Whether it has no image and gets none.
    pub(super) fn is_imageless(&self) -> bool {
        self.compared.get().is_some()
    }

    /// The processor that its sandboxes are pinned to.
    pub(super) fn processor(&self) -> Option<u32> {
        self.compared.get()?.processor
    }

    /// The way out of a sandbox of it; none if its network is `none`.
    pub(super) fn way_out(&self) -> Option<WayOut> {
        let way_out = self.network.way_out()?;
        Some(way_out.with(self.broker.clone()))
    }

    /// Boots the template unless it is up, and starts the minimum number of instances.
    ///
    /// # Errors
    /// [`BootFailure`] with the traceback if the code does not import.
    pub async fn warm_up(self: &Arc<Self>) -> Result<(), Arc<BootFailure>> {
        self.template().await?;
        self.start_due();
        Ok(())
    }

    /// After [`Self::warm_up`]: waits until there is a pre-forked instance for the first request, for a short time at
    /// most.
    pub async fn forked_ahead(&self) {
        if let Some(template) = self.slot.up() {
            template.first_preforked().await;
        }
    }

    /// Stores the import's output, once the function has a row.
    pub async fn store_import_lines(&self) {
        let lines = std::mem::take(&mut *self.import_lines.lock());
        if !lines.is_empty() {
            let entries = lines
                .into_iter()
                .map(|line| LogEntry {
                    invocation: None,
                    line,
                })
                .collect();
            self.resources.logs.store(&self.function, entries).await;
        }
    }

    pub(super) fn keep_imported(&self, imported: Imported) {
        *self.import_lines.lock() = imported.lines;
        *self.notes.lock() = imported.notes;
    }

    /// Findings of the last import that the author should know. If each instance has its own import, nothing is shared
    /// and there are none.
    pub fn notes(&self) -> Vec<Note> {
        if self.spec.start == Start::Boot {
            return Vec::new();
        }
        self.notes.lock().clone()
    }

    /// Whether part of it must stay up even without calls.
    pub fn has_minimum(&self) -> bool {
        self.spec.keep_warm || self.spec.min_instances > 0
    }

    /// Calls so far.
    pub fn calls(&self) -> u64 {
        self.pool.lock().calls()
    }

    /// State of its template. If instances are templates themselves, a live one counts.
    pub fn template_status(&self) -> TemplateStatus {
        match self.slot.status() {
            TemplateStatus::Asleep if self.becomes() && self.counts().live() > 0 => {
                TemplateStatus::Up
            }
            status => status,
        }
    }

    /// Whether a template is up.
    pub fn has_template(&self) -> bool {
        self.slot.up().is_some()
    }

    /// Counts of its instances.
    pub fn counts(&self) -> Counts {
        self.pool.lock().counts()
    }

    /// Whether it was taken out of service; new requests must ask its successor.
    pub fn is_retired(&self) -> bool {
        self.retired.load(Ordering::Acquire)
    }

    /// Takes it out of service: idle instances end now, busy ones with their request, the template with the last.
    pub fn retire(&self) {
        self.retired.store(true, Ordering::Release);
        let idle = self.pool.lock().retire();
        drop(idle);
        self.end_if_retired();
    }

    /// Decisions for its function so far.
    pub fn decisions(&self) -> DecisionCounts {
        self.decisions.counts()
    }

    /// Removes the instance from the pool when its process ends while idle.
    pub(super) fn watch(self: &Arc<Self>, instance: &Instance) {
        let vitals = instance.vitals.clone();
        let deployment: Weak<Self> = Arc::downgrade(self);
        tokio::spawn(async move {
            vitals.died().await;
            if let Some(deployment) = deployment.upgrade() {
                let dead = deployment
                    .pool
                    .lock()
                    .remove_idle(|idle| idle.vitals.id == vitals.id);
                drop(dead);
                deployment.start_due();
            }
        });
    }

    /// Offers instances to waiting requests, until one takes it or none waits.
    pub(super) fn hand(
        self: &Arc<Self>,
        mut given: Option<(Waiter, Box<Instance>)>,
        origin: Option<Origin>,
    ) {
        while let Some((waiter, instance)) = given {
            let Err(refused) = waiter.send(Ok(Handed { instance, origin })) else {
                return;
            };
            let Ok(Handed { instance, .. }) = refused else {
                return;
            };
            given = self.pool.lock().declined(instance, Instant::now());
        }
        self.end_if_retired();
    }

    /// Drops the template once a retired deployment has nothing left to do.
    pub(super) fn end_if_retired(&self) {
        if !self.is_retired() {
            return;
        }
        let mut pool = self.pool.lock();
        let idle = pool.retire();
        let quiet = pool.is_quiet();
        drop(pool);
        drop(idle);
        if quiet {
            self.slot.clear();
        }
    }
}
