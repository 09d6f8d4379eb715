//! Versions that answer apart from their function's own requests: each by name, active or not, in instances of its own. This is how two
//! versions are compared without either serving anybody else.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::registry::Function;
use super::{Engine, EngineError, InvokeError};
use crate::model::FunctionSpec;
use crate::scheduler::{Deployment, Lease, LeaseError};
use crate::store::StoredVersion;

/// How long a version stays without a call: as long as the pauses within a comparison may be.
const IDLE: Duration = Duration::from_secs(60);

/// Most templates at a time, which bounds what invocations alone can bring up; the least recently called one goes. Two comparisons of
/// two versions and a control, each with its last round's beside: none that is in use goes for another's new one.
const MOST: usize = 12;

/// How often a version is asked that is taken out of service at that moment.
const TRIES: usize = 3;

/// A version that answers apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct VersionApart {
    /// Its number.
    pub version: u32,
    /// Which of its templates is asked for. How fast the same code is depends on where the memory of its template came to lie, so that a
    /// comparison takes many; number 0 is everybody else's.
    pub template: u32,
    /// Which of the server's processors that is pinned to.
    pub processor: Option<u32>,
}

/// A function's row and its version.
type Key = (i64, VersionApart);

/// Those that are in service.
#[derive(Default)]
pub(super) struct Apart(Mutex<HashMap<Key, Entry>>);

struct Entry {
    deployment: Arc<Deployment>,
    called: Instant,
}

impl Apart {
    /// All of them, for the tick. Those that nobody called for a while are taken out.
    pub(super) fn keep(&self, now: Instant) -> Vec<Arc<Deployment>> {
        let mut entries = self.0.lock();
        entries.retain(|_, entry| {
            let stays = now.saturating_duration_since(entry.called) < IDLE;
            if !stays {
                entry.deployment.retire();
            }
            stays
        });
        let all = entries.values();
        all.map(|entry| entry.deployment.clone()).collect()
    }

    /// Takes a function's out; all without one.
    pub(super) fn retire(&self, function: Option<i64>) {
        self.0.lock().retain(|(id, _), entry| {
            let stays = function.is_some_and(|function| function != *id);
            if !stays {
                entry.deployment.retire();
            }
            stays
        });
    }

    /// The one in service, called now.
    fn called(&self, key: Key) -> Option<Arc<Deployment>> {
        called(&mut self.0.lock(), key)
    }

    /// Puts one in service unless another call was first. Returns the one that is.
    fn put(&self, key: Key, deployment: Arc<Deployment>) -> Arc<Deployment> {
        let mut entries = self.0.lock();
        if let Some(first) = called(&mut entries, key) {
            deployment.retire();
            return first;
        }
        if entries.len() >= MOST {
            let least = entries.iter().min_by_key(|(_, entry)| entry.called);
            if let Some(entry) = least
                .map(|(key, _)| *key)
                .and_then(|key| entries.remove(&key))
            {
                entry.deployment.retire();
            }
        }
        let called = Instant::now();
        entries.insert(
            key,
            Entry {
                deployment: deployment.clone(),
                called,
            },
        );
        deployment
    }
}

fn called(entries: &mut HashMap<Key, Entry>, key: Key) -> Option<Arc<Deployment>> {
    let entry = entries.get_mut(&key)?;
    entry.called = Instant::now();
    Some(entry.deployment.clone())
}

impl Engine {
    /// Leases an instance of a version that answers apart. Returns its deployment, too.
    pub(super) async fn lease_apart(
        &self,
        function: &Function,
        version: VersionApart,
        received: Instant,
    ) -> Result<(Arc<Deployment>, Result<Lease, LeaseError>), InvokeError> {
        let key = (function.id(), version);
        let mut tries = 0;
        loop {
            let deployment = match self.inner.apart.called(key) {
                Some(deployment) => deployment,
                None => {
                    let deployment = self.made_apart(function, version).await;
                    let deployment = deployment.map_err(|error| match error {
                        EngineError::NotFound(what) => InvokeError::NoVersion(what),
                        other => InvokeError::Internal(other.to_string()),
                    })?;
                    self.inner.apart.put(key, deployment)
                }
            };
            // It may have been deleted while its version was read.
            if self.function(&deployment.name).is_err() {
                self.inner.apart.retire(Some(key.0));
            }
            tries += 1;
            match deployment.lease(received).await {
                // It was taken out in between: it is not among them any more.
                Err(LeaseError::Retired) if tries < TRIES => {}
                lease => return Ok((deployment, lease)),
            }
        }
    }

    /// Keeps a version's deployment in service, apart.
    pub(super) fn keep_apart(&self, function: &Function, deployment: Arc<Deployment>) {
        let version = VersionApart {
            version: deployment.version(),
            template: 0,
            processor: None,
        };
        let key = (function.id(), version);
        self.inner.apart.put(key, deployment);
    }

    async fn made_apart(
        &self,
        function: &Function,
        VersionApart {
            version,
            template,
            processor,
        }: VersionApart,
    ) -> Result<Arc<Deployment>, EngineError> {
        let StoredVersion {
            spec, code_sha256, ..
        } = self.version_of(function, version).await?;
        let threads = self.inner.store.threads(function.id()).await?;
        // Nothing is kept up for calls that may never come.
        let spec = FunctionSpec {
            min_instances: 0,
            keep_warm: false,
            ..spec
        };
        let deployment = self.deployment(
            function.key.clone(),
            version,
            &spec,
            self.inner.packages.hold(&code_sha256),
            None,
            threads.get(&version).cloned(),
        );
        if template != 0 || processor.is_some() {
            deployment.compare_on(processor);
        }
        Ok(deployment)
    }

    /// A stored version of a function.
    pub(super) async fn version_of(
        &self,
        function: &Function,
        version: u32,
    ) -> Result<StoredVersion, EngineError> {
        let versions = self.inner.store.versions(function.id()).await?;
        let found = versions.into_iter().find(|one| one.version == version);
        let name = &function.stored().active.spec.name;
        found.ok_or_else(|| {
            EngineError::NotFound(format!("version {version} of function \"{name}\""))
        })
    }
}
