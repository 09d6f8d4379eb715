//! Settings that can be changed at run time, each as JSON under its name.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::codes::decode_error;
use super::{During, Store, StoreError};

impl Store {
    /// A setting; none when it was never set.
    pub(crate) async fn setting<T: DeserializeOwned>(
        &self,
        name: &str,
    ) -> Result<Option<T>, StoreError> {
        sqlx::query_scalar!("SELECT value FROM settings WHERE name = ?1", name)
            .fetch_optional(self.readers())
            .await
            .during("read a setting")?
            .map(|value| serde_json::from_str(&value))
            .transpose()
            .map_err(decode_error)
            .during("read a setting")
    }

    /// Sets a setting.
    pub(crate) async fn set_setting(
        &self,
        name: &'static str,
        value: &(impl Serialize + Sync),
    ) -> Result<(), StoreError> {
        let value = serde_json::to_string(value).map_err(|error| StoreError::Sqlx {
            operation: "write a setting",
            source: sqlx::Error::Encode(Box::new(error)),
        })?;
        let store = self.clone();
        super::to_the_end(async move {
            let work = async {
                let mut transaction = store.write().await?;
                sqlx::query!(
                    "INSERT INTO settings (name, value) VALUES (?1, ?2) \
                     ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                    name,
                    value
                )
                .execute(&mut *transaction)
                .await?;
                transaction.commit().await
            };
            work.await.during("write a setting")
        })
        .await
    }
}
