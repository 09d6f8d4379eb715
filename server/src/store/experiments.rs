//! Experiments of the lab and their files.

mod running;

use jiff::Timestamp;

use super::codes::{StoredCode as _, timestamp, unsigned};
use super::{During, Store, StoreError};
use crate::model::{ExperimentDetail, ExperimentFile, ExperimentState, ExperimentView};

/// An experiment as its columns hold it.
struct Row {
    id: i64,
    kind: String,
    title: String,
    state: i64,
    cancelled_us: Option<i64>,
    error: Option<String>,
    progress: Option<String>,
    result: Option<String>,
    created_by: String,
    created_us: i64,
    started_us: Option<i64>,
    ended_us: Option<i64>,
}

impl Row {
    fn read(self) -> Result<ExperimentView, sqlx::Error> {
        let parsed = |text: Option<String>| text.and_then(|text| serde_json::from_str(&text).ok());
        let state = ExperimentState::from_code(self.state)?;
        Ok(ExperimentView {
            id: self.id,
            kind: self.kind,
            title: self.title,
            cancelling: self.cancelled_us.is_some() && !state.is_over(),
            state,
            error: self.error,
            progress: parsed(self.progress),
            result: parsed(self.result),
            created_by: self.created_by,
            created_at: timestamp(self.created_us)?,
            started_at: self.started_us.map(timestamp).transpose()?,
            ended_at: self.ended_us.map(timestamp).transpose()?,
        })
    }
}

/// A new experiment.
#[derive(Debug, Clone, Copy)]
pub struct NewExperiment<'a> {
    /// Its kind.
    pub kind: &'a str,
    /// What it answers.
    pub title: &'a str,
    /// Its configuration, JSON.
    pub config: &'a str,
    /// Who creates it.
    pub created_by: &'a str,
}

impl Store {
    /// Bytes of all files and configurations.
    pub async fn experiments_bytes(&self) -> Result<u64, StoreError> {
        let bytes = sqlx::query_scalar!(
            r#"SELECT (SELECT coalesce(sum(length(content)), 0) FROM experiment_files)
               + (SELECT coalesce(sum(octet_length(config)), 0) FROM experiments) AS "bytes!: i64""#
        )
        .fetch_one(self.readers())
        .await
        .during("add up what experiments take")?;
        Ok(unsigned(bytes))
    }

    /// Creates an experiment, which waits for an agent. Returns its id.
    pub async fn create_experiment(&self, new: NewExperiment<'_>) -> Result<i64, StoreError> {
        let work = async {
            let now = Timestamp::now().as_microsecond();
            let queued = ExperimentState::Queued.code();
            let mut transaction = self.write().await?;
            let id = sqlx::query!(
                "INSERT INTO experiments (kind, title, config, state, created_by, created_us) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                new.kind,
                new.title,
                new.config,
                queued,
                new.created_by,
                now
            )
            .execute(&mut *transaction)
            .await?
            .last_insert_rowid();
            transaction.commit().await?;
            Ok(id)
        };
        work.await.during("create an experiment")
    }

    /// Creates an experiment that runs from now on. Returns its id; nothing while another one runs.
    pub async fn create_started_experiment(
        &self,
        new: NewExperiment<'_>,
    ) -> Result<Option<i64>, StoreError> {
        let work = async {
            let now = Timestamp::now().as_microsecond();
            let running = ExperimentState::Running.code();
            let mut transaction = self.write().await?;
            let made = sqlx::query!(
                "INSERT INTO experiments (kind, title, config, state, created_by, created_us, started_us, heard_us) \
                 SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?6, ?6 WHERE NOT EXISTS (SELECT 1 FROM experiments WHERE state = ?4)",
                new.kind,
                new.title,
                new.config,
                running,
                new.created_by,
                now
            )
            .execute(&mut *transaction)
            .await?;
            transaction.commit().await?;
            Ok((made.rows_affected() > 0).then(|| made.last_insert_rowid()))
        };
        work.await.during("start an experiment")
    }

    /// Experiments before this id, newest first.
    pub async fn experiments(
        &self,
        before: i64,
        limit: u32,
    ) -> Result<Vec<ExperimentView>, StoreError> {
        let rows = sqlx::query_as!(
            Row,
            "SELECT id, kind, title, state, cancelled_us, error, progress, result, created_by, created_us, started_us, ended_us \
             FROM experiments WHERE id < ?1 ORDER BY id DESC LIMIT ?2",
            before,
            limit
        )
        .fetch_all(self.readers())
        .await
        .during("list the experiments")?;
        rows.into_iter()
            .map(Row::read)
            .collect::<Result<_, _>>()
            .during("read an experiment")
    }

