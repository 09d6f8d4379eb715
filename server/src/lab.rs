//! The lab's experiments: kept here, run by agents ([`hearth_lab::job::agent`]), which are clients. A server starts no program
//! (`server/docs/privileges.md`), and an agent on another host measures the network, too.
//!
//! ```text
//! Queued ──agent──▶ Running ──▶ Succeeded, FellShort, Failed, Cancelled
//!   │ cancel           │ no report for 30 s, no end 10 min after a cancel, a restart
//!   ▼                  ▼
//! Cancelled          Failed
//! ```
//!
//! `create.rs` takes configurations. `house.rs` gives experiments up and removes what is left of them. `gate.rs` has versions compared before they become active.

mod create;
mod deciding;
mod error;
mod gate;
mod gate_settings;
mod house;
mod performance;
mod verdict;
mod what_if;

use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::Notify;

use crate::catalog::Catalog;
use crate::engine::Engine;
use crate::model::{AssignedExperiment, ExperimentDetail, ExperimentEnd, ExperimentView};
use crate::store::{Store, StoreError};

use deciding::Deciding;

pub use error::LabError;
pub use gate::Deployed;
pub use what_if::WhatIfAsked;

/// How long an agent that asks for an experiment waits for one.
const WAIT: Duration = Duration::from_secs(20);
/// An agent that has asked within this time is there.
const AGENT_SEEN: Duration = Duration::from_secs(45);
/// Most experiments that wait or run: each may take hours.
const OPEN_MAX: i64 = 100;
/// Most bytes of all files of an experiment.
const FILES_MAX: u64 = 128 << 20;
/// Most bytes of all files and configurations of all experiments, which are kept until they are deleted: the database's disk has other
/// uses.
const ALL_MAX: u64 = 4 << 30;
/// Longest path of a file.
const PATH_MAX: usize = 300;

/// What an experiment's functions are named after.
fn prefix(id: i64) -> String {
    format!("lab-e{id}")
}

/// The experiments. Cheap to clone.
#[derive(Clone)]
pub struct Lab(Arc<Inner>);

struct Inner {
    store: Store,
    engine: Engine,
    /// Of chains, which agents make, too.
    catalog: Catalog,
    /// Rung when an experiment waits.
    bell: Notify,
    /// When an agent has last asked.
    asked: parking_lot::Mutex<Option<Instant>>,
    /// Experiments that ended a short while ago, and when.
    ended: parking_lot::Mutex<Vec<(i64, Instant)>>,
    deciding: Deciding,
    simulating: what_if::Turns,
}

