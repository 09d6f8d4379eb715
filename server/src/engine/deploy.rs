//! Creating and changing functions. Every change boots its template first: if that fails, the change is rejected with
//! the reason before anything is stored or serves a request.
//!
//! A change runs on its own task, so that a client that disconnects cannot leave it half done.

mod add;
mod copy;
mod create;
mod delete;
mod rules;
mod version;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use self::rules::{merged, share_sandboxes, still_edits};
use self::version::refusal;
use super::registry::Function;
use super::{Engine, EngineError};
use crate::model::{Code, FunctionPatch, FunctionSpec, FunctionView, Meant};
use crate::package::Entry;
use crate::scheduler::Deployment;
use crate::store::{StoredFunction, StoredVersion};

impl Engine {
    /// Deploys a new function. Returns once its template is up.
    ///
    /// # Errors
    /// [`EngineError`]; a rejected deploy leaves nothing behind.
    pub async fn create(
        &self,
        spec: FunctionSpec,
        code: Code,
    ) -> Result<FunctionView, EngineError> {
        self.change(|engine| async move { engine.create_now(spec, code).await })
            .await
    }

    /// Creates a new version with other settings or code (either may be absent) and activates it. A patch without code
    /// or differences changes nothing.
    ///
    /// # Errors
    /// [`EngineError::Changed`] when the function is not in a state that the change is meant for, other
    /// [`EngineError`]s; the active version stays as it was.
    pub async fn update(
        &self,
        name: &str,
        patch: FunctionPatch,
        code: Option<Code>,
        meant: Meant,
    ) -> Result<FunctionView, EngineError> {
        let name = name.to_owned();
        self.change(|engine| async move { engine.update_now(&name, patch, code, meant).await })
            .await
    }

    /// Activates an existing version.
    ///
    /// # Errors
    /// As [`Self::update`].
    pub async fn activate(
        &self,
        name: &str,
        version: u32,
        meant: Meant,
    ) -> Result<FunctionView, EngineError> {
        let name = name.to_owned();
        self.change(|engine| async move { engine.activate_now(&name, version, meant).await })
            .await
    }

    /// Removes a function, its versions and its history; running requests finish.
    ///
    /// # Errors
    /// [`EngineError::NotFound`], [`EngineError::Changed`], [`EngineError::Internal`].
    pub async fn delete(&self, name: &str, meant: Meant) -> Result<(), EngineError> {
        let name = name.to_owned();
        self.change(|engine| async move { engine.delete_now(&name, meant).await })
            .await
    }

    pub(super) async fn change<T, F>(&self, run: impl FnOnce(Self) -> F) -> Result<T, EngineError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, EngineError>> + Send + 'static,
    {
        if self.inner.draining.load(Ordering::Acquire) {
            return Err(EngineError::ShuttingDown);
        }
        let traffic = &self.inner.resources.traffic;
        traffic.note();
        let task = tokio::spawn(run(self.clone()));
        let changed = task.await;
        traffic.note();
        self.inner.changes.send_modify(|count| *count += 1);
        changed.map_err(|error| EngineError::Internal(error.to_string()))?
    }

