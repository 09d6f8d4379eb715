//! Gives up experiments whose agents are gone, and removes chains and functions that are left of those that are over.

use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::{Lab, prefix};
use crate::catalog::CatalogError;
use crate::engine::EngineError;
use crate::model::Meant;

/// An experiment whose agent does not report for so long is given up. Agents report once a second.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// An experiment whose agent reports, but has not ended it for so long after a cancel, is given up, too: others wait.
const CANCEL_MAX: Duration = Duration::from_mins(10);
/// How often that is looked for.
const LOOK_EVERY: Duration = Duration::from_secs(5);
/// How long functions of an experiment that is over are looked for: a deploy that its agent has begun may take so long, and a removal
/// that fails is tried again.
const SWEEP_FOR: Duration = Duration::from_mins(5);

impl Lab {
    /// Until the server ends.
    pub(super) async fn keep_house(self) {
        let mut ticks = tokio::time::interval(LOOK_EVERY);
        while !self.0.engine.is_draining() {
            ticks.tick().await;
            self.give_up().await;
            self.decide_gates().await;
            for id in self.recently_ended() {
                self.remove_what_is_left(id).await;
            }
        }
    }

    async fn give_up(&self) {
        let now = Timestamp::now();
        let (Ok(heard), Ok(cancelled)) = (
            now.saturating_sub(SILENCE_MAX),
            now.saturating_sub(CANCEL_MAX),
        ) else {
            return;
        };
        let error = "its agent does not report any more, or does not end it";
        let store = &self.0.store;
        match store.fail_silent_experiments(heard, cancelled, error).await {
            Ok(ids) => self.have_ended(&ids),
            Err(error) => tracing::warn!(%error, "cannot look for silent experiments"),
        }
    }

    /// Notes that these are over.
    pub(super) fn have_ended(&self, ids: &[i64]) {
        let now = Instant::now();
        self.0.ended.lock().extend(ids.iter().map(|id| (*id, now)));
    }

    fn recently_ended(&self) -> Vec<i64> {
        let mut ended = self.0.ended.lock();
        ended.retain(|(_, at)| at.elapsed() < SWEEP_FOR);
        ended.iter().map(|(id, _)| *id).collect()
    }

    /// Removes what an agent has made for an experiment that is over: chains, then functions, because a chain's members stay.
    pub(super) async fn remove_what_is_left(&self, experiment: i64) {
        let catalog = &self.0.catalog;
        let prefix = format!("{}-", prefix(experiment));
        for chain in catalog.list() {
            let name = chain.name.as_str();
            if name.starts_with(&prefix) {
                let removed = catalog.delete(name, Meant::Any).await;
                warn_unless_gone(name, removed);
            }
        }
        for function in self.0.engine.list() {
            let name = function.name.as_str();
            if name.starts_with(&prefix) {
                let removed = catalog.delete_function(name, Meant::Any).await;
                warn_unless_gone(name, removed);
            }
        }
    }
}

fn warn_unless_gone(name: &str, removed: Result<(), CatalogError>) {
    match removed {
        Ok(())
        | Err(CatalogError::NotFound(_) | CatalogError::Engine(EngineError::NotFound(_))) => {}
        Err(error) => tracing::warn!(name, %error, "cannot remove what an experiment has left"),
    }
}
