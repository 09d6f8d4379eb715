//! Creating and changing functions. Every change boots its template first: if that fails, the change is rejected with
//! the reason before anything is stored or serves a request.
//!
//! A change runs on its own task, so that a client that disconnects cannot leave it half done.

use std::collections::HashSet;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::registry::Function;
use super::{Engine, EngineError};
use crate::instance::FunctionKey;
use crate::model::{
    Code, FunctionPatch, FunctionSpec, FunctionView, InvalidField, Meant, Network, Runtime, Threads,
};
use crate::package::{Package, Unpacked};
use crate::scheduler::{BootFailure, Cause, Deployment};
use crate::store::{StoredFunction, StoredVersion};

impl Engine {
    /// Deploys a new function. Answers when its template is up.
    ///
    /// # Errors
    /// [`EngineError`]; nothing of a refused deploy is left behind.
    pub async fn create(
        &self,
        spec: FunctionSpec,
        code: Code,
    ) -> Result<FunctionView, EngineError> {
        self.change(|engine| async move { engine.create_now(spec, code).await })
            .await
    }

    /// Makes a new version with other settings or code (either may be absent) and activates it. A patch that changes
    /// nothing, without code, changes nothing.
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

    /// Makes an existing version the one that answers.
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

    async fn change<T, F>(&self, run: impl FnOnce(Self) -> F) -> Result<T, EngineError>
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
        changed.map_err(|error| EngineError::Internal(error.to_string()))?
    }

    /// Unpacks an upload, compiles what is new and puts it in its place.
    async fn install(
        &self,
        code: Code,
        base: Option<&Package>,
        spec: &FunctionSpec,
    ) -> Result<(Unpacked, Package), EngineError> {
        let packages = &self.inner.packages;
        let staged = packages
            .stage(code, base, &spec.handler, spec.runtime)
            .await?;
        if spec.runtime == Runtime::Python3 && staged.is_new {
            self.inner.compiler.compile(&staged.dir).await;
        }
        Ok(packages.install(staged).await?)
    }

    async fn create_now(self, spec: FunctionSpec, code: Code) -> Result<FunctionView, EngineError> {
        self.check(&spec)?;
        self.inner.resources.runtimes.check(spec.runtime)?;
        let _claim = Claim::take(&self, &spec.name)?;
        let (unpacked, package) = self.install(code, None, &spec).await?;
        let key = FunctionKey::default();
        let deployment = self.deployment(key.clone(), 1, &spec, package, None, None);
        let deployed = async {
            deployment.warm_up().await.map_err(refusal)?;
            let store = &self.inner.store;
            let stored = store
                .create_function(&spec, &unpacked.sha256, unpacked.bytes)
                .await?;
            Ok(self.noted(stored, &deployment).await)
        };
        let stored = match deployed.await {
            Ok(stored) => stored,
            Err(error) => {
                deployment.retire();
                self.inner.packages.drop_unused(&unpacked.sha256).await;
                return Err(error);
            }
        };
        key.set(stored.id);
        deployment.store_import_lines().await;
        self.note_threads(&deployment).await;
        let function = Function::new(key, stored, deployment);
        self.inner
            .registry
            .insert(spec.name.as_str().into(), function.clone());
        tracing::info!(function = spec.name, "deployed");
        Ok(function.view())
    }

    async fn update_now(
        self,
        name: &str,
        patch: FunctionPatch,
        code: Option<Code>,
        meant: Meant,
    ) -> Result<FunctionView, EngineError> {
        let function = self.function(name)?;
        // Held until the change is stored: what is checked under it holds.
        let _change = function.change.lock().await;
        self.still_there(name, &function)?;
        meant.check(function.revision())?;
        let active = function.stored().active.clone();
        let spec = merged(&active.spec, patch);
        self.check(&spec)?;
        if code.is_none() && spec == active.spec {
            return Ok(function.view());
        }
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
                (active.code_sha256, active.code_bytes, package)
            }
        };
        let number = self.inner.store.next_version(function.id()).await?;
        let deployment = self.deployment(
            function.key.clone(),
            number,
            &spec,
            package,
            Some(&function.active()),
            None,
        );
        let deployed = async {
            deployment.warm_up().await.map_err(refusal)?;
            let store = &self.inner.store;
            let stored = store
                .add_version(function.id(), &spec, &sha256, bytes)
                .await?;
            Ok(self.noted(stored, &deployment).await)
        };
        match deployed.await {
            Ok(stored) => {
                deployment.store_import_lines().await;
                self.note_threads(&deployment).await;
                function.switch(stored, deployment);
                tracing::info!(function = name, version = number, "deployed");
                Ok(function.view())
            }
            Err(error) => {
                deployment.retire();
                packages.drop_unused(&sha256).await;
                Err(error)
            }
        }
    }

    async fn activate_now(
        self,
        name: &str,
        version: u32,
        meant: Meant,
    ) -> Result<FunctionView, EngineError> {
        let function = self.function(name)?;
        let _change = function.change.lock().await;
        self.still_there(name, &function)?;
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
        let deployed = async {
            deployment.warm_up().await.map_err(refusal)?;
            self.inner
                .store
                .activate(function.id(), version)
                .await?
                .ok_or_else(missing)
        };
        match deployed.await {
            Ok(stored) => {
                deployment.store_import_lines().await;
                self.note_threads(&deployment).await;
                function.switch(stored, deployment);
                tracing::info!(function = name, version, "activated");
                Ok(function.view())
            }
            Err(error) => {
                deployment.retire();
                Err(error)
            }
        }
    }

    async fn delete_now(self, name: &str, meant: Meant) -> Result<(), EngineError> {
        let function = self.function(name)?;
        let _change = function.change.lock().await;
        self.still_there(name, &function)?;
        meant.check(function.revision())?;
        let versions = self.inner.store.versions(function.id()).await?;
        self.inner.store.delete_function(function.id()).await?;
        self.inner.registry.remove(name);
        function.active().retire();
        self.inner.history.forget(function.id());
        self.inner.resources.images.forget(name).await;
        let packages: HashSet<_> = versions
            .into_iter()
            .map(|version| version.code_sha256)
            .collect();
        for sha256 in packages {
            self.inner.packages.drop_unused(&sha256).await;
        }
        tracing::info!(function = name, "deleted");
        Ok(())
    }

    /// The new version with what its import found. Should that not be stored, the version serves all the same.
    async fn noted(&self, mut stored: StoredFunction, deployment: &Deployment) -> StoredFunction {
        let notes = deployment.notes();
        if !notes.is_empty() {
            let version = stored.active.version;
            if let Err(error) = self.inner.store.set_notes(stored.id, version, &notes).await {
                tracing::warn!(%error, "cannot store a version's notes");
            }
            stored.active.notes = notes;
        }
        stored
    }

    /// Rules that need more than one field, or this node's capabilities.
    fn check(&self, spec: &FunctionSpec) -> Result<(), InvalidField> {
        if spec.min_instances > spec.max_concurrency {
            return Err(InvalidField {
                field: "min_instances".into(),
                value: spec.min_instances.to_string(),
                rule: format!(
                    "must not be larger than max_concurrency, which is {}",
                    spec.max_concurrency
                ),
            });
        }
        let outbound = self.inner.resources.host.capability("network_outbound");
        if spec.network == Network::Outbound
            && let Some(reason) = outbound.and_then(|capability| capability.reason.as_deref())
        {
            return Err(InvalidField {
                field: "network".into(),
                value: "\"outbound\"".into(),
                rule: format!("must be \"none\" on this node: {reason}"),
            });
        }
        Ok(())
    }

    pub(super) fn deployment(
        &self,
        key: FunctionKey,
        version: u32,
        spec: &FunctionSpec,
        package: Package,
        former: Option<&Deployment>,
        threads: Option<Threads>,
    ) -> Arc<Deployment> {
        Deployment::new(
            key,
            version,
            spec.clone(),
            package,
            self.inner.resources.clone(),
            former,
            threads,
        )
    }

    /// Stores the threads that a version's import left running: after a restart, a restored version has no boot that
    /// could tell.
    pub(super) async fn note_threads(&self, deployment: &Deployment) {
        let Some(threads) = deployment.threads() else {
            return;
        };
        let noted =
            self.inner
                .store
                .note_threads(deployment.function.get(), deployment.version, &threads);
        if let Err(error) = noted.await {
            tracing::warn!(function = %deployment.name, %error, "cannot store a version's threads");
        }
    }

    /// A change that waited for its turn may find that the one before it deleted the function.
    fn still_there(&self, name: &str, function: &Arc<Function>) -> Result<(), EngineError> {
        let current = self.function(name)?;
        if Arc::ptr_eq(&current, function) {
            Ok(())
        } else {
            Err(EngineError::NotFound(format!(
                "function \"{name}\" any more; it was replaced in the meantime"
            )))
        }
    }
}

