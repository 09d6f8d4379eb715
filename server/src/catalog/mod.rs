//! The catalog: chains as objects, created, changed and deleted.
//!
//! The HTTP layer uses this façade for everything about chains, and for deleting functions, because a function that a chain
//! has as a member stays. In the order of a chain's life: [`start`](Catalog::start) reads what is stored, [`change`]
//! creates and changes, `members` looks at the functions, `service` puts versions in service, `ports` opens their ports,
//! `invoke` passes requests on.

mod change;
mod error;
mod figures;
mod invoke;
mod latency;
mod members;
mod ports;
mod rates;
mod recording;
mod service;
mod state;

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::RwLock;
use tokio::sync::watch;

pub use error::CatalogError;
pub use invoke::{ChainReceipt, ChainRequest, Target};
pub use ports::ChainIngressView;

use crate::chains::Chains;
use crate::engine::Engine;
use crate::history::History;
use crate::model::Revision;
use crate::model::chain::{VersionView, View};
use crate::store::{Store, StoreError, StoredChain};
use state::State;

/// All chains. Cheap to clone.
#[derive(Clone)]
pub struct Catalog {
    inner: Arc<Inner>,
}

struct Inner {
    store: Store,
    engine: Engine,
    history: History,
    /// Those in service.
    live: Chains,
    chains: RwLock<HashMap<Arc<str>, Arc<Chain>>>,
    /// Names that are being created right now.
    creating: parking_lot::Mutex<std::collections::HashSet<String>>,
    /// Held for reading by what gives a chain members, for writing by what deletes a function.
    members: tokio::sync::RwLock<()>,
}

/// A chain: what is stored of it, and whether it is in service.
struct Chain {
    stored: ArcSwap<StoredChain>,
    state: watch::Sender<Arc<State>>,
    /// Changes of one chain happen one after the other.
    change: tokio::sync::Mutex<()>,
}

impl Chain {
    fn new(stored: StoredChain, state: Arc<State>) -> Arc<Self> {
        Arc::new(Self {
            stored: ArcSwap::from_pointee(stored),
            state: watch::Sender::new(state),
            change: tokio::sync::Mutex::new(()),
        })
    }

    fn stored(&self) -> Arc<StoredChain> {
        self.stored.load_full()
    }

    fn state(&self) -> Arc<State> {
        self.state.borrow().clone()
    }

    /// What was asked for of it.
    fn revision(&self) -> Revision {
        let stored = self.stored();
        Revision::of_chain(stored.id, stored.active.version)
    }
}

impl Catalog {
    /// Reads the stored chains and starts them in the background: requests wait for that.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn start(store: Store, engine: Engine, history: History) -> Result<Self, StoreError> {
        let stored = store.chains().await?;
        let named = |stored: StoredChain| {
            let name = Arc::<str>::from(stored.active.spec.name.as_str());
            (name, Chain::new(stored, Arc::new(State::Starting)))
        };
        let live = Chains::new(engine.clone());
        let catalog = Self {
            inner: Arc::new(Inner {
                live,
                store,
                engine,
                history,
                chains: RwLock::new(stored.into_iter().map(named).collect()),
                creating: parking_lot::Mutex::default(),
                members: tokio::sync::RwLock::default(),
            }),
        };
        catalog.restore_ports().await;
        catalog.bring_up();
        Ok(catalog)
    }

    /// One chain.
    ///
    /// # Errors
    /// [`CatalogError::NotFound`].
    pub fn get(&self, name: &str) -> Result<View, CatalogError> {
        Ok(self.view(&*self.chain(name)?))
    }

    /// All chains by name.
    #[must_use]
    pub fn list(&self) -> Vec<View> {
        self.all().iter().map(|chain| self.view(chain)).collect()
    }

    /// A chain's versions, newest first.
    ///
    /// # Errors
    /// [`CatalogError::NotFound`], [`CatalogError::Internal`].
    pub async fn versions(&self, name: &str) -> Result<Vec<VersionView>, CatalogError> {
        let stored = self.chain(name)?.stored();
        let versions = self.inner.store.chain_versions(stored.id).await?;
        let view = |version: crate::store::StoredChainVersion| VersionView {
            version: version.version,
            active: version.version == stored.active.version,
            settings: version.spec.into(),
            created_at: version.created_at,
        };
        Ok(versions.into_iter().map(view).collect())
    }

    fn chain(&self, name: &str) -> Result<Arc<Chain>, CatalogError> {
        let found = self.inner.chains.read().get(name).cloned();
        found.ok_or_else(|| {
            let shown: String = name.chars().take(64).collect();
            CatalogError::NotFound(format!("chain {shown:?}"))
        })
    }

    /// All, by name.
    fn all(&self) -> Vec<Arc<Chain>> {
        let mut all: Vec<_> = self.inner.chains.read().clone().into_iter().collect();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all.into_iter().map(|(_, chain)| chain).collect()
    }
}
