//! Threads that versions' imports were seen to leave running.

use std::collections::HashMap;

use super::codes::{decode_error, narrow};
use super::{During, Store, StoreError};
use crate::model::Threads;

impl Store {
    /// The threads of a function's versions, by the version's number; of those that were booted since they are counted.
    pub async fn threads(&self, function: i64) -> Result<HashMap<u32, Threads>, StoreError> {
        let rows = sqlx::query!(
            "SELECT version, threads FROM version_threads WHERE function_id = ?1",
            function
        )
        .fetch_all(self.readers())
        .await
        .during("read the versions' threads")?;
        rows.into_iter()
            .map(|row| {
                let threads = serde_json::from_str(&row.threads).map_err(decode_error)?;
                Ok((narrow("version number", row.version)?, threads))
            })
            .collect::<Result<_, sqlx::Error>>()
            .during("read a version's threads")
    }

    /// Notes what a version's import has left running. Nothing happens when there is no such version.
    pub async fn note_threads(
        &self,
        function: i64,
        version: u32,
        threads: &Threads,
    ) -> Result<(), StoreError> {
        let work = async {
            let text = serde_json::to_string(threads)
                .map_err(|error| sqlx::Error::Encode(Box::new(error)))?;
            let mut transaction = self.write().await?;
            sqlx::query!(
                "INSERT INTO version_threads (function_id, version, threads) \
                 SELECT function_id, version, ?3 FROM versions WHERE function_id = ?1 AND version = ?2 \
                 ON CONFLICT (function_id, version) DO UPDATE SET threads = excluded.threads",
                function,
                version,
                text
            )
            .execute(&mut *transaction)
            .await?;
            transaction.commit().await
        };
        work.await.during("note a version's threads")
    }
}