    /// The newest experiments with a result besides this one, those of this kind first, with their titles.
    pub async fn other_experiments(
        &self,
        id: i64,
        kind: &str,
        limit: u32,
    ) -> Result<Vec<(i64, String)>, StoreError> {
        let rows = sqlx::query!(
            r#"SELECT id AS "id!: i64", title FROM experiments WHERE result IS NOT NULL AND id <> ?1
               ORDER BY kind = ?2 DESC, id DESC LIMIT ?3"#,
            id,
            kind,
            limit
        )
        .fetch_all(self.readers())
        .await
        .during("list other experiments")?;
        Ok(rows.into_iter().map(|row| (row.id, row.title)).collect())
    }

    /// How many experiments are not over.
    pub async fn open_experiments(&self) -> Result<i64, StoreError> {
        let (queued, running) = (
            ExperimentState::Queued.code(),
            ExperimentState::Running.code(),
        );
        sqlx::query_scalar!(
            r#"SELECT count(*) AS "count!: i64" FROM experiments WHERE state IN (?1, ?2)"#,
            queued,
            running
        )
        .fetch_one(self.readers())
        .await
        .during("count the experiments")
    }

    /// One experiment with its configuration and its files.
    pub async fn experiment(&self, id: i64) -> Result<Option<ExperimentDetail>, StoreError> {
        let work = async {
            let mut reader = self.readers().acquire().await?;
            let row = sqlx::query_as!(
                Row,
                "SELECT id, kind, title, state, cancelled_us, error, progress, result, created_by, created_us, started_us, ended_us \
                 FROM experiments WHERE id = ?1",
                id
            )
            .fetch_optional(&mut *reader)
            .await?;
            let Some(row) = row else {
                return Ok(None);
            };
            let config = sqlx::query_scalar!("SELECT config FROM experiments WHERE id = ?1", id)
                .fetch_one(&mut *reader)
                .await?;
            let files = sqlx::query!(
                r#"SELECT path, length(content) AS "bytes!: i64" FROM experiment_files WHERE experiment_id = ?1 ORDER BY path"#,
                id
            )
            .fetch_all(&mut *reader)
            .await?;
            Ok(Some(ExperimentDetail {
                view: row.read()?,
                config: serde_json::from_str(&config).unwrap_or_default(),
                files: files
                    .into_iter()
                    .map(|file| ExperimentFile {
                        path: file.path,
                        bytes: unsigned(file.bytes),
                    })
                    .collect(),
            }))
        };
        work.await.during("read an experiment")
    }

    /// The content of a file.
    pub async fn experiment_file(
        &self,
        id: i64,
        path: &str,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        sqlx::query_scalar!(
            "SELECT content FROM experiment_files WHERE experiment_id = ?1 AND path = ?2",
            id,
            path
        )
        .fetch_optional(self.readers())
        .await
        .during("read a file of an experiment")
    }

    /// Asks for an experiment to be cancelled: one that waits is at once, one that runs by its agent. False if it is over.
    pub async fn cancel_experiment(&self, id: i64) -> Result<bool, StoreError> {
        let work = async {
            let now = Timestamp::now().as_microsecond();
            let (queued, running, cancelled) = (
                ExperimentState::Queued.code(),
                ExperimentState::Running.code(),
                ExperimentState::Cancelled.code(),
            );
            let mut transaction = self.write().await?;
            let changed = sqlx::query!(
                "UPDATE experiments SET cancelled_us = coalesce(cancelled_us, ?5), \
                 ended_us = CASE WHEN state = ?2 THEN ?5 ELSE ended_us END, \
                 state = CASE WHEN state = ?2 THEN ?4 ELSE state END \
                 WHERE id = ?1 AND state IN (?2, ?3)",
                id,
                queued,
                running,
                cancelled,
                now
            )
            .execute(&mut *transaction)
            .await?
            .rows_affected();
            transaction.commit().await?;
            Ok(changed > 0)
        };
        work.await.during("cancel an experiment")
    }

    /// Deletes an experiment that does not run; false if there is none or it runs.
    pub async fn delete_experiment(&self, id: i64) -> Result<bool, StoreError> {
        let work = async {
            let running = ExperimentState::Running.code();
            let mut transaction = self.write().await?;
            let deleted = sqlx::query!(
                "DELETE FROM experiments WHERE id = ?1 AND state <> ?2",
                id,
                running
            )
            .execute(&mut *transaction)
            .await?
            .rows_affected();
            transaction.commit().await?;
            Ok(deleted > 0)
        };
        work.await.during("delete an experiment")
    }
}
