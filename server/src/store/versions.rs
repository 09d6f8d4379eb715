//! The versions of functions: added, activated, listed. They are never changed.

use jiff::Timestamp;
use sqlx::SqliteConnection;

use super::codes::{decode_error, narrow, signed, timestamp, unsigned};
use super::functions::select_function;
use super::{During, Store, StoreError, StoredFunction, StoredVersion};
use crate::model::{FunctionSpec, Note};

/// A version as its columns hold it.
pub(super) struct VersionRow {
    pub version: i64,
    pub spec: String,
    pub code_sha256: String,
    pub code_bytes: i64,
    pub created_us: i64,
    pub notes: String,
}

impl VersionRow {
    pub(super) fn read(self) -> Result<StoredVersion, sqlx::Error> {
        Ok(StoredVersion {
            version: narrow("version number", self.version)?,
            spec: serde_json::from_str(&self.spec).map_err(decode_error)?,
            code_sha256: self.code_sha256,
            code_bytes: unsigned(self.code_bytes),
            created_at: timestamp(self.created_us)?,
            notes: serde_json::from_str(&self.notes).map_err(decode_error)?,
        })
    }
}

impl Store {
    /// Adds the next version and makes it active, in one transaction. `RowNotFound` when the function is gone.
    pub async fn add_version(
        &self,
        function: i64,
        spec: &FunctionSpec,
        code_sha256: &str,
        code_bytes: u64,
    ) -> Result<StoredFunction, StoreError> {
        let work = async {
            let mut transaction = self.write().await?;
            let version = next_version(&mut transaction, function).await?;
            let updated = set_active(&mut transaction, function, version).await?;
            if !updated {
                return Err(sqlx::Error::RowNotFound);
            }
            let now = Timestamp::now().as_microsecond();
            insert_version(
                &mut transaction,
                function,
                version,
                spec,
                code_sha256,
                code_bytes,
                now,
            )
            .await?;
            note_active(&mut transaction, function, version).await?;
            let function = select_function(&mut transaction, function).await?;
            transaction.commit().await?;
            Ok(function)
        };
        work.await.during("add a version")
    }

    /// Adds the next version, while the active one stays. `RowNotFound` when the function is gone.
    pub async fn add_idle_version(
        &self,
        function: i64,
        spec: &FunctionSpec,
        code_sha256: &str,
        code_bytes: u64,
    ) -> Result<StoredVersion, StoreError> {
        let work = async {
            let mut transaction = self.write().await?;
            // Fails for a function that is gone.
            select_function(&mut transaction, function).await?;
            let version = next_version(&mut transaction, function).await?;
            let now = Timestamp::now();
            insert_version(
                &mut transaction,
                function,
                version,
                spec,
                code_sha256,
                code_bytes,
                now.as_microsecond(),
            )
            .await?;
            transaction.commit().await?;
            Ok(StoredVersion {
                version: narrow("version number", version)?,
                spec: spec.clone(),
                code_sha256: code_sha256.to_owned(),
                code_bytes,
                created_at: now,
                notes: Vec::new(),
            })
        };
        work.await.during("add a version")
    }

    /// Keeps what a version's author should know of it.
    pub async fn set_notes(
        &self,
        function: i64,
        version: u32,
        notes: &[Note],
    ) -> Result<(), StoreError> {
        let work = async {
            let notes =
                serde_json::to_string(notes).map_err(|error| sqlx::Error::Encode(error.into()))?;
            let mut transaction = self.write().await?;
            sqlx::query!(
                "UPDATE versions SET notes = ?3 WHERE function_id = ?1 AND version = ?2",
                function,
                version,
                notes
            )
            .execute(&mut *transaction)
            .await?;
            transaction.commit().await
        };
        work.await.during("keep a version's notes")
    }

    /// The number the next version of this function will get.
    pub async fn next_version(&self, function: i64) -> Result<u32, StoreError> {
        let work = async {
            let mut reader = self.readers().acquire().await?;
            narrow("version number", next_version(&mut reader, function).await?)
        };
        work.await.during("count the versions")
    }

    /// Makes an existing version active; None when there is no such version.
    pub async fn activate(
        &self,
        function: i64,
        version: u32,
    ) -> Result<Option<StoredFunction>, StoreError> {
        let work = async {
            let mut transaction = self.write().await?;
            let known = sqlx::query_scalar!(
                "SELECT version FROM versions WHERE function_id = ?1 AND version = ?2",
                function,
                version
            )
            .fetch_optional(&mut *transaction)
            .await?;
            let Some(version) = known else {
                return Ok(None);
            };
            set_active(&mut transaction, function, version).await?;
            note_active(&mut transaction, function, version).await?;
            let function = select_function(&mut transaction, function).await?;
            transaction.commit().await?;
            Ok(Some(function))
        };
        work.await.during("activate a version")
    }

    /// A function's versions, newest first.
    pub async fn versions(&self, function: i64) -> Result<Vec<StoredVersion>, StoreError> {
        let rows = sqlx::query_as!(
            VersionRow,
            "SELECT version, spec, code_sha256, code_bytes, created_us, notes FROM versions \
             WHERE function_id = ?1 ORDER BY version DESC",
            function
        )
        .fetch_all(self.readers())
        .await
        .during("list the versions")?;
        rows.into_iter()
            .map(VersionRow::read)
            .collect::<Result<_, _>>()
            .during("read a version")
    }

    /// Hashes of all code packages some version refers to.
    pub async fn code_in_use(&self) -> Result<Vec<String>, StoreError> {
        sqlx::query_scalar!("SELECT DISTINCT code_sha256 FROM versions ORDER BY code_sha256")
            .fetch_all(self.readers())
            .await
            .during("list the code in use")
    }
}

async fn next_version(
    connection: &mut SqliteConnection,
    function: i64,
) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT coalesce(max(version), 0) + 1 AS "next!: i64" FROM versions WHERE function_id = ?1"#,
        function
    )
    .fetch_one(connection)
    .await
}

/// Notes that a version is active now: what a function went back to was active before.
pub(super) async fn note_active(
    connection: &mut SqliteConnection,
    function: i64,
    version: i64,
) -> Result<(), sqlx::Error> {
    let now = Timestamp::now().as_microsecond();
    sqlx::query!(
        "UPDATE versions SET activated_us = ?3 WHERE function_id = ?1 AND version = ?2 AND activated_us IS NULL",
        function,
        version,
        now
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// False when there is no such function.
async fn set_active(
    connection: &mut SqliteConnection,
    function: i64,
    version: i64,
) -> Result<bool, sqlx::Error> {
    let now = Timestamp::now().as_microsecond();
    let changed = sqlx::query!(
        "UPDATE functions SET active_version = ?2, updated_us = max(?3, updated_us) WHERE id = ?1",
        function,
        version,
        now
    )
    .execute(connection)
    .await?;
    Ok(changed.rows_affected() == 1)
}

pub(super) async fn insert_version(
    connection: &mut SqliteConnection,
    function: i64,
    version: i64,
    spec: &FunctionSpec,
    code_sha256: &str,
    code_bytes: u64,
    now: i64,
) -> Result<(), sqlx::Error> {
    let spec = serde_json::to_string(spec).map_err(|error| sqlx::Error::Encode(Box::new(error)))?;
    let code_bytes = signed(code_bytes);
    sqlx::query!(
        "INSERT INTO versions (function_id, version, spec, code_sha256, code_bytes, created_us) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        function,
        version,
        spec,
        code_sha256,
        code_bytes,
        now
    )
    .execute(connection)
    .await?;
    Ok(())
}
