//! Functions: created, listed, deleted.

use jiff::Timestamp;
use sqlx::SqliteConnection;

use super::codes::timestamp;
use super::versions::{VersionRow, insert_version, note_active};
use super::{During, Store, StoreError, StoredFunction, to_the_end};
use crate::model::FunctionSpec;

/// A function joined with its active version.
struct FunctionRow {
    id: i64,
    function_created_us: i64,
    updated_us: i64,
    version: i64,
    spec: String,
    code_sha256: String,
    code_bytes: i64,
    created_us: i64,
    notes: String,
}

impl FunctionRow {
    fn read(self) -> Result<StoredFunction, sqlx::Error> {
        Ok(StoredFunction {
            id: self.id,
            created_at: timestamp(self.function_created_us)?,
            updated_at: timestamp(self.updated_us)?,
            active: VersionRow {
                version: self.version,
                spec: self.spec,
                code_sha256: self.code_sha256,
                code_bytes: self.code_bytes,
                created_us: self.created_us,
                notes: self.notes,
            }
            .read()?,
        })
    }
}

impl Store {
    /// All functions by name.
    pub async fn functions(&self) -> Result<Vec<StoredFunction>, StoreError> {
        let rows = sqlx::query_as!(
            FunctionRow,
            "SELECT f.id, f.created_us AS function_created_us, f.updated_us, v.version, v.spec, v.code_sha256, \
                    v.code_bytes, v.created_us, v.notes \
             FROM functions f JOIN versions v ON v.function_id = f.id AND v.version = f.active_version \
             ORDER BY f.name"
        )
        .fetch_all(self.readers())
        .await
        .during("list the functions")?;
        rows.into_iter()
            .map(FunctionRow::read)
            .collect::<Result<_, _>>()
            .during("read a function")
    }

    /// Creates a function with version 1, active. [`StoreError::Exists`] when the name is taken.
    pub async fn create_function(
        &self,
        spec: &FunctionSpec,
        code_sha256: &str,
        code_bytes: u64,
    ) -> Result<StoredFunction, StoreError> {
        match self.insert_function(spec, code_sha256, code_bytes).await {
            Err(sqlx::Error::Database(error)) if error.is_unique_violation() => {
                Err(StoreError::Exists(spec.name.clone()))
            }
            other => other.during("create a function"),
        }
    }

    async fn insert_function(
        &self,
        spec: &FunctionSpec,
        code_sha256: &str,
        code_bytes: u64,
    ) -> Result<StoredFunction, sqlx::Error> {
        let now = Timestamp::now().as_microsecond();
        let mut transaction = self.write().await?;
        let id = sqlx::query!(
            "INSERT INTO functions (name, active_version, created_us, updated_us) VALUES (?1, 1, ?2, ?2)",
            spec.name,
            now
        )
        .execute(&mut *transaction)
        .await?
        .last_insert_rowid();
        insert_version(&mut transaction, id, 1, spec, code_sha256, code_bytes, now).await?;
        note_active(&mut transaction, id, 1).await?;
        let created = select_function(&mut transaction, id).await?;
        transaction.commit().await?;
        Ok(created)
    }

    /// Deletes a function with its versions. Its name is free and its history out of sight when this returns; the
    /// invocations, logs and rollups themselves are removed in the background, in pieces, so that the writer is never
    /// held for long. Nothing happens when there is no such function.
    pub async fn delete_function(&self, function: i64) -> Result<(), StoreError> {
        let store = self.clone();
        let work = async move {
            let mut transaction = store.write().await?;
            let deleted = sqlx::query!("DELETE FROM functions WHERE id = ?1", function)
                .execute(&mut *transaction)
                .await?
                .rows_affected();
            if deleted == 0 {
                return Ok(());
            }
            sqlx::query!("INSERT INTO deleted_functions (id) VALUES (?1)", function)
                .execute(&mut *transaction)
                .await?;
            transaction.commit().await?;
            store.sweep_in_background();
            Ok(())
        };
        to_the_end(async { work.await.during("delete a function") }).await
    }
}

pub(super) async fn select_function(
    connection: &mut SqliteConnection,
    function: i64,
) -> Result<StoredFunction, sqlx::Error> {
    sqlx::query_as!(
        FunctionRow,
        "SELECT f.id, f.created_us AS function_created_us, f.updated_us, v.version, v.spec, v.code_sha256, \
                v.code_bytes, v.created_us, v.notes \
         FROM functions f JOIN versions v ON v.function_id = f.id AND v.version = f.active_version \
         WHERE f.id = ?1",
        function
    )
    .fetch_one(connection)
    .await?
    .read()
}
