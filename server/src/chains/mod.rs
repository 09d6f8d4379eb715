//! Live chains: the versions in service, with their members' instances, their pools and the gateway's end.
//!
//! In the order of a request: [`path`] admits it, puts its payload into a block and sends the descriptor to an instance of the
//! route's first member; the members pass it on among themselves, and the last one sends it back. [`members`] starts the
//! instances, tells them of each other and replaces those that end. [`cpu`] limits what they take, and [`cores`] says
//! which cores are theirs alone, where that is asked for.
//! [`live`] holds all together for one version.
//!
//! A version is replaced as a whole: its successor's members start beside it, new requests go to them at once, and the
//! former one ends with the last request that it has taken. `server/docs/chains.md` tells what is trusted in all this.

mod cores;
mod cpu;
mod live;
mod members;
mod path;
mod types;

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::RwLock;

use self::cores::Reservations;
pub use self::live::Live;
pub use self::types::{
    ActivateError, CpuTime, EdgeStatus, Hop, InstanceStatus, InvokeError, MemberStatus, Outcome,
    PoolStatus, RefusalStatus, Request, Status, Work,
};
use crate::engine::Engine;
use crate::model::chain::Version;

/// All live chains, by name. Cheap to clone.
#[derive(Clone)]
pub struct Chains {
    engine: Engine,
    live: Arc<RwLock<HashMap<String, Arc<Live>>>>,
    cores: Reservations,
}

impl Chains {
    /// None at first.
    #[must_use]
    pub fn new(engine: Engine) -> Self {
        Self {
            engine,
            live: Arc::default(),
            cores: Reservations::default(),
        }
    }

    /// Starts a version's members, beside those in service. If it is dropped instead of put in service, they end.
    ///
    /// # Errors
    /// [`ActivateError`]; nothing is left behind.
    pub async fn start(&self, version: Version) -> Result<Arc<Live>, ActivateError> {
        let cores = self.cores.reserve(&version.spec, &self.engine.host())?;
        Live::start(&self.engine, Arc::new(version), cores).await
    }

    /// Puts a version in service: from then on it gets its chain's new requests. The version before it ends with its last
    /// request.
    pub fn activate(&self, live: Arc<Live>) {
        let name = live.version().spec.name.clone();
        // Dropped outside the lock: its last owner ends its instances.
        let former = self.live.write().insert(name, live);
        drop(former);
    }

    /// What is in service of a chain. Whoever has it can send requests to it, also when another version has taken over.
    #[must_use]
    pub fn of(&self, name: &str) -> Option<Arc<Live>> {
        self.live.read().get(name).cloned()
    }

    /// Takes a chain out of service: it ends with its last request.
    pub async fn retire(&self, name: &str) {
        let former = self.live.write().remove(name);
        drop(former);
    }

    /// A live chain's figures; none if it is not live.
    #[must_use]
    pub fn status(&self, name: &str) -> Option<Status> {
        self.of(name).map(|live| live.status())
    }

    /// Ends all chains, at the end of the server's drain.
    pub async fn shut_down(&self) {
        let all = std::mem::take(&mut *self.live.write());
        drop(all);
    }
}
