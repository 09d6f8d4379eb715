//! Chains and their versions.

use jiff::Timestamp;
use sqlx::SqliteConnection;

use super::codes::{decode_error, narrow, timestamp};
use super::{During, Store, StoreError, to_the_end};
use crate::model::chain::Spec;

/// A chain with its active version.
#[derive(Debug, Clone)]
pub struct StoredChain {
    /// Row id; never reused.
    pub id: i64,
    /// The version in service.
    pub active: StoredChainVersion,
    /// When the chain was created.
    pub created_at: Timestamp,
    /// When its settings or active version last changed.
    pub updated_at: Timestamp,
}

/// An immutable version of a chain.
#[derive(Debug, Clone)]
pub struct StoredChainVersion {
    /// 1, 2, 3 …
    pub version: u32,
    /// Its settings.
    pub spec: Spec,
    /// When it was made.
    pub created_at: Timestamp,
}

/// A chain joined with its active version.
struct ChainRow {
    id: i64,
    chain_created_us: i64,
    updated_us: i64,
    version: i64,
    spec: String,
    created_us: i64,
}

impl ChainRow {
    fn read(self) -> Result<StoredChain, sqlx::Error> {
        Ok(StoredChain {
            id: self.id,
            created_at: timestamp(self.chain_created_us)?,
            updated_at: timestamp(self.updated_us)?,
            active: VersionRow {
                version: self.version,
                spec: self.spec,
                created_us: self.created_us,
            }
            .read()?,
        })
    }
}

/// A version as its columns hold it.
struct VersionRow {
    version: i64,
    spec: String,
    created_us: i64,
}

impl VersionRow {
    fn read(self) -> Result<StoredChainVersion, sqlx::Error> {
        Ok(StoredChainVersion {
            version: narrow("version number", self.version)?,
            spec: serde_json::from_str(&self.spec).map_err(decode_error)?,
            created_at: timestamp(self.created_us)?,
        })
    }
}

impl Store {
    /// All chains by name.
    pub async fn chains(&self) -> Result<Vec<StoredChain>, StoreError> {
        let rows = sqlx::query_as!(
            ChainRow,
            "SELECT c.id, c.created_us AS chain_created_us, c.updated_us, v.version, v.spec, v.created_us \
             FROM chains c JOIN chain_versions v ON v.chain_id = c.id AND v.version = c.active_version \
             ORDER BY c.name"
        )
        .fetch_all(self.readers())
        .await
        .during("list the chains")?;
        rows.into_iter()
            .map(ChainRow::read)
            .collect::<Result<_, _>>()
            .during("read a chain")
    }

    /// Creates a chain with version 1, active. [`StoreError::ChainExists`] when the name is taken.
    pub async fn create_chain(&self, spec: &Spec) -> Result<StoredChain, StoreError> {
        match self.insert_chain(spec).await {
            Err(sqlx::Error::Database(error)) if error.is_unique_violation() => {
                Err(StoreError::ChainExists(spec.name.clone()))
            }
            other => other.during("create a chain"),
        }
    }

    async fn insert_chain(&self, spec: &Spec) -> Result<StoredChain, sqlx::Error> {
        let now = Timestamp::now().as_microsecond();
        let mut transaction = self.write().await?;
        let id = sqlx::query!(
            "INSERT INTO chains (name, active_version, created_us, updated_us) VALUES (?1, 1, ?2, ?2)",
            spec.name,
            now
        )
        .execute(&mut *transaction)
        .await?
        .last_insert_rowid();
        insert_version(&mut transaction, id, 1, spec, now).await?;
        let created = select_chain(&mut transaction, id).await?;
        transaction.commit().await?;
        Ok(created)
    }

    /// Adds the next version and makes it active, in one transaction. `RowNotFound` when the chain is gone.
    pub async fn add_chain_version(
        &self,
        chain: i64,
        spec: &Spec,
    ) -> Result<StoredChain, StoreError> {
        let work = async {
            let mut transaction = self.write().await?;
            let version = next_version(&mut transaction, chain).await?;
            if !set_active(&mut transaction, chain, version).await? {
                return Err(sqlx::Error::RowNotFound);
            }
            let now = Timestamp::now().as_microsecond();
            insert_version(&mut transaction, chain, version, spec, now).await?;
            let chain = select_chain(&mut transaction, chain).await?;
            transaction.commit().await?;
            Ok(chain)
        };
        work.await.during("add a version of a chain")
    }

