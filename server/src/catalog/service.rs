//! Chains in service: started when the server starts, restarted when a function they follow changes.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::state::State;
use super::{Catalog, CatalogError, Chain};
use crate::chains::{ActivateError, Live};
use crate::model::chain::Version;
use crate::store::StoredChainVersion;

/// Least time between two attempts to start a chain that has failed to.
const RETRY: Duration = Duration::from_secs(1);

/// A version whose members run.
pub(super) struct Started {
    pub live: Arc<Live>,
    pub state: Arc<State>,
}

impl Catalog {
    /// Starts the members of a version, beside what is in service. If it is dropped, they end.
    pub(super) async fn start_version(
        &self,
        chain: i64,
        version: &StoredChainVersion,
    ) -> Result<Started, CatalogError> {
        let functions = self.functions_of(&version.spec).await?;
        let running = functions.running.clone();
        let members = version.spec.members.len();
        let version = Version {
            chain,
            version: version.version,
            spec: Arc::new(version.spec.clone()),
            functions: functions.versions,
            created_at: version.created_at,
        };
        Ok(Started {
            live: self.inner.live.start(version).await?,
            state: Arc::new(State::ready(running, members)),
        })
    }

    /// The members in service for another version, if it differs in nothing that concerns them and they run what it asks
    /// for.
    pub(super) async fn with_the_same_members(
        &self,
        chain: &Chain,
        version: &StoredChainVersion,
    ) -> Option<Started> {
        let state = chain.state();
        let live = self.inner.live.of(&version.spec.name)?;
        let State::Ready { running, .. } = &*state else {
            return None;
        };
        if !live.version().spec.shares_members(&version.spec) {
            return None;
        }
        let functions = self.functions_of(&version.spec).await.ok()?;
        if functions.running != *running {
            return None;
        }
        let version = Version {
            version: version.version,
            spec: Arc::new(version.spec.clone()),
            created_at: version.created_at,
            ..live.version().clone()
        };
        Some(Started {
            live: live.renewed(version),
            state,
        })
    }

    /// Puts a version in service in place of the one that is, which goes on if this one does not start.
    async fn put_in_service(
        &self,
        chain: i64,
        version: &StoredChainVersion,
    ) -> Result<Arc<State>, CatalogError> {
        let Started { live, state } = self.start_version(chain, version).await?;
        self.inner.live.activate(live);
        Ok(state)
    }

    /// Starts a chain that is not in service. Its lock is held.
    async fn start_now(&self, chain: &Arc<Chain>) {
        let stored = chain.stored();
        let state = match self.put_in_service(stored.id, &stored.active).await {
            Ok(ready) => ready,
            Err(error) => {
                let name = &stored.active.spec.name;
                tracing::warn!(chain = name, %error, "the chain does not start");
                Arc::new(State::failed(error.to_string()))
            }
        };
        chain.state.send_replace(state);
    }

    /// Starts all chains, each on a task of its own, and follows their functions from then on.
    pub(super) fn bring_up(&self) {
        for chain in self.all() {
            let catalog = self.clone();
            tokio::spawn(async move {
                let _members = catalog.inner.members.read().await;
                let _change = chain.change.lock().await;
                if catalog.still_there(&chain).is_ok() && chain.state().is_starting() {
                    catalog.start_now(&chain).await;
                }
            });
        }
        tokio::spawn(self.clone().follow());
    }

    /// Restarts chains whose functions have changed: the new instances take over from the former ones.
    async fn follow(self) {
        let mut changes = self.inner.engine.changes();
        while changes.changed().await.is_ok() {
            for chain in self.all() {
                let _members = self.inner.members.read().await;
                let _change = chain.change.lock().await;
                if self.still_there(&chain).is_ok() && !self.inner.engine.is_draining() {
                    self.follow_now(&chain).await;
                }
            }
        }
    }

    async fn follow_now(&self, chain: &Arc<Chain>) {
        let stored = chain.stored();
        let name = &stored.active.spec.name;
        match &*chain.state() {
            State::Starting => {}
            State::Failed { .. } => self.start_now(chain).await,
            State::Ready { running, .. } => {
                let now = self.functions_of(&stored.active.spec).await;
                let same = now.as_ref().is_ok_and(|now| now.running == *running);
                if same {
                    return;
                }
                match self.put_in_service(stored.id, &stored.active).await {
                    Ok(state) => {
                        tracing::info!(chain = name, "restarted with changed functions");
                        chain.state.send_replace(state);
                    }
                    Err(error) => {
                        tracing::warn!(chain = name, %error, "goes on with what its functions were");
                        let reason = format!("goes on with what its functions were: {error}");
                        let kept = chain.state().with_reason(reason);
                        chain.state.send_replace(Arc::new(kept));
                    }
                }
            }
        }
    }

    /// Waits until a chain is in service, and starts one that has failed to. The reason if it is not in service.
    pub(super) async fn in_service(
        &self,
        chain: &Arc<Chain>,
        deadline: Instant,
    ) -> Result<Arc<State>, String> {
        let mut watched = chain.state.subscribe();
        if let State::Failed { since, .. } = &*chain.state()
            && since.elapsed() >= RETRY
        {
            let (catalog, chain) = (self.clone(), chain.clone());
            // On a task of its own: a client that goes away must not leave a chain half started.
            let started = tokio::spawn(async move {
                let _members = catalog.inner.members.read().await;
                let _change = chain.change.lock().await;
                let is_due = matches!(&*chain.state(), State::Failed { since, .. } if since.elapsed() >= RETRY);
                if is_due && catalog.still_there(&chain).is_ok() {
                    catalog.start_now(&chain).await;
                }
            });
            let _ = tokio::time::timeout_at(deadline, started).await;
        }
        let settled = watched.wait_for(|state| !state.is_starting());
        let state = match tokio::time::timeout_at(deadline, settled).await {
            Ok(Ok(state)) => state.clone(),
            Ok(Err(_)) | Err(_) => return Err("its members are still being started".to_owned()),
        };
        match &*state {
            State::Failed { reason, .. } => Err(reason.clone()),
            _ => Ok(state),
        }
    }

    /// Takes every chain out of service: requests under way are ended.
    pub async fn shut_down(&self) {
        self.inner.live.shut_down().await;
    }
}

impl From<ActivateError> for CatalogError {
    fn from(error: ActivateError) -> Self {
        match error {
            ActivateError::HostExhausted(_) => Self::HostExhausted(error.to_string()),
            ActivateError::Cores(wrong) => Self::Invalid(wrong),
            ActivateError::Internal(cause) => Self::Internal(cause),
            other => Self::NotStarted(other.to_string()),
        }
    }
}
