//! Removes the history of deleted functions in batches.
//!
//! Deleting a function leaves a row in `deleted_functions`; this removes what belongs to it and then that row. Nothing
//! is added meanwhile: the history's writes skip functions without a row.

use super::removal::{PIECE, deleted};
use super::{During, Store, StoreError};

impl Store {
    /// Starts [`Self::sweep`] on the current tokio runtime. What it cannot finish is continued at the next start.
    pub(super) fn sweep_in_background(&self) {
        let store = self.clone();
        tokio::spawn(async move {
            match store.sweep().await {
                Ok(()) => {}
                Err(StoreError::Sqlx {
                    source: sqlx::Error::PoolClosed,
                    ..
                }) => {}
                Err(error) => {
                    tracing::warn!(%error, "cannot remove histories of deleted functions; retrying at the next start");
                }
            }
        });
    }

    /// Removes what is left of every deleted function.
    pub(super) async fn sweep(&self) -> Result<(), StoreError> {
        let work = async {
            let deleted = sqlx::query_scalar!(r#"SELECT id AS "id!" FROM deleted_functions"#)
                .fetch_all(self.readers())
                .await?;
            for function in deleted {
                while self.sweep_piece(function).await? {
                    // Gives other writers the write connection before the next batch.
                    tokio::task::yield_now().await;
                }
            }
            Ok(())
        };
        work.await
            .during("remove the history of a deleted function")
    }

    /// Removes one piece; false when the function's history is gone.
    async fn sweep_piece(&self, function: i64) -> Result<bool, sqlx::Error> {
        let mut transaction = self.write().await?;
        let mut removed = deleted::invocations_of(&mut transaction, function).await?;
        if removed == 0 {
            removed = deleted::lines_of(&mut transaction, function).await?;
        }
        if removed == 0 {
            removed = sqlx::query!(
                "DELETE FROM rollups WHERE id IN (SELECT id FROM rollups WHERE function_id = ?1 LIMIT ?2)",
                function,
                PIECE
            )
            .execute(&mut *transaction)
            .await?
            .rows_affected();
        }
        if removed == 0 {
            removed = sqlx::query!(
                "DELETE FROM rollup_quarters WHERE function_id = ?1 AND quarter IN \
                 (SELECT quarter FROM rollup_quarters WHERE function_id = ?1 LIMIT ?2)",
                function,
                PIECE
            )
            .execute(&mut *transaction)
            .await?
            .rows_affected();
        }
        if removed == 0 {
            sqlx::query!("DELETE FROM totals WHERE function_id = ?1", function)
                .execute(&mut *transaction)
                .await?;
            sqlx::query!("DELETE FROM deleted_functions WHERE id = ?1", function)
                .execute(&mut *transaction)
                .await?;
        }
        transaction.commit().await?;
        Ok(removed > 0)
    }
}
