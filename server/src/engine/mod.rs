//! The engine: deploys, changes and invokes functions.
//!
//! The HTTP layer uses only this façade, which uses the store, the scheduler and the history. In the order of a
//! function's life: [`start`](Engine::start) reconciles, [`deploy`] creates and changes, [`invoke`] runs.

mod apart;
mod bytecode;
mod deploy;
mod files;
mod held;
mod invoke;
mod lifecycle;
mod logs;
mod network;
mod ports;
mod pressure;
mod priority;
mod registry;
mod scheduled;
mod secrets;
mod summary;
mod types;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::sync::watch;

pub use crate::scheduler::MemoryStatus;
pub use apart::VersionApart;
pub use files::{VersionChange, VersionCode};
pub use held::HeldVersion;
pub use invoke::{Admitted, Invocation, Receipt};
pub use logs::log_sink;
pub use network::{NetworkTraffic, NetworkView};
pub use ports::{BrokerView, IngressView, PortView, PortsView};
pub use scheduled::Scheduled;
pub use summary::Summary;
pub use types::{EngineError, InvokeError, InvokeReply};

use crate::history::History;
use crate::ingress::Ingress;
use crate::model::{
    Cors, FunctionView, Port, PortOwner, PortTrigger, StartChoice, Threads, VersionView,
};
use crate::package::Packages;
use crate::sandbox::{Capability, PrewarmedBoard};
use crate::scheduler::Resources;
use crate::store::{Store, StoredVersion};
use bytecode::Compiler;
use registry::Registry;

/// The platform. Cheap to clone.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

struct Inner {
    store: Store,
    history: History,
    resources: Arc<Resources>,
    registry: Registry,
    /// Names that are being created right now.
    creating: Mutex<std::collections::HashSet<String>>,
    /// Versions that answer apart from their function's own requests.
    apart: apart::Apart,
    packages: Packages,
    compiler: Compiler,
    /// Whether other work waits for a processor.
    pressure: pressure::Pressure,
    /// Those that serve invocations.
    threads: priority::Threads,
    /// What is read of requests' bodies ahead of their instances.
    bodies: invoke::Bodies,
    /// Answers whose worker's stamps contradicted this side's clock.
    refused_stamps: AtomicU64,
    draining: AtomicBool,
    /// Counts changes of functions.
    changes: watch::Sender<u64>,
    /// The drain's time is up: what still ran was ended.
    cut_off: AtomicBool,
    /// Memory in use, from the evictor's last pass.
    memory_status: Mutex<MemoryStatus>,
}

impl Engine {
    /// One function.
    ///
    /// # Errors
    /// [`EngineError::NotFound`].
    pub fn get(&self, name: &str) -> Result<FunctionView, EngineError> {
        Ok(self.function(name)?.view())
    }

    /// All functions by name.
    pub fn list(&self) -> Vec<FunctionView> {
        let functions = self.inner.registry.all();
        functions.iter().map(|function| function.view()).collect()
    }

    /// A function's versions, newest first.
    ///
    /// # Errors
    /// [`EngineError::NotFound`], [`EngineError::Internal`].
    pub async fn versions(&self, name: &str) -> Result<Vec<VersionView>, EngineError> {
        let function = self.function(name)?;
        let active = function.stored().active.version;
        let versions = self.inner.store.versions(function.id()).await?;
        let threads = self.inner.store.threads(function.id()).await?;
        let mut gates = self.inner.store.version_gates(function.id()).await?;
        Ok(versions
            .iter()
            .map(|version| {
                let choice = self.start_choice(&function, version, &threads);
                VersionView {
                    gate: gates.remove(&version.version),
                    ..registry::version_view(version, active, choice)
                }
            })
            .collect())
    }

    /// Row id of a function, for the history. Cheap.
    pub fn id_of(&self, name: &str) -> Option<i64> {
        self.inner.registry.get(name).map(|function| function.id())
    }

    /// Notified after every change of functions or secrets.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.inner.changes.subscribe()
    }

    /// How often another deployment of a function took over since the server started; `None` when there is no such
    /// function. Cheap.
    pub fn deployment_of(&self, name: &str) -> Option<u64> {
        let function = self.inner.registry.get(name)?;
        Some(function.switches())
    }

    /// Whether `/fn/{name}` needs no token; `None` when there is no such function. Cheap.
    pub fn is_public(&self, name: &str) -> Option<bool> {
        self.inner
            .registry
            .get(name)
            .map(|function| function.active().spec.public)
    }

    /// Who has a port, and what it is to do. Cheap.
    pub fn port_owner(&self, port: Port) -> Option<(PortOwner, PortTrigger)> {
        self.inner.resources.ports.owner(port)
    }

    /// What is counted of a port's messages.
    pub fn port_counters(&self, port: Port) -> Option<Arc<crate::ports::MessageCounters>> {
        self.inner.resources.ports.counters(port)
    }

    /// What the kernel does for ports.
    pub fn ingress(&self) -> &Ingress {
        self.inner.resources.ports.ingress()
    }

    /// Which pages of other origins may call a function; `None` also when there is no such function. Cheap.
    pub fn cors(&self, name: &str) -> Option<Arc<Cors>> {
        let function = self.inner.registry.get(name)?;
        function.active().spec.cors.clone()
    }

    /// What templates, instances and images take of the memory budget.
    pub fn memory_status(&self) -> MemoryStatus {
        let memory_status = *self.inner.memory_status.lock();
        MemoryStatus {
            // Before the first round, nothing is known of what is used.
            budget: self.inner.resources.memory_budget,
            ..memory_status
        }
    }

    /// Answers whose stages are by the server's clock alone, because the worker's stamps contradicted it.
    pub fn refused_stamps(&self) -> u64 {
        self.inner
            .refused_stamps
            .load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Pre-warmed sandboxes for restores.
    pub fn prewarmed(&self) -> &PrewarmedBoard {
        self.inner.resources.host.prewarmed()
    }

    /// Errors of the host since the server started, and the last while its burst lasts.
    pub fn host_errors(&self) -> (u64, Option<String>) {
        self.inner.resources.host_errors.seen()
    }

    /// Capabilities of this node for `GET /api/v1/node`: name → `{"available": bool, "reason": "…"|null, "version": …?}`.
    pub fn capabilities(&self) -> Map<String, Value> {
        let mut all = Map::new();
        for capability in self.inner.resources.host.capabilities() {
            all.insert(capability.name.clone(), describe(&capability));
        }
        for (name, reason) in self.inner.resources.ports.ingress().capabilities() {
            all.insert(
                name.to_owned(),
                json!({ "available": reason.is_none(), "reason": reason, "version": null }),
            );
        }
        all.insert("runtimes".into(), self.inner.resources.runtimes.describe());
        all
    }

    /// How instances of a version start. `threads` are those of the function's versions.
    fn start_choice(
        &self,
        function: &registry::Function,
        version: &StoredVersion,
        threads: &HashMap<u32, Threads>,
    ) -> StartChoice {
        let deployment = function.active();
        // Of the one that answers it is known whether there is an image.
        if version.version == deployment.version() {
            return deployment.start_choice();
        }
        let threads = threads.get(&version.version);
        self.inner.resources.start_choice(&version.spec, threads)
    }

    fn function(&self, name: &str) -> Result<Arc<registry::Function>, EngineError> {
        self.inner
            .registry
            .get(name)
            .ok_or_else(|| EngineError::NotFound(format!("function \"{name}\"")))
    }
}

fn describe(capability: &Capability) -> Value {
    json!({
        "available": capability.available,
        "reason": capability.reason,
        "version": capability.version,
    })
}