/// Reserves a name while a function is being created.
struct Claim {
    engine: Engine,
    name: String,
}

impl Claim {
    fn take(engine: &Engine, name: &str) -> Result<Self, EngineError> {
        let mut creating = engine.inner.creating.lock();
        if engine.inner.registry.get(name).is_some() || !creating.insert(name.to_owned()) {
            return Err(EngineError::AlreadyExists(name.to_owned()));
        }
        Ok(Self {
            engine: engine.clone(),
            name: name.to_owned(),
        })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.engine.inner.creating.lock().remove(&self.name);
    }
}

/// Edits of a version that is not the active one any more would undo what was deployed meanwhile.
fn still_edits(code: &Code, active: u32) -> Result<(), InvalidField> {
    match code {
        Code::Edits { base, .. } if *base != active => Err(InvalidField {
            field: "base".into(),
            value: base.to_string(),
            rule: format!("must be the active version, which is {active} now"),
        }),
        _ => Ok(()),
    }
}

fn refusal(failure: Arc<BootFailure>) -> EngineError {
    match &failure.cause {
        Cause::Import(error, logs) => EngineError::Import {
            error: error.clone(),
            logs: logs.clone(),
        },
        Cause::Host => EngineError::HostExhausted(failure.reason.clone()),
        Cause::Function => EngineError::Internal(failure.reason.clone()),
    }
}

