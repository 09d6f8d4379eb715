//! Adds a version that does not answer yet.

use super::rules::{merged, still_edits};
use super::version::refusal;
use crate::engine::{Engine, EngineError, registry};
use crate::model::{Code, FunctionPatch, FunctionSpec, Meant, VersionView};
use crate::package::Entry;

impl Engine {
    /// Adds a version with other settings or code than the active one. The active version goes on; this one can be invoked by its
    /// number, and activated.
    ///
    /// # Errors
    /// As for [`Engine::update`]; code that does not import is no version.
    pub async fn add_version(
        &self,
        name: &str,
        patch: FunctionPatch,
        code: Option<Code>,
        meant: Meant,
    ) -> Result<VersionView, EngineError> {
        let name = name.to_owned();
        self.change(|engine| async move { engine.add_now(&name, patch, code, meant).await })
            .await
    }

    async fn add_now(
        self,
        name: &str,
        patch: FunctionPatch,
        code: Option<Code>,
        meant: Meant,
    ) -> Result<VersionView, EngineError> {
        let function = self.function(name)?;
        let _change = function.change.lock().await;
        self.may_change(name, &function)?;
        meant.check(function.revision())?;
        let active = function.stored().active.clone();
        let asked = merged(&active.spec, patch);
        self.check(&asked)?;
        let packages = &self.inner.packages;
        let base = packages.hold(&active.code_sha256);
        let (sha256, bytes, package) = match code {
            Some(code) => {
                still_edits(&code, active.version)?;
                let (unpacked, package) = self.install(code, Some(&base), &asked).await?;
                (unpacked.sha256, unpacked.bytes, package)
            }
            None => {
                if asked.handler != active.spec.handler {
                    base.check(Entry::of(&asked.handler, asked.runtime)).await?;
                }
                (active.code_sha256.clone(), active.code_bytes, base)
            }
        };
        let number = self.inner.store.next_version(function.id()).await?;
        // As it will answer apart.
        let spec = FunctionSpec {
            min_instances: 0,
            keep_warm: false,
            ..asked.clone()
        };
        let deployment = self.deployment(function.key.clone(), number, &spec, package, None, None);
        let added = async {
            deployment.warm_up().await.map_err(refusal)?;
            let store = &self.inner.store;
            let added = store.add_idle_version(function.id(), &asked, &sha256, bytes);
            Ok::<_, EngineError>(added.await?)
        };
        let mut version = match added.await {
            Ok(version) => version,
            Err(error) => {
                deployment.retire();
                packages.drop_unused(&sha256).await;
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
