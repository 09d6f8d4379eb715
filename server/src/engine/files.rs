//! Reading and comparing the code of a function's versions.

use std::path::PathBuf;

use super::{Engine, EngineError, registry};
use crate::model::{SettingChange, VersionView, setting_changes};
use crate::package::Package;
use crate::store::StoredVersion;

/// The code of one version. Its files exist at least as long as this.
pub struct VersionCode {
    /// The version's number.
    pub version: u32,
    /// Hash of the code: the same for versions with the same code.
    pub sha256: String,
    package: Package,
}

impl VersionCode {
    /// The directory with its files, which never change.
    pub fn path(&self) -> PathBuf {
        self.package.path()
    }
}

/// A version and what it changed.
#[derive(Debug, Clone)]
pub struct VersionChange {
    /// The version.
    pub version: VersionView,
    /// Number of the version before it; none for the first.
    pub before: Option<u32>,
    /// Whether its code differs from that of the version before it. True for the first.
    pub code: bool,
    /// Changed settings.
    pub settings: Vec<SettingChange>,
}

impl Engine {
    /// The code of a version, or of the active one.
    ///
    /// # Errors
    /// [`EngineError::NotFound`], [`EngineError::Internal`].
    pub async fn code(&self, name: &str, version: Option<u32>) -> Result<VersionCode, EngineError> {
        let function = self.function(name)?;
        let active = function.stored().active.clone();
        let wanted = match version {
            Some(version) if version != active.version => {
                self.stored_version(name, version).await?
            }
            _ => active,
        };
        let package = self.inner.packages.hold(&wanted.code_sha256);
        // A function that is being deleted takes its code with it.
        if !tokio::fs::try_exists(package.path()).await? {
            return Err(EngineError::NotFound(format!("function \"{name}\"")));
        }
        Ok(VersionCode {
            version: wanted.version,
            sha256: wanted.code_sha256,
            package,
        })
    }

    /// A function's versions, newest first, each with what it changed.
    ///
    /// # Errors
    /// [`EngineError::NotFound`], [`EngineError::Internal`].
    pub async fn version_changes(&self, name: &str) -> Result<Vec<VersionChange>, EngineError> {
        let function = self.function(name)?;
        let active = function.stored().active.version;
        let versions = self.inner.store.versions(function.id()).await?;
        let threads = self.inner.store.threads(function.id()).await?;
        let mut gates = self.inner.store.version_gates(function.id()).await?;
        let change = |(index, version): (usize, &StoredVersion)| {
            let before = versions.get(index + 1);
            VersionChange {
                version: VersionView {
                    gate: gates.remove(&version.version),
                    ..registry::version_view(
                        version,
                        active,
                        self.start_choice(&function, version, &threads),
                    )
                },
                before: before.map(|before| before.version),
                code: before.is_none_or(|before| before.code_sha256 != version.code_sha256),
                settings: before.map_or_else(Vec::new, |before| {
                    setting_changes(&before.spec, &version.spec)
                }),
            }
        };
        Ok(versions.iter().enumerate().map(change).collect())
    }

    /// The settings that differ from one version to another.
    ///
    /// # Errors
    /// [`EngineError::NotFound`], [`EngineError::Internal`].
    pub async fn setting_changes(
        &self,
        name: &str,
        before: u32,
        after: u32,
    ) -> Result<Vec<SettingChange>, EngineError> {
        let before = self.stored_version(name, before).await?;
        let after = self.stored_version(name, after).await?;
        Ok(setting_changes(&before.spec, &after.spec))
    }

    async fn stored_version(&self, name: &str, version: u32) -> Result<StoredVersion, EngineError> {
        let function = self.function(name)?;
        self.inner
            .store
            .versions(function.id())
            .await?
            .into_iter()
            .find(|stored| stored.version == version)
            .ok_or_else(|| {
                EngineError::NotFound(format!("version {version} of function \"{name}\""))
            })
    }
}
