//! Versions of functions whose instances somebody else keeps: the members of chains.

use std::ops::Deref;
use std::sync::Arc;

use super::{Engine, EngineError};
use crate::sandbox::Host;
use crate::scheduler::Deployment;
use crate::store::StoredVersion;

/// A version in use beside its function's own requests. One that is not the function's active version is taken out of service
/// when this is dropped; its instances end where they are kept.
pub struct HeldVersion {
    deployment: Arc<Deployment>,
    /// Whether nothing but this keeps it in service.
    is_own: bool,
}

impl Deref for HeldVersion {
    type Target = Arc<Deployment>;

    fn deref(&self) -> &Arc<Deployment> {
        &self.deployment
    }
}

impl Drop for HeldVersion {
    fn drop(&mut self) {
        if self.is_own {
            self.deployment.retire();
        }
    }
}

impl Engine {
    /// A version of a function, to start instances of.
    ///
    /// # Errors
    /// [`EngineError::NotFound`] when there is no such function or version, [`EngineError::Internal`] when the store fails.
    pub async fn held(&self, name: &str, version: u32) -> Result<HeldVersion, EngineError> {
        let function = self.function(name)?;
        let active = function.active();
        if active.version() == version && !active.is_retired() {
            return Ok(HeldVersion {
                deployment: active,
                is_own: false,
            });
        }
        let StoredVersion {
            spec, code_sha256, ..
        } = self.version_of(&function, version).await?;
        let threads = self.inner.store.threads(function.id()).await?;
        let package = self.inner.packages.hold(&code_sha256);
        let threads = threads.get(&version).cloned();
        let key = function.key.clone();
        Ok(HeldVersion {
            deployment: self.deployment(key, version, &spec, package, None, threads),
            is_own: true,
        })
    }

    /// The host process.
    pub fn host(&self) -> Host {
        self.inner.resources.host.clone()
    }

    /// Processors that this server may use.
    pub fn cores(&self) -> u32 {
        self.inner.resources.cores
    }

    /// Longest spin of an instance before it sleeps.
    pub fn busy_poll(&self) -> std::time::Duration {
        self.inner.resources.busy_poll
    }
}