fn merged(spec: &FunctionSpec, patch: FunctionPatch) -> FunctionSpec {
    let mut env = spec.env.clone();
    for (name, value) in patch.env.unwrap_or_default() {
        match value {
            Some(value) => drop(env.insert(name, value)),
            None => drop(env.remove(&name)),
        }
    }
    FunctionSpec {
        name: spec.name.clone(),
        runtime: spec.runtime,
        handler: patch.handler.unwrap_or_else(|| spec.handler.clone()),
        memory_mb: patch.memory_mb.unwrap_or(spec.memory_mb),
        timeout_ms: patch.timeout_ms.unwrap_or(spec.timeout_ms),
        max_concurrency: patch.max_concurrency.unwrap_or(spec.max_concurrency),
        idle_timeout_s: patch.idle_timeout_s.unwrap_or(spec.idle_timeout_s),
        min_instances: patch.min_instances.unwrap_or(spec.min_instances),
        keep_warm: patch.keep_warm.unwrap_or(spec.keep_warm),
        template_idle_timeout_s: patch
            .template_idle_timeout_s
            .unwrap_or(spec.template_idle_timeout_s),
        start: patch.start.unwrap_or(spec.start),
        network: patch.network.unwrap_or(spec.network),
        body: patch.body.unwrap_or(spec.body),
        public: patch.public.unwrap_or(spec.public),
        cors: match patch.cors {
            Some(cors) => cors.map(Arc::new),
            None => spec.cors.clone(),
        },
        env,
    }
}
