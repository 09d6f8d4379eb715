//! Experiments that run: given to an agent, which reports and ends them.

use jiff::Timestamp;
use serde_json::Value;

use crate::model::{ExperimentEnd, ExperimentState};
use crate::store::codes::{StoredCode as _, unsigned};
use crate::store::{During, Store, StoreError};

impl Store {
    /// Gives the oldest experiment that waits to an agent, unless one runs already: they would measure each other. Returns its id and
    /// its configuration.
    pub async fn start_experiment(&self) -> Result<Option<(i64, Value)>, StoreError> {
        let work = async {
            let now = Timestamp::now().as_microsecond();
            let (queued, running) = (
                ExperimentState::Queued.code(),
                ExperimentState::Running.code(),
            );
            let mut transaction = self.write().await?;
            let next = sqlx::query!(
                "UPDATE experiments SET state = ?2, started_us = ?3, heard_us = ?3 \
                 WHERE id = (SELECT min(id) FROM experiments WHERE state = ?1) \
                 AND NOT EXISTS (SELECT 1 FROM experiments WHERE state = ?2) \
                 RETURNING id, config",
                queued,
                running,
                now
            )
            .fetch_optional(&mut *transaction)
            .await?;
            transaction.commit().await?;
            Ok(next.map(|next| {
                (
                    next.id,
                    serde_json::from_str(&next.config).unwrap_or_default(),
                )
            }))
        };
        work.await.during("start an experiment")
    }

    /// Keeps how far a running experiment is. Returns whether it is to be cancelled; nothing if it does not run.
    pub async fn note_progress(
        &self,
        id: i64,
        progress: &Value,
    ) -> Result<Option<bool>, StoreError> {
        let work = async {
            let now = Timestamp::now().as_microsecond();
            let (running, progress) = (ExperimentState::Running.code(), progress.to_string());
            let mut transaction = self.write().await?;
            let cancelled = sqlx::query_scalar!(
                "UPDATE experiments SET progress = ?2, heard_us = ?3 WHERE id = ?1 AND state = ?4 RETURNING cancelled_us",
                id,
                progress,
                now,
                running
            )
            .fetch_optional(&mut *transaction)
            .await?;
            transaction.commit().await?;
            Ok(cancelled.map(|at| at.is_some()))
        };
        work.await.during("keep an experiment's progress")
    }

    /// Adds a file to a running experiment, or replaces it, while its files together, and all experiments with their configurations, stay within
    /// `most` bytes. Nothing if it does not run; otherwise whether there was room.
    pub async fn add_experiment_file(
        &self,
        id: i64,
        path: &str,
        content: &[u8],
        most: [u64; 2],
    ) -> Result<Option<bool>, StoreError> {
        let work = async {
            let now = Timestamp::now().as_microsecond();
            let running = ExperimentState::Running.code();
            let mut transaction = self.write().await?;
            let heard = sqlx::query!(
                "UPDATE experiments SET heard_us = ?2 WHERE id = ?1 AND state = ?3",
                id,
                now,
                running
            )
            .execute(&mut *transaction)
            .await?
            .rows_affected();
            if heard == 0 {
                return Ok(None);
            }
            let others = sqlx::query!(
                r#"SELECT coalesce(sum(length(content)) FILTER (WHERE experiment_id = ?1), 0) AS "own!: i64",
                   coalesce(sum(length(content)), 0) + (SELECT coalesce(sum(octet_length(config)), 0) FROM experiments) AS "all!: i64"
                   FROM experiment_files WHERE NOT (experiment_id = ?1 AND path = ?2)"#,
                id,
                path
            )
            .fetch_one(&mut *transaction)
            .await?;
            let fits = |others: i64, most: u64| unsigned(others) + content.len() as u64 <= most;
            if !fits(others.own, most[0]) || !fits(others.all, most[1]) {
                return Ok(Some(false));
            }
            sqlx::query!(
                "INSERT INTO experiment_files (experiment_id, path, content) VALUES (?1, ?2, ?3) \
                 ON CONFLICT (experiment_id, path) DO UPDATE SET content = excluded.content",
                id,
                path,
                content
            )
            .execute(&mut *transaction)
            .await?;
            transaction.commit().await?;
            Ok(Some(true))
        };
        work.await.during("keep a file of an experiment")
    }

    /// Ends a running experiment; false if it does not run.
    pub async fn end_experiment(&self, id: i64, end: &ExperimentEnd) -> Result<bool, StoreError> {
        let work = async {
            let now = Timestamp::now().as_microsecond();
            let (state, running) = (end.state.code(), ExperimentState::Running.code());
            let result = end.result.as_ref().map(Value::to_string);
            let mut transaction = self.write().await?;
            let ended = sqlx::query!(
                "UPDATE experiments SET state = ?2, error = ?3, result = ?4, progress = NULL, ended_us = ?5 \
                 WHERE id = ?1 AND state = ?6",
                id,
                state,
                end.error,
                result,
                now,
                running
            )
            .execute(&mut *transaction)
            .await?
            .rows_affected();
            transaction.commit().await?;
            Ok(ended > 0)
        };
        work.await.during("end an experiment")
    }

    /// Marks running experiments failed whose agents have not reported since `heard`, or that were cancelled before `cancelled`. Returns
    /// their ids.
    pub async fn fail_silent_experiments(
        &self,
        heard: Timestamp,
        cancelled: Timestamp,
        error: &str,
    ) -> Result<Vec<i64>, StoreError> {
        let work = async {
            let now = Timestamp::now().as_microsecond();
            let (heard, cancelled) = (heard.as_microsecond(), cancelled.as_microsecond());
            let (running, failed) = (
                ExperimentState::Running.code(),
                ExperimentState::Failed.code(),
            );
            let mut transaction = self.write().await?;
            let ids = sqlx::query_scalar!(
                "UPDATE experiments SET state = ?3, error = ?4, progress = NULL, ended_us = ?5 \
                 WHERE state = ?2 AND (heard_us < ?1 OR cancelled_us < ?6) RETURNING id",
                heard,
                running,
                failed,
                error,
                now,
                cancelled
            )
            .fetch_all(&mut *transaction)
            .await?;
            transaction.commit().await?;
            Ok(ids)
        };
        work.await.during("give up experiments")
    }
}
