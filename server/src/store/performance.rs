//! Warm runs of a function's versions, and experiments that compared them.

use jiff::Timestamp;
use serde_json::Value;

use super::codes::{StoredCode as _, decode_error, narrow, timestamp, unsigned};
use super::{During, Store, StoreError};
use crate::model::{InvocationId, StartKind, Status};

/// Newest versions.
const VERSIONS_MAX: i64 = 50;
/// Newest experiments.
const COMPARISONS_MAX: i64 = 200;

/// When a version was there.
#[derive(Debug, Clone)]
pub(crate) struct VersionTimes {
    pub version: u32,
    pub created_at: Timestamp,
    pub activated_at: Option<Timestamp>,
}

/// An experiment that compared two subjects, as it was configured and what came of it.
#[derive(Debug, Clone)]
pub(crate) struct StoredComparison {
    pub id: i64,
    pub kind: String,
    pub confidence: Option<f64>,
    pub result: Value,
    pub ended_at: Timestamp,
}

impl Store {
    /// A function's newest versions, newest first.
    pub(crate) async fn version_times(
        &self,
        function: i64,
    ) -> Result<Vec<VersionTimes>, StoreError> {
        let work = async {
            let rows = sqlx::query!(
                r#"SELECT version AS "version!: i64", created_us, activated_us FROM versions
                   WHERE function_id = ?1 ORDER BY version DESC LIMIT ?2"#,
                function,
                VERSIONS_MAX
            )
            .fetch_all(self.readers())
            .await?;
            let read = rows.into_iter().map(|row| {
                Ok::<_, sqlx::Error>(VersionTimes {
                    version: narrow("version number", row.version)?,
                    created_at: timestamp(row.created_us)?,
                    activated_at: row.activated_us.map(timestamp).transpose()?,
                })
            });
            read.collect::<Result<Vec<_>, _>>()
        };
        work.await.during("list when versions were active")
    }

    /// `run` of a version's newest warm successes since a time, µs. At most `limit`, of twice as many invocations.
    pub(crate) async fn warm_runs_of(
        &self,
        function: i64,
        version: u32,
        from: Timestamp,
        limit: u32,
    ) -> Result<Vec<u64>, StoreError> {
        let first = InvocationId::first_of(from.as_microsecond());
        let first = first.0.as_bytes().as_slice();
        let (warm, succeeded) = (StartKind::Warm.code(), Status::Succeeded.code());
        let looked_at = limit.saturating_mul(2);
        let runs = sqlx::query_scalar!(
            r#"SELECT run_us AS "run!: i64" FROM (
                   SELECT run_us, start_code, status FROM invocations INDEXED BY invocations_by_version
                   WHERE function_id = ?1 AND version = ?2 AND id >= ?3 ORDER BY id DESC LIMIT ?6)
               WHERE start_code = ?4 AND status = ?5 LIMIT ?7"#,
            function,
            version,
            first,
            warm,
            succeeded,
            looked_at,
            limit
        )
        .fetch_all(self.readers())
        .await
        .during("read a version's runs")?;
        Ok(runs.into_iter().map(unsigned).collect())
    }

    /// The same of all versions between two times: (version, µs), of the newest `limit` invocations.
    pub(crate) async fn warm_runs_between(
        &self,
        function: i64,
        from: Timestamp,
        to: Timestamp,
        limit: u32,
    ) -> Result<Vec<(u32, u64)>, StoreError> {
        let first = InvocationId::first_of(from.as_microsecond());
        let end = InvocationId::first_of(to.as_microsecond());
        let (first, end) = (first.0.as_bytes().as_slice(), end.0.as_bytes().as_slice());
        let (warm, succeeded) = (StartKind::Warm.code(), Status::Succeeded.code());
        let work = async {
            let rows = sqlx::query!(
                r#"SELECT version AS "version!: i64", run_us AS "run!: i64" FROM (
                       SELECT version, run_us, start_code, status FROM invocations
                       WHERE function_id = ?1 AND id >= ?2 AND id < ?3 ORDER BY id DESC LIMIT ?6)
                   WHERE start_code = ?4 AND status = ?5"#,
                function,
                first,
                end,
                warm,
                succeeded,
                limit
            )
            .fetch_all(self.readers())
            .await?;
            let read = rows.into_iter().map(|row| {
                Ok::<_, sqlx::Error>((narrow("version number", row.version)?, unsigned(row.run)))
            });
            read.collect::<Result<Vec<_>, _>>()
        };
        work.await.during("read the runs of a time")
    }

    /// Duets and replays with a result whose first subject is this function, or a version of it: those that ended since `from`, and
    /// began since `made`, when the function was.
    pub(crate) async fn comparisons_of(
        &self,
        function: &str,
        from: Timestamp,
        made: Timestamp,
    ) -> Result<Vec<StoredComparison>, StoreError> {
        let (from, made) = (from.as_microsecond(), made.as_microsecond());
        // Names have no wildcards in them.
        let versions = format!("{function}@%");
        let work = async {
            let rows = sqlx::query!(
                r#"SELECT id AS "id!: i64", kind, CAST(config->>'confidence' AS REAL) AS "confidence: f64",
                   result AS "result!: String", ended_us AS "ended!: i64" FROM experiments
                   WHERE kind IN ('duet', 'replay') AND ended_us >= ?1 AND started_us >= ?2 AND result IS NOT NULL
                   AND (config->>'first' = ?3 OR config->>'first' LIKE ?4)
                   ORDER BY id DESC LIMIT ?5"#,
                from,
                made,
                function,
                versions,
                COMPARISONS_MAX
            )
            .fetch_all(self.readers())
            .await?;
            let read = rows.into_iter().map(|row| {
                Ok::<_, sqlx::Error>(StoredComparison {
                    id: row.id,
                    kind: row.kind,
                    confidence: row.confidence,
                    result: serde_json::from_str(&row.result).map_err(decode_error)?,
                    ended_at: timestamp(row.ended)?,
                })
            });
            read.collect::<Result<Vec<_>, _>>()
        };
        work.await.during("list the comparisons of a function")
    }
}
