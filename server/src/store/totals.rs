//! All-time invocation counts per function. See `migrations/0004_rollups.sql`.

use super::codes::unsigned;
use super::{During, Store, StoreError};

/// The row that counts all functions together, deleted ones included. No function has this id.
pub(crate) const ALL: i64 = 0;

impl Store {
    /// Row id, finished invocations and errors among them, of every function and of [`ALL`], as far as they are stored.
    pub(crate) async fn totals(&self) -> Result<Vec<(i64, u64, u64)>, StoreError> {
        let rows = sqlx::query!("SELECT function_id, count, errors FROM totals")
            .fetch_all(self.readers())
            .await
            .during("read the totals")?;
        Ok(rows
            .into_iter()
            .map(|row| (row.function_id, unsigned(row.count), unsigned(row.errors)))
            .collect())
    }
}

/// Adds to a function's total and to that of all.
pub(super) async fn add(
    connection: &mut sqlx::SqliteConnection,
    function: i64,
    count: i64,
    errors: i64,
) -> Result<(), sqlx::Error> {
    sqlx::query!(
        "INSERT INTO totals (function_id, count, errors) VALUES (?1, ?2, ?3), (0, ?2, ?3) \
         ON CONFLICT (function_id) DO UPDATE SET count = count + excluded.count, errors = errors + excluded.errors",
        function,
        count,
        errors
    )
    .execute(connection)
    .await?;
    Ok(())
}
