//! Deleting a function.

use std::collections::HashSet;

use crate::engine::{Engine, EngineError};
use crate::model::{Meant, PortOwner};

impl Engine {
    /// Removes a function, its versions, ports and history.
    pub(super) async fn delete_now(self, name: &str, meant: Meant) -> Result<(), EngineError> {
        let function = self.function(name)?;
        let _change = function.change.lock().await;
        self.still_there(name, &function)?;
        meant.check(function.revision())?;
        let versions = self.inner.store.versions(function.id()).await?;
        self.inner.store.delete_function(function.id()).await?;
        self.inner.registry.remove(name);
        self.release_ports(&PortOwner::function(name));
        function.active().retire();
        self.inner.apart.retire(Some(function.id()));
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
}
