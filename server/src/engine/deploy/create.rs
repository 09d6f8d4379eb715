//! Puts new functions in service.

use std::sync::Arc;

use super::rules::Claim;
use super::version::refusal;
use crate::engine::registry::Function;
use crate::engine::{Engine, EngineError};
use crate::instance::FunctionKey;
use crate::model::{Code, FunctionSpec, FunctionView};
use crate::package::Package;

impl Engine {
    pub(super) async fn create_now(
        self,
        spec: FunctionSpec,
        code: Code,
    ) -> Result<FunctionView, EngineError> {
        self.check(&spec)?;
        self.inner.resources.runtimes.check(spec.runtime)?;
        let _claim = Claim::take(&self, &spec.name)?;
        let ports = self.claim_ports(&spec).await?;
        let (unpacked, package) = self.install(code, None, &spec).await?;
        let code = (unpacked.sha256.as_str(), unpacked.bytes);
        let function = self.put_in_service(&spec, code, package).await?;
        ports.take_over();
        tracing::info!(function = spec.name, "deployed");
        Ok(function.view())
    }

    /// Boots a new function, stores it and lets it serve. `code`: hash and size of its package. One that does not boot leaves
    /// nothing behind.
    pub(super) async fn put_in_service(
        &self,
        spec: &FunctionSpec,
        (sha256, bytes): (&str, u64),
        package: Package,
    ) -> Result<Arc<Function>, EngineError> {
        let key = FunctionKey::default();
        let deployment = self.deployment(key.clone(), 1, spec, package, None, None);
        let deployed = async {
            deployment.warm_up().await.map_err(refusal)?;
            let store = async {
                let store = &self.inner.store;
                let stored = store.create_function(spec, sha256, bytes).await?;
                Ok(self.noted(stored, &deployment).await)
            };
            tokio::join!(store, deployment.forked_ahead()).0
        };
        let stored = match deployed.await {
            Ok(stored) => stored,
            Err(error) => {
                deployment.retire();
                self.inner.packages.drop_unused(sha256).await;
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
        Ok(function)
    }
}
