//! Creating, changing and deleting chains. Every change starts the members of its version first: if that fails, the change is
//! rejected with the reason, and what was in service goes on.
//!
//! A change runs on its own task, so that a client that disconnects cannot leave it half done.

use std::future::Future;
use std::sync::Arc;

use jiff::Timestamp;

use super::service::Started;
use super::{Catalog, CatalogError, Chain};
use crate::model::chain::{Patch, Spec, View};
use crate::model::{Meant, PortOwner};
use crate::store::{StoreError, StoredChain, StoredChainVersion};

impl Catalog {
    /// Creates a chain.
    ///
    /// # Errors
    /// [`CatalogError`]; nothing was changed.
    pub async fn create(&self, spec: Spec) -> Result<View, CatalogError> {
        self.change(|catalog| async move { catalog.create_now(spec).await })
            .await
    }

    /// Replaces all settings of a chain by a new version, or creates the chain; true if it is new. The same settings change
    /// nothing.
    ///
    /// # Errors
    /// [`CatalogError`]; nothing was changed.
    pub async fn replace(&self, spec: Spec, meant: Meant) -> Result<(bool, View), CatalogError> {
        self.change(|catalog| async move {
            match catalog.chain(&spec.name) {
                Ok(chain) => {
                    let view = catalog.update_now(&chain, |_| spec, meant).await?;
                    Ok((false, view))
                }
                Err(_) if meant == Meant::Any => Ok((true, catalog.create_now(spec).await?)),
                Err(gone) => Err(gone),
            }
        })
        .await
    }

    /// Creates a new version with other settings and activates it. A patch without differences changes nothing.
    ///
    /// # Errors
    /// [`CatalogError`]; nothing was changed.
    pub async fn update(
        &self,
        name: &str,
        patch: Patch,
        meant: Meant,
    ) -> Result<View, CatalogError> {
        let chain = self.chain(name)?;
        self.change(|catalog| async move {
            let changed = |spec: &Spec| patch.apply(spec);
            catalog.update_now(&chain, changed, meant).await
        })
        .await
    }

    /// Activates an existing version.
    ///
    /// # Errors
    /// [`CatalogError`]; nothing was changed.
    pub async fn activate(
        &self,
        name: &str,
        version: u32,
        meant: Meant,
    ) -> Result<View, CatalogError> {
        let chain = self.chain(name)?;
        self.change(|catalog| async move { catalog.activate_now(&chain, version, meant).await })
            .await
    }

    /// Removes a chain, its versions and its history; requests under way finish.
    ///
    /// # Errors
    /// [`CatalogError::NotFound`], [`CatalogError::Changed`], [`CatalogError::Internal`].
    pub async fn delete(&self, name: &str, meant: Meant) -> Result<(), CatalogError> {
        let chain = self.chain(name)?;
        self.change(|catalog| async move { catalog.delete_now(&chain, meant).await })
            .await
    }

    async fn change<T, F>(&self, run: impl FnOnce(Self) -> F) -> Result<T, CatalogError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, CatalogError>> + Send + 'static,
    {
        if self.inner.engine.is_draining() {
            return Err(CatalogError::ShuttingDown);
        }
        let changed = tokio::spawn(run(self.clone())).await;
        changed.map_err(|error| CatalogError::Internal(error.to_string()))?
    }

    async fn create_now(self, spec: Spec) -> Result<View, CatalogError> {
        let _members = self.inner.members.read().await;
        let _claim = Claim::take(&self, &spec.name)?;
        self.check(&spec)?;
        let ports = self.claim_ports(&spec).await?;
        self.functions_of(&spec).await?;
        // Stored first, because the data path knows a chain by its row's id.
        let stored = self.inner.store.create_chain(&spec).await?;
        let Started { live, state } = match self.start_version(stored.id, &stored.active).await {
            Ok(started) => started,
            Err(error) => {
                self.inner.store.delete_chain(stored.id).await?;
                return Err(error);
            }
        };
        let chain = Chain::new(stored, state);
        let name = spec.name.as_str().into();
        self.inner.live.activate(live);
        self.inner.chains.write().insert(name, chain.clone());
        ports.take_over();
        tracing::info!(chain = spec.name, "created");
        Ok(self.view(&chain))
    }

