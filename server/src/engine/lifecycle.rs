//! The engine's lifecycle: start, reconcile with the store, periodic maintenance, drain.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use super::bytecode::Compiler;
use super::registry::{Function, Registry};
use super::{Engine, EngineError, Inner};
use crate::criu::Images;
use crate::history::History;
use crate::instance::FunctionKey;
use crate::model::PortOwner;
use crate::package::Packages;
use crate::scheduler::evictor::{self, Evictor};
use crate::scheduler::{Deployment, Resources, TICK, TURNS};
use crate::store::Store;

/// How often a drain looks whether it is done.
const DRAIN_INTERVAL: Duration = Duration::from_millis(20);

/// After this long without a call, functions are woken in the background.
const QUIET: Duration = Duration::from_secs(1);
/// How often it is looked for one.
const LOOK: Duration = Duration::from_millis(100);
/// How long housekeeping waits for requests that are under way: a tenth of a turn.
const PASSING: Duration = Duration::from_millis(5);
/// Part of the memory budget that is left to what is called, in percent.
const ROOM_PERCENT: u64 = 25;
/// Nice value of background threads.
const LEAST_PRIORITY: i32 = 19;

impl Engine {
    /// Puts what is stored back in service. Functions answer at once: one whose template is not up yet waits for it.
    ///
    /// # Errors
    /// [`EngineError::Internal`] when the store or the code directory cannot be read.
    pub async fn start(
        data_dir: &Path,
        store: Store,
        history: History,
        resources: Resources,
    ) -> Result<Self, EngineError> {
        let code_dir = data_dir.join("code");
        std::fs::create_dir_all(&code_dir)?;
        let resources = Arc::new(resources);
        let compiler = Compiler::new(resources.clone());
        let packages = Packages::new(code_dir, store.clone());
        packages.collect_garbage(&store.code_in_use().await?.into_iter().collect())?;
        let engine = Self {
            inner: Arc::new(Inner {
                store,
                history,
                resources,
                registry: Registry::default(),
                creating: parking_lot::Mutex::default(),
                apart: super::apart::Apart::default(),
                packages,
                compiler,
                pressure: super::pressure::Pressure::open(),
                threads: super::priority::Threads::default(),
                bodies: super::invoke::Bodies::default(),
                refused_stamps: AtomicU64::new(0),
                draining: AtomicBool::new(false),
                changes: tokio::sync::watch::Sender::new(0),
                cut_off: AtomicBool::new(false),
                memory_status: parking_lot::Mutex::default(),
            }),
        };
        let mut functions = Vec::new();
        for stored in engine.inner.store.functions().await? {
            let key = FunctionKey::new(stored.id);
            let active = &stored.active;
            let package = engine.inner.packages.hold(&active.code_sha256);
            let known = engine.inner.store.threads(stored.id).await?;
            let threads = known.get(&active.version).cloned();
            let deployment = engine.deployment(
                key.clone(),
                active.version,
                &active.spec,
                package,
                None,
                threads,
            );
            let name = deployment.name.clone();
            let function = Function::new(key, stored, deployment);
            engine.inner.registry.insert(name.clone(), function.clone());
            let spec = &function.stored().active.spec;
            let owner = PortOwner::Function(name);
            engine
                .restore_ports(&owner, &spec.triggers, spec.port_limits)
                .await;
            functions.push(function);
        }
        engine.keep_wanted_images().await?;
        tokio::spawn(engine.clone().bring_up(functions));
        tokio::spawn(engine.clone().keep_house());
        tokio::spawn(engine.clone().remove_expired());
        tokio::spawn(engine.clone().keep_priority());
        Ok(engine)
    }

    /// Removes images of deleted functions and versions, and checks the others in the background.
    async fn keep_wanted_images(&self) -> Result<(), EngineError> {
        let mut wanted = std::collections::HashSet::new();
        for function in self.inner.registry.all() {
            for version in self.inner.store.versions(function.id()).await? {
                wanted.insert((version.spec.name, version.version));
            }
        }
        let images = self.inner.resources.images.clone();
        images.retain(|image| {
            let (function, version) = Images::owner(image);
            wanted.contains(&(function.to_owned(), version))
        });
        // For a few hundred images this takes a second and reads gigabytes, and nothing waits for it.
        let check = std::thread::Builder::new().name("image-check".to_owned());
        check.spawn(move || {
            let this_thread = Some(rustix::thread::gettid());
            if let Err(error) = rustix::process::setpriority_process(this_thread, LEAST_PRIORITY) {
                tracing::debug!(%error, "cannot lower the priority of image checks");
            }
            images.check_all();
        })?;
        Ok(())
    }