    async fn update_now(
        self,
        name: &str,
        patch: FunctionPatch,
        code: Option<Code>,
        meant: Meant,
    ) -> Result<FunctionView, EngineError> {
        let function = self.function(name)?;
        // Locked until the change is stored, so that what was checked stays true.
        let _change = function.change.lock().await;
        self.may_change(name, &function)?;
        meant.check(function.revision())?;
        let active = function.stored().active.clone();
        let spec = merged(&active.spec, patch);
        self.check(&spec)?;
        if code.is_none() && spec == active.spec {
            return Ok(function.view());
        }
        let ports = self.claim_ports(&spec).await?;
        let packages = &self.inner.packages;
        let (sha256, bytes, package) = match code {
            Some(code) => {
                still_edits(&code, active.version)?;
                let base = packages.hold(&active.code_sha256);
                let (unpacked, package) = self.install(code, Some(&base), &spec).await?;
                (unpacked.sha256, unpacked.bytes, package)
            }
            None => {
                let package = packages.hold(&active.code_sha256);
                if spec.handler != active.spec.handler {
                    package
                        .check(Entry::of(&spec.handler, spec.runtime))
                        .await?;
                }
                (active.code_sha256.clone(), active.code_bytes, package)
            }
        };
        if sha256 == active.code_sha256 && share_sandboxes(&active.spec, &spec) {
            let store = &self.inner.store;
            let mut stored = store
                .add_version(function.id(), &spec, &sha256, bytes)
                .await?;
            self.go_on(&function, &mut stored, active.notes).await;
            ports.take_over();
            return Ok(function.view());
        }
        let number = self.inner.store.next_version(function.id()).await?;
        let deployment = self.deployment(
            function.key.clone(),
            number,
            &spec,
            package,
            Some(&function.active()),
            None,
        );
        let store = async {
            let store = &self.inner.store;
            let stored = store
                .add_version(function.id(), &spec, &sha256, bytes)
                .await?;
            Ok(self.noted(stored, &deployment).await)
        };
        if let Err(error) = self.take_over(&function, &deployment, store).await {
            packages.drop_unused(&sha256).await;
            return Err(error);
        }
        ports.take_over();
        tracing::info!(function = name, version = number, "deployed");
        Ok(function.view())
    }

    async fn activate_now(
        self,
        name: &str,
        version: u32,
        meant: Meant,
    ) -> Result<FunctionView, EngineError> {
        let function = self.function(name)?;
        let _change = function.change.lock().await;
        self.may_change(name, &function)?;
        meant.check(function.revision())?;
        if function.stored().active.version == version {
            return Ok(function.view());
        }
        let missing = || EngineError::NotFound(format!("version {version} of function \"{name}\""));
        let versions = self.inner.store.versions(function.id()).await?;
        let StoredVersion {
            spec, code_sha256, ..
        } = versions
            .into_iter()
            .find(|stored| stored.version == version)
            .ok_or_else(missing)?;
        self.check_secrets(&spec)?;
        let ports = self.claim_ports(&spec).await?;
        let active = function.stored().active.clone();
        if code_sha256 == active.code_sha256 && share_sandboxes(&active.spec, &spec) {
            let stored = self.inner.store.activate(function.id(), version).await?;
            let mut stored = stored.ok_or_else(missing)?;
            let notes = stored.active.notes.clone();
            self.go_on(&function, &mut stored, notes).await;
            ports.take_over();
            return Ok(function.view());
        }
        let package = self.inner.packages.hold(&code_sha256);
        let threads = self
            .inner
            .store
            .threads(function.id())
            .await?
            .remove(&version);
        let deployment = self.deployment(
            function.key.clone(),
            version,
            &spec,
            package,
            Some(&function.active()),
            threads,
        );
        let store = async {
            let stored = self.inner.store.activate(function.id(), version);
            stored.await?.ok_or_else(missing)
        };
        self.take_over(&function, &deployment, store).await?;
        ports.take_over();
        tracing::info!(function = name, version, "activated");
        Ok(function.view())
    }

    /// Boots a deployment, stores it as the active one, and lets it take over. If it does not boot or is not stored, it
    /// is retired and the active one stays.
    pub(super) async fn take_over(
        &self,
        function: &Function,
        deployment: &Arc<Deployment>,
        store: impl Future<Output = Result<StoredFunction, EngineError>>,
    ) -> Result<(), EngineError> {
        let stored = async {
            deployment.warm_up().await.map_err(refusal)?;
            tokio::join!(store, deployment.forked_ahead()).0
        };
        match stored.await {
            Ok(stored) => {
                deployment.store_import_lines().await;
                self.note_threads(deployment).await;
                let network = stored.active.spec.network.clone();
                function.switch(stored, deployment.clone());
                // Former sandboxes that still serve requests.
                deployment.network.function().settle(&network).await;
                Ok(())
            }
            Err(error) => {
                deployment.retire();
                Err(error)
            }
        }
    }
}
