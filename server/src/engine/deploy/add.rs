//! Adds a version that does not answer yet.

use super::rules::still_edits;
use super::version::refusal;
use crate::engine::{Engine, EngineError, registry};
use crate::model::{Code, FunctionSpec, Meant, VersionView};

impl Engine {
    /// Adds a version with other code and the active one's settings. The active version goes on; this one can be invoked by its
    /// number, and activated.
    ///
    /// # Errors
    /// As for [`Engine::update`]; code that does not import is no version.
    pub async fn add_version(
        &self,
        name: &str,
        code: Code,
        meant: Meant,
    ) -> Result<VersionView, EngineError> {
        let name = name.to_owned();
        self.change(|engine| async move { engine.add_now(&name, code, meant).await })
            .await
    }

    async fn add_now(
        self,
        name: &str,
        code: Code,
        meant: Meant,
    ) -> Result<VersionView, EngineError> {
        let function = self.function(name)?;
        let _change = function.change.lock().await;
        self.still_there(name, &function)?;
        meant.check(function.revision())?;
        let active = function.stored().active.clone();
        still_edits(&code, active.version)?;
        let packages = &self.inner.packages;
        let base = packages.hold(&active.code_sha256);
        let (unpacked, package) = self.install(code, Some(&base), &active.spec).await?;
        let number = self.inner.store.next_version(function.id()).await?;
        // As it will answer apart.
        let spec = FunctionSpec {
            min_instances: 0,
            keep_warm: false,
            ..active.spec.clone()
        };
        let deployment = self.deployment(function.key.clone(), number, &spec, package, None, None);
        let added = async {
            deployment.warm_up().await.map_err(refusal)?;
            let store = &self.inner.store;
            let (sha256, bytes) = (&unpacked.sha256, unpacked.bytes);
            let added = store.add_idle_version(function.id(), &active.spec, sha256, bytes);
            Ok::<_, EngineError>(added.await?)
        };
        let mut version = match added.await {
            Ok(version) => version,
            Err(error) => {
                deployment.retire();
                packages.drop_unused(&unpacked.sha256).await;
                return Err(error);
            }
        };
        version.notes = self.kept_notes(function.id(), number, &deployment).await;
        deployment.store_import_lines().await;
        self.note_threads(&deployment).await;
        let choice = deployment.start_choice();
        // Who adds a version is about to try it.
        self.keep_apart(&function, deployment);
        tracing::info!(function = name, version = number, "added");
        Ok(registry::version_view(&version, active.version, choice))
    }
}
