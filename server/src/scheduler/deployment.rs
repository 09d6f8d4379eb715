//! A deployment: one function version in service, with its template and its instances.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::becoming::Ahead;
use super::boot::{TemplateSlot, TemplateStatus};
use super::boot_failure::BootFailure;
use super::decisions::Decisions;
use super::evictor::KeepValue;
use super::gate::StartGate;
use super::lease::{Handed, Origin};
use super::policy::controllers::Controllers;
use super::pool::{Counts, Limits, Pool};
use super::traffic::Traffic;
use crate::criu::Images;
use crate::host_error::HostErrors;
use crate::instance::{FunctionKey, Imported, Instance, Logs};
use crate::model::{DecisionCounts, FunctionSpec, LogEntry, LogLine, Note, Start, Threads};
use crate::network::{self, Broker, FunctionNetwork, VersionNetwork, WayOut};
use crate::package::Package;
use crate::runtimes::{Runtimes, UidRange};
use crate::sandbox::Host;
use crate::secrets::Secrets;

/// Requests that may wait for each instance a function may have: enough to ride out a burst, few enough that one who
/// waits is served within about this many run times.
const QUEUE_PER_INSTANCE: u32 = 10;
/// The shortest queue: a function of one instance still rides out a burst.
const QUEUE_MIN: u32 = 100;

/// What all deployments share.
pub struct Resources {
    /// Makes sandboxes.
    pub host: Host,
    /// Where log lines go.
    pub logs: Logs,
    /// The language runtimes of this node.
    pub runtimes: Runtimes,
    /// Host uids for sandboxes.
    pub uids: UidRange,
    /// Instances being started, over all functions.
    pub starts: StartGate,
    /// Templates being booted. Apart from the instances: a slow import must not hold up forks.
    pub boots: StartGate,
    /// Templates being restored. Apart from the boots: four imports of 20 s each must not hold up what takes 15 ms.
    pub restores: StartGate,
    /// Bytes that templates, idle instances and images may take.
    pub memory_budget: u64,
    /// For how long an instance looks for its next request before it sleeps.
    pub busy_poll: Duration,
    /// Images of templates.
    pub images: Images,
    /// What the host could not give.
    pub host_errors: HostErrors,
    /// Whether each template keeps a fork made ahead.
    pub prefork: bool,
    /// What decides on starts and queues.
    pub controllers: Controllers,
    /// Whether sandboxes are made ahead for restores.
    pub prewarm: bool,
    /// Processors of this host.
    pub cores: u32,
    /// Whether anybody calls.
    pub traffic: Traffic,
    /// What functions reach over the network.
    pub network: network::Node,
    /// What functions are given.
    pub secrets: Secrets,
}

/// Tells deployments apart at the gates.
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// What a waiting request waits for.
pub(super) type Waiter = oneshot::Sender<Result<Handed, Arc<BootFailure>>>;
/// Who waits and what for; see [`Pool`].
pub(super) type InstancePool = Pool<Box<Instance>, Waiter>;

/// One function version in service.
pub struct Deployment {
    /// The function's row id, once it is stored.
    pub function: FunctionKey,
    /// The function's name.
    pub name: Arc<str>,
    /// See [`Self::version`].
    pub(super) version: AtomicU32,
    /// Its settings. Of the network, [`Self::network`] tells.
    pub spec: FunctionSpec,
    /// What it may reach over the network.
    pub network: Arc<VersionNetwork>,
    /// Puts secrets into its requests.
    broker: Option<Arc<Broker>>,
    /// Its unpacked code, which is not removed while a sandbox may read it.
    pub package: Package,
    pub(super) resources: Arc<Resources>,
    pub(super) slot: TemplateSlot,
    /// What its import leaves running, once that was seen.
    pub(super) threads: Mutex<Option<Threads>>,
    pub(super) ahead: Ahead,
    pub(super) pool: Mutex<InstancePool>,
    pub(super) decisions: Arc<Decisions>,
    pub(super) keep_value: Mutex<KeepValue>,
    pub(super) id: u64,
    /// Held by who brings the template up.
    pub(super) booting: tokio::sync::Mutex<()>,
    import_lines: Mutex<Vec<LogLine>>,
    notes: Mutex<Vec<Note>>,
    retired: AtomicBool,
}

impl Deployment {
    /// A deployment without a template. It goes on with what was learned of its function's `former` version, and with what
    /// is known of the `threads` that its own import leaves running.
    pub fn new(
        function: FunctionKey,
        version: u32,
        spec: FunctionSpec,
        package: Package,
        resources: Arc<Resources>,
        former: Option<&Self>,
        threads: Option<Threads>,
    ) -> Arc<Self> {
        let limits = Limits {
            max: spec.max_concurrency,
            min: spec.min_instances.max(u32::from(spec.keep_warm)),
            queue: spec
                .max_concurrency
                .saturating_mul(QUEUE_PER_INSTANCE)
                .max(QUEUE_MIN),
            idle_timeout: Duration::from_secs(spec.idle_timeout_s.into()),
            controllers: resources.controllers,
        };
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
        })
    }

    /// The way out of a sandbox of it that is to be made; none if it has none.
    pub(super) fn way_out(&self) -> Option<WayOut> {
        let way_out = self.network.way_out()?;
        Some(way_out.with(self.broker.clone()))
    }

    /// Boots the template unless it is up, and starts the minimum of instances.
    ///
    /// # Errors
    /// [`BootFailure`] with the traceback when the code does not import.
    pub async fn warm_up(self: &Arc<Self>) -> Result<(), Arc<BootFailure>> {
        self.template().await?;
        self.start_due();
        Ok(())
    }

    /// After [`Self::warm_up`]: waits until the first request would find an instance forked ahead, or for a moment at most.
    pub async fn forked_ahead(&self) {
        if let Some(template) = self.slot.up() {
            template.first_preforked().await;
        }
    }

    /// Stores what the import printed, once the function has a row.
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

    /// What its last import found that its author should know. Where each instance has an import of its own, that shares
    /// nothing.
    pub fn notes(&self) -> Vec<Note> {
        if self.spec.start == Start::Boot {
            return Vec::new();
        }
        self.notes.lock().clone()
    }

    /// Whether some of it has to be up whether or not it is called.
    pub fn has_minimum(&self) -> bool {
        self.spec.keep_warm || self.spec.min_instances > 0
    }

    /// Calls so far.
    pub fn calls(&self) -> u64 {
        self.pool.lock().calls()
    }

    /// How its template stands. Where instances are templates themselves, one that lives is as good.
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

    /// How its instances stand.
    pub fn counts(&self) -> Counts {
        self.pool.lock().counts()
    }

    /// Whether it was taken out of service; a new request should look for its successor.
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

    /// What was decided for its function so far.
    pub fn decisions(&self) -> DecisionCounts {
        self.decisions.counts()
    }

    /// Takes the instance out of the pool when its process ends while it is idle.
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

    /// Gives instances to those who wait, until one takes it or nobody waits.
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

    /// Lets go of the template once a retired deployment has nothing left to do.
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