    /// Wakes the functions that were in service before this start. Those that must be up start immediately, as many at
    /// a time as there are cores. The others start one by one while the server is idle and memory allows; a call wakes
    /// a sleeping one itself. Those without an image go first, since their first call would wait longest.
    async fn bring_up(self, functions: Vec<Arc<Function>>) {
        let (at_once, mut others): (Vec<_>, Vec<_>) = functions
            .into_iter()
            .partition(|function| function.active().has_minimum());
        let permits = Arc::new(tokio::sync::Semaphore::new(
            self.inner.resources.cores as usize,
        ));
        let mut starts = tokio::task::JoinSet::new();
        for function in at_once {
            let permits = permits.clone();
            let engine = self.clone();
            starts.spawn(async move {
                let _permit = permits.acquire_owned().await;
                bring_one_up(&engine, &function).await;
            });
        }
        starts.join_all().await;
        others.sort_by_key(|function| function.active().image_bytes().is_some());
        for function in others {
            if !self.lull().await {
                return;
            }
            bring_one_up(&self, &function).await;
        }
        tracing::info!("all functions are up");
    }

    /// Waits until the server is idle. False when the server stops or has no memory for more.
    async fn lull(&self) -> bool {
        let traffic = &self.inner.resources.traffic;
        loop {
            let memory_status = self.memory_status();
            let room = memory_status.budget / 100 * ROOM_PERCENT;
            if self.is_draining() || memory_status.used.saturating_add(room) >= memory_status.budget
            {
                return false;
            }
            if traffic.quiet_for() >= QUIET {
                return true;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn keep_house(self) {
        let mut evictor = Evictor::new(self.inner.resources.memory_budget);
        let mut ticks = tokio::time::interval(TICK / TURNS);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while !self.is_draining() {
            let deployments = self.in_service();
            let resources = &self.inner.resources;
            self.let_requests_pass().await;
            let memory_status = evictor.round(resources, &deployments, Instant::now()).await;
            *self.inner.memory_status.lock() = memory_status;
            // What is replaced or deleted meanwhile is not kept.
            let mut turns = vec![Vec::new(); TURNS as usize];
            for deployment in deployments {
                turns[deployment.turn() as usize].push(Arc::downgrade(&deployment));
            }
            for turn in turns {
                ticks.tick().await;
                if self.is_draining() {
                    return;
                }
                self.let_requests_pass().await;
                let turn: Vec<_> = turn.iter().filter_map(Weak::upgrade).collect();
                let now = Instant::now();
                for deployment in &turn {
                    deployment.tick(now);
                }
                evictor::measure_again(&turn, now).await;
            }
        }
    }

    /// Waits for a moment if requests are under way: most are over by then, and what comes next would run beside them.
    async fn let_requests_pass(&self) {
        if self.inner.resources.traffic.running() > 0 {
            tokio::time::sleep(PASSING).await;
        }
    }

    /// What the house is kept for: the active version of every function, and those apart.
    fn in_service(&self) -> Vec<Arc<Deployment>> {
        let functions = self.inner.registry.all();
        let mut all: Vec<_> = functions.iter().map(|function| function.active()).collect();
        all.extend(self.inner.apart.keep(Instant::now()));
        all
    }

    /// Whether it is stopping. Until then every function answers: one that is not up is brought up by its call.
    pub fn is_draining(&self) -> bool {
        self.inner.draining.load(Ordering::Acquire)
    }

    /// Refuses new requests and changes from now on.
    pub fn begin_drain(&self) {
        self.inner.draining.store(true, Ordering::Release);
        self.inner.threads.begin_drain();
    }

    /// Waits for the running invocations until `deadline`, then ends every sandbox. Returns how many were cut off.
    pub async fn finish_drain(&self, deadline: Instant) -> u64 {
        let left = self.quiet(deadline).await;
        // From here on an instance that ends has not crashed.
        self.inner.cut_off.store(true, Ordering::Release);
        for function in self.inner.registry.all() {
            function.active().retire();
        }
        self.inner.apart.retire(None);
        self.inner.resources.host.shutdown().await;
        left
    }

    /// Waits until nothing runs, or until `deadline`. Returns how much still does.
    async fn quiet(&self, deadline: Instant) -> u64 {
        loop {
            let running = self.inner.resources.traffic.running();
            if running == 0 || Instant::now() >= deadline {
                return running;
            }
            tokio::time::sleep(DRAIN_INTERVAL).await;
        }
    }

    /// Writes the history, that of what was cut off included, for which it waits until `deadline`.
    pub async fn shut_down(&self, deadline: Instant) {
        self.quiet(deadline).await;
        self.inner.history.flush().await;
    }
}

/// A function that fails here is shown as failed with its reason, and is tried again on demand.
async fn bring_one_up(engine: &Engine, function: &Function) {
    let deployment = function.active();
    if !deployment.is_retired() && deployment.warm_up().await.is_ok() {
        deployment.store_import_lines().await;
        engine.note_threads(&deployment).await;
    }
}