    /// The number that the next version of this chain will get.
    pub async fn next_chain_version(&self, chain: i64) -> Result<u32, StoreError> {
        let work = async {
            let mut reader = self.readers().acquire().await?;
            narrow("version number", next_version(&mut reader, chain).await?)
        };
        work.await.during("count the versions of a chain")
    }

    /// Makes an existing version active. `RowNotFound` when there is no such version.
    pub async fn activate_chain(
        &self,
        chain: i64,
        version: u32,
    ) -> Result<StoredChain, StoreError> {
        let work = async {
            let mut transaction = self.write().await?;
            if !set_active(&mut transaction, chain, version.into()).await? {
                return Err(sqlx::Error::RowNotFound);
            }
            // A version that is not there breaks the deferred foreign key, at the latest at the commit.
            let chain = select_chain(&mut transaction, chain).await?;
            transaction.commit().await?;
            Ok(chain)
        };
        work.await.during("activate a version of a chain")
    }

    /// A chain's versions, newest first.
    pub async fn chain_versions(&self, chain: i64) -> Result<Vec<StoredChainVersion>, StoreError> {
        let rows = sqlx::query_as!(
            VersionRow,
            "SELECT version, spec, created_us FROM chain_versions WHERE chain_id = ?1 ORDER BY version DESC",
            chain
        )
        .fetch_all(self.readers())
        .await
        .during("list the versions of a chain")?;
        rows.into_iter()
            .map(VersionRow::read)
            .collect::<Result<_, _>>()
            .during("read a version of a chain")
    }

    /// Deletes a chain with its versions. Its name is free and its history out of sight when this returns; the history
    /// itself is removed in the background. Nothing happens when there is no such chain.
    pub async fn delete_chain(&self, chain: i64) -> Result<(), StoreError> {
        let store = self.clone();
        let work = async move {
            let mut transaction = store.write().await?;
            let deleted = sqlx::query!("DELETE FROM chains WHERE id = ?1", chain)
                .execute(&mut *transaction)
                .await?
                .rows_affected();
            if deleted == 0 {
                return Ok(());
            }
            sqlx::query!("INSERT INTO deleted_functions (id) VALUES (-?1)", chain)
                .execute(&mut *transaction)
                .await?;
            transaction.commit().await?;
            store.sweep_in_background();
            Ok(())
        };
        to_the_end(async { work.await.during("delete a chain") }).await
    }
}

async fn select_chain(
    connection: &mut SqliteConnection,
    chain: i64,
) -> Result<StoredChain, sqlx::Error> {
    sqlx::query_as!(
        ChainRow,
        "SELECT c.id, c.created_us AS chain_created_us, c.updated_us, v.version, v.spec, v.created_us \
         FROM chains c JOIN chain_versions v ON v.chain_id = c.id AND v.version = c.active_version \
         WHERE c.id = ?1",
        chain
    )
    .fetch_one(connection)
    .await?
    .read()
}

async fn next_version(connection: &mut SqliteConnection, chain: i64) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar!(
        r#"SELECT coalesce(max(version), 0) + 1 AS "next!: i64" FROM chain_versions WHERE chain_id = ?1"#,
        chain
    )
    .fetch_one(connection)
    .await
}

/// False when there is no such chain.
async fn set_active(
    connection: &mut SqliteConnection,
    chain: i64,
    version: i64,
) -> Result<bool, sqlx::Error> {
    let now = Timestamp::now().as_microsecond();
    let changed = sqlx::query!(
        "UPDATE chains SET active_version = ?2, updated_us = max(?3, updated_us) WHERE id = ?1",
        chain,
        version,
        now
    )
    .execute(connection)
    .await?;
    Ok(changed.rows_affected() == 1)
}

async fn insert_version(
    connection: &mut SqliteConnection,
    chain: i64,
    version: i64,
    spec: &Spec,
    now: i64,
) -> Result<(), sqlx::Error> {
    let spec = serde_json::to_string(spec).map_err(|error| sqlx::Error::Encode(Box::new(error)))?;
    sqlx::query!(
        "INSERT INTO chain_versions (chain_id, version, spec, created_us) VALUES (?1, ?2, ?3, ?4)",
        chain,
        version,
        spec,
        now
    )
    .execute(connection)
    .await?;
    Ok(())
}