    async fn update_now(
        self,
        chain: &Arc<Chain>,
        changed: impl FnOnce(&Spec) -> Spec,
        meant: Meant,
    ) -> Result<View, CatalogError> {
        let _members = self.inner.members.read().await;
        // Locked until the change is stored, so that what was checked stays true.
        let _change = chain.change.lock().await;
        let stored = self.still_there(chain)?;
        meant.check(chain.revision())?;
        let spec = changed(&stored.active.spec);
        spec.check()?;
        if spec == stored.active.spec {
            return Ok(self.view(chain));
        }
        self.check(&spec)?;
        let store = &self.inner.store;
        let version = StoredChainVersion {
            version: store.next_chain_version(stored.id).await?,
            spec,
            created_at: Timestamp::now(),
        };
        let adding = store.add_chain_version(stored.id, &version.spec);
        self.take_over(chain, &version, adding).await
    }

    async fn activate_now(
        self,
        chain: &Arc<Chain>,
        version: u32,
        meant: Meant,
    ) -> Result<View, CatalogError> {
        let _members = self.inner.members.read().await;
        let _change = chain.change.lock().await;
        let stored = self.still_there(chain)?;
        meant.check(chain.revision())?;
        if stored.active.version == version {
            return Ok(self.view(chain));
        }
        let versions = self.inner.store.chain_versions(stored.id).await?;
        let found = versions.into_iter().find(|known| known.version == version);
        let Some(found) = found else {
            let name = &stored.active.spec.name;
            let missing = format!("version {version} of chain {name:?}");
            return Err(CatalogError::NotFound(missing));
        };
        let activating = self.inner.store.activate_chain(stored.id, version);
        self.take_over(chain, &found, activating).await
    }

    async fn delete_now(self, chain: &Arc<Chain>, meant: Meant) -> Result<(), CatalogError> {
        let _change = chain.change.lock().await;
        let stored = self.still_there(chain)?;
        meant.check(chain.revision())?;
        self.inner.store.delete_chain(stored.id).await?;
        let name = &stored.active.spec.name;
        self.inner.chains.write().remove(name.as_str());
        self.inner
            .engine
            .release_ports(&PortOwner::chain(name.as_str()));
        self.inner.live.retire(name).await;
        self.inner.history.forget(-stored.id);
        tracing::info!(chain = name, "deleted");
        Ok(())
    }

    /// Starts a version's members, stores that it is active, and puts it in service with its ports. If it does not start or
    /// is not stored, the former one goes on, undisturbed.
    async fn take_over(
        &self,
        chain: &Arc<Chain>,
        version: &StoredChainVersion,
        store: impl Future<Output = Result<StoredChain, StoreError>>,
    ) -> Result<View, CatalogError> {
        let ports = self.claim_ports(&version.spec).await?;
        let Started { live, state } = match self.with_the_same_members(chain, version).await {
            Some(started) => started,
            None => self.start_version(chain.stored().id, version).await?,
        };
        let stored = store.await?;
        let (name, version) = (&stored.active.spec.name, stored.active.version);
        tracing::info!(chain = name, version, "activated");
        // Nothing waits between these: what comes to a port finds the version that has it.
        self.inner.live.activate(live);
        chain.stored.store(Arc::new(stored));
        chain.state.send_replace(state);
        ports.take_over();
        Ok(self.view(chain))
    }

    /// What is stored of a chain, unless it was deleted while its lock was awaited.
    pub(super) fn still_there(&self, chain: &Arc<Chain>) -> Result<Arc<StoredChain>, CatalogError> {
        let stored = chain.stored();
        let name = &stored.active.spec.name;
        match self.chain(name) {
            Ok(found) if Arc::ptr_eq(&found, chain) => Ok(stored),
            _ => Err(CatalogError::NotFound(format!("chain {name:?}"))),
        }
    }
}

/// The name of a chain that is being created; free again when it is dropped.
struct Claim<'a> {
    catalog: &'a Catalog,
    name: String,
}

impl<'a> Claim<'a> {
    fn take(catalog: &'a Catalog, name: &str) -> Result<Self, CatalogError> {
        let is_new = catalog.inner.creating.lock().insert(name.to_owned());
        if !is_new || catalog.inner.chains.read().contains_key(name) {
            if is_new {
                catalog.inner.creating.lock().remove(name);
            }
            return Err(CatalogError::AlreadyExists(name.to_owned()));
        }
        Ok(Self {
            catalog,
            name: name.to_owned(),
        })
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.catalog.inner.creating.lock().remove(&self.name);
    }
}
