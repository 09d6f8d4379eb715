//! Secrets, sealed: what the values are, only [`crate::secrets`] knows.

use jiff::Timestamp;

use super::codes::timestamp;
use super::{During, Store, StoreError};

/// A secret as it is stored.
#[derive(Debug, Clone)]
pub struct StoredSecret {
    /// Its name.
    pub name: String,
    /// Of the value: another one for each.
    pub revision: i64,
    /// The value, sealed.
    pub sealed: Vec<u8>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was given this value.
    pub updated_at: Timestamp,
    /// When it was last used.
    pub last_used_at: Option<Timestamp>,
}

impl Store {
    /// All of them, by name.
    pub async fn secrets(&self) -> Result<Vec<StoredSecret>, StoreError> {
        let work = async {
            sqlx::query!(
                "SELECT name, revision, sealed, created_us, updated_us, last_used_us FROM secrets ORDER BY name"
            )
            .fetch_all(self.readers())
            .await?
            .into_iter()
            .map(|row| {
                Ok(StoredSecret {
                    name: row.name,
                    revision: row.revision,
                    sealed: row.sealed,
                    created_at: timestamp(row.created_us)?,
                    updated_at: timestamp(row.updated_us)?,
                    last_used_at: row.last_used_us.map(timestamp).transpose()?,
                })
            })
            .collect::<Result<Vec<_>, sqlx::Error>>()
        };
        work.await.during("read the secrets")
    }

    /// Stores a secret, in place of the one that has its name.
    pub async fn put_secret(&self, secret: &StoredSecret) -> Result<(), StoreError> {
        let work = async {
            let (created, updated) = (
                secret.created_at.as_microsecond(),
                secret.updated_at.as_microsecond(),
            );
            let mut transaction = self.write().await?;
            sqlx::query!(
                "INSERT INTO secrets (name, revision, sealed, created_us, updated_us) VALUES (?1, ?2, ?3, ?4, ?5) \
                 ON CONFLICT (name) DO UPDATE SET revision = excluded.revision, sealed = excluded.sealed, \
                 updated_us = excluded.updated_us",
                secret.name,
                secret.revision,
                secret.sealed,
                created,
                updated
            )
            .execute(&mut *transaction)
            .await?;
            transaction.commit().await
        };
        work.await.during("store a secret")
    }

    /// Deletes a secret.
    pub async fn delete_secret(&self, name: &str) -> Result<(), StoreError> {
        let work = async {
            let mut transaction = self.write().await?;
            sqlx::query!("DELETE FROM secrets WHERE name = ?1", name)
                .execute(&mut *transaction)
                .await?;
            transaction.commit().await
        };
        work.await.during("delete a secret")
    }

    /// Notes when secrets were last used.
    pub async fn note_secret_uses(&self, uses: &[(String, Timestamp)]) -> Result<(), StoreError> {
        let work = async {
            let mut transaction = self.write().await?;
            for (name, used) in uses {
                let used = used.as_microsecond();
                sqlx::query!(
                    "UPDATE secrets SET last_used_us = ?2 WHERE name = ?1",
                    name,
                    used
                )
                .execute(&mut *transaction)
                .await?;
            }
            transaction.commit().await
        };
        work.await.during("write the last use of secrets")
    }
}