impl Lab {
    /// The experiments of a store. What ran before this start has no agent any more that could end it.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn start(store: Store, engine: Engine, catalog: Catalog) -> Result<Self, StoreError> {
        let lab = Self(Arc::new(Inner {
            store,
            engine,
            catalog,
            bell: Notify::new(),
            asked: parking_lot::Mutex::default(),
            ended: parking_lot::Mutex::default(),
            deciding: Deciding::default(),
            simulating: what_if::Turns::default(),
        }));
        let error = "the server was restarted while it ran";
        let ids = lab
            .0
            .store
            .fail_silent_experiments(Timestamp::MAX, Timestamp::MAX, error)
            .await?;
        lab.have_ended(&ids);
        tokio::spawn(lab.clone().keep_house());
        Ok(lab)
    }

    /// Experiments before this id, newest first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn list(&self, before: i64, limit: u32) -> Result<Vec<ExperimentView>, StoreError> {
        self.0.store.experiments(before, limit).await
    }

    /// The newest others that have a result, with their titles: those of the same kind first.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn others(
        &self,
        of: &ExperimentView,
        limit: u32,
    ) -> Result<Vec<(i64, String)>, StoreError> {
        self.0.store.other_experiments(of.id, &of.kind, limit).await
    }

    /// One experiment.
    ///
    /// # Errors
    /// [`LabError::NotFound`], [`LabError::Store`].
    pub async fn get(&self, id: i64) -> Result<ExperimentDetail, LabError> {
        let found = self.0.store.experiment(id).await?;
        found.ok_or(LabError::NotFound(id))
    }

    /// Cancels one: at once if it waits, by its agent if it runs.
    ///
    /// # Errors
    /// [`LabError::NotFound`], [`LabError::State`] for one that is over.
    pub async fn cancel(&self, id: i64) -> Result<ExperimentDetail, LabError> {
        if !self.0.store.cancel_experiment(id).await? {
            self.get(id).await?;
            return Err(LabError::State(id, "is over"));
        }
        self.get(id).await
    }

    /// Deletes one with its files.
    ///
    /// # Errors
    /// [`LabError::NotFound`], [`LabError::State`] for one that runs.
    pub async fn delete(&self, id: i64) -> Result<(), LabError> {
        if self.0.store.delete_experiment(id).await? {
            return Ok(());
        }
        self.get(id).await?;
        Err(LabError::State(id, "runs; cancel it first"))
    }

    /// A file's content.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn file(&self, id: i64, path: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.0.store.experiment_file(id, path).await
    }

    /// Whether an agent asks for experiments.
    pub fn has_agent(&self) -> bool {
        let asked = *self.0.asked.lock();
        asked.is_some_and(|asked| asked.elapsed() < AGENT_SEEN)
    }

    /// The next experiment for an agent; none within the time that it waits, or while another runs.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn next(&self) -> Result<Option<AssignedExperiment>, StoreError> {
        let deadline = tokio::time::Instant::now() + WAIT;
        loop {
            *self.0.asked.lock() = Some(Instant::now());
            let rung = self.0.bell.notified();
            if let Some((id, config)) = self.0.store.start_experiment().await? {
                return Ok(Some(AssignedExperiment {
                    id,
                    config,
                    prefix: prefix(id),
                }));
            }
            if self.0.engine.is_draining() || tokio::time::Instant::now() >= deadline {
                return Ok(None);
            }
            // By the clock as well: another one's end rings no bell for who waits already, and a drain none at all.
            let until = deadline.min(tokio::time::Instant::now() + Duration::from_secs(1));
            let _ = tokio::time::timeout_at(until, rung).await;
        }
    }

    /// Keeps how far one is. Returns whether it is to be cancelled.
    ///
    /// # Errors
    /// [`LabError::State`] for one that does not run.
    pub async fn progress(&self, id: i64, progress: &Value) -> Result<bool, LabError> {
        match self.0.store.note_progress(id, progress).await? {
            Some(cancel) => Ok(cancel),
            None => Err(self.does_not_run(id).await),
        }
    }

    /// Keeps a file of one that runs.
    ///
    /// # Errors
    /// [`LabError::Path`], [`LabError::Files`], [`LabError::State`].
    pub async fn add_file(&self, id: i64, path: &str, content: &[u8]) -> Result<(), LabError> {
        let is_part = |part: &str| !["", ".", ".."].contains(&part);
        let is_plain = !path.chars().any(char::is_control) && path.split('/').all(is_part);
        if path.len() > PATH_MAX || !is_plain {
            return Err(LabError::Path);
        }
        let added = self
            .0
            .store
            .add_experiment_file(id, path, content, [FILES_MAX, ALL_MAX]);
        match added.await? {
            Some(true) => Ok(()),
            Some(false) => Err(LabError::Files),
            None => Err(self.does_not_run(id).await),
        }
    }

    /// Ends one that runs, and removes what its agent has left.
    ///
    /// # Errors
    /// [`LabError::State`] for one that does not run, or a state in which nothing ends.
    pub async fn end(&self, id: i64, end: &ExperimentEnd) -> Result<(), LabError> {
        if !end.state.is_over() {
            return Err(LabError::State(
                id,
                "cannot end in a state that is not the end",
            ));
        }
        if !self.0.store.end_experiment(id, end).await? {
            return Err(self.does_not_run(id).await);
        }
        self.have_ended(&[id]);
        self.remove_what_is_left(id).await;
        self.0.bell.notify_one();
        let lab = self.clone();
        // The agent does not wait until a version that has passed is up.
        tokio::spawn(async move { lab.decide_gates().await });
        Ok(())
    }

    async fn does_not_run(&self, id: i64) -> LabError {
        match self.get(id).await {
            Ok(_) => LabError::State(id, "does not run"),
            Err(error) => error,
        }
    }
}
