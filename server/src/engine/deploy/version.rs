//! Creates a version: unpacks and compiles its code, builds its deployment, and records what its first boot finds.

use std::sync::Arc;

use crate::engine::registry::Function;
use crate::engine::{Engine, EngineError};
use crate::instance::FunctionKey;
use crate::model::{Code, FunctionSpec, Note, Runtime, Threads};
use crate::package::{Entry, Package, Unpacked};
use crate::scheduler::{BootFailure, Cause, Deployment};
use crate::store::StoredFunction;

impl Engine {
    /// Unpacks an upload, compiles what is new and puts it in its place.
    pub(super) async fn install(
        &self,
        code: Code,
        base: Option<&Package>,
        spec: &FunctionSpec,
    ) -> Result<(Unpacked, Package), EngineError> {
        let packages = &self.inner.packages;
        let staged = packages
            .stage(code, base, Entry::of(&spec.handler, spec.runtime))
            .await?;
        if spec.runtime == Runtime::Python3 && staged.is_new {
            self.inner.compiler.compile(&staged.dir).await;
        }
        Ok(packages.install(staged).await?)
    }

    /// The new version with the findings of its import. If they cannot be stored, the version serves all the same.
    pub(super) async fn noted(
        &self,
        mut stored: StoredFunction,
        deployment: &Deployment,
    ) -> StoredFunction {
        let version = stored.active.version;
        let notes = self.kept_notes(stored.id, version, deployment).await;
        if !notes.is_empty() {
            stored.active.notes = notes;
        }
        stored
    }

    /// The findings of a version's import, stored if there are any.
    pub(super) async fn kept_notes(
        &self,
        function: i64,
        version: u32,
        deployment: &Deployment,
    ) -> Vec<Note> {
        let notes = deployment.notes();
        if !notes.is_empty()
            && let Err(error) = self.inner.store.set_notes(function, version, &notes).await
        {
            tracing::warn!(%error, "cannot store a version's notes");
        }
        notes
    }

    pub(in crate::engine) fn deployment(
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

    /// The deployment in service becomes another, stored version: nothing boots, and running instances are not
    /// disturbed.
    pub(super) async fn go_on(
        &self,
        function: &Function,
        stored: &mut StoredFunction,
        notes: Vec<Note>,
    ) {
        let version = stored.active.version;
        if stored.active.notes != notes {
            if let Err(error) = self.inner.store.set_notes(stored.id, version, &notes).await {
                tracing::warn!(%error, "cannot store a version's notes");
            }
            stored.active.notes = notes;
        }
        function.go_on(stored.clone());
        let network = &stored.active.spec.network;
        function.active().network.function().settle(network).await;
        self.note_threads(&function.active()).await;
        tracing::info!(
            function = stored.active.spec.name,
            version,
            "changed its network or ports"
        );
    }

    /// Stores the threads that a version's import left running: after a restart, a restored version has no boot that
    /// could report them.
    pub(in crate::engine) async fn note_threads(&self, deployment: &Deployment) {
        let Some(threads) = deployment.threads() else {
            return;
        };
        let noted = self.inner.store.note_threads(
            deployment.function.get(),
            deployment.version(),
            &threads,
        );
        if let Err(error) = noted.await {
            tracing::warn!(function = %deployment.name, %error, "cannot store a version's threads");
        }
    }
}

/// The error for a version whose template did not come up.
pub(super) fn refusal(failure: Arc<BootFailure>) -> EngineError {
    match &failure.cause {
        Cause::Import(error, logs) => EngineError::Import {
            error: error.clone(),
            logs: logs.clone(),
        },
        Cause::Host => EngineError::HostExhausted(failure.reason.clone()),
        Cause::Function => EngineError::Internal(failure.reason.clone()),
    }
}
