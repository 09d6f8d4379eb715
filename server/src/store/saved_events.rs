//! Saved events of the test panel.

use jiff::Timestamp;

use super::{During, Store, StoreError};

/// Most events that are saved for one function: a list to choose from, not an archive.
pub const MAX_SAVED_EVENTS: usize = 100;

/// A saved event without its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedEvent {
    /// Its number.
    pub id: i64,
    /// What it is called.
    pub name: String,
}

/// What became of an event that was to be saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Saving {
    /// It is new, under this number.
    Created(i64),
    /// It took the place of the one with this number, which had its name.
    Replaced(i64),
    /// There are [`MAX_SAVED_EVENTS`] already.
    Full,
}

impl Store {
    /// A function's saved events, oldest first.
    pub async fn saved_events(&self, function: i64) -> Result<Vec<SavedEvent>, StoreError> {
        sqlx::query_as!(
            SavedEvent,
            "SELECT id, name FROM saved_events WHERE function_id = ?1 ORDER BY id",
            function
        )
        .fetch_all(self.readers())
        .await
        .during("list the saved events")
    }

    /// The text of a function's saved event.
    pub async fn saved_event(&self, function: i64, id: i64) -> Result<Option<String>, StoreError> {
        sqlx::query_scalar!(
            "SELECT event FROM saved_events WHERE function_id = ?1 AND id = ?2",
            function,
            id
        )
        .fetch_optional(self.readers())
        .await
        .during("read a saved event")
    }

    /// Saves an event under a name; one that has the name is replaced.
    pub async fn save_event(
        &self,
        function: i64,
        name: &str,
        event: &str,
    ) -> Result<Saving, StoreError> {
        let work = async {
            let now = Timestamp::now().as_microsecond();
            let mut transaction = self.write().await?;
            let known = sqlx::query_scalar!(
                "UPDATE saved_events SET event = ?3, updated_us = ?4 WHERE function_id = ?1 AND name = ?2 RETURNING id",
                function,
                name,
                event,
                now
            )
            .fetch_optional(&mut *transaction)
            .await?;
            if let Some(id) = known {
                transaction.commit().await?;
                return Ok(Saving::Replaced(id));
            }
            let count = sqlx::query_scalar!(
                r#"SELECT count(*) AS "count!: i64" FROM saved_events WHERE function_id = ?1"#,
                function
            )
            .fetch_one(&mut *transaction)
            .await?;
            if usize::try_from(count).unwrap_or(usize::MAX) >= MAX_SAVED_EVENTS {
                return Ok(Saving::Full);
            }
            let id = sqlx::query!(
                "INSERT INTO saved_events (function_id, name, event, created_us, updated_us) VALUES (?1, ?2, ?3, ?4, ?4)",
                function,
                name,
                event,
                now
            )
            .execute(&mut *transaction)
            .await?
            .last_insert_rowid();
            transaction.commit().await?;
            Ok(Saving::Created(id))
        };
        work.await.during("save an event")
    }

    /// Deletes a function's saved event; false if there is none.
    pub async fn delete_saved_event(&self, function: i64, id: i64) -> Result<bool, StoreError> {
        let work = async {
            let mut transaction = self.write().await?;
            let deleted = sqlx::query!(
                "DELETE FROM saved_events WHERE function_id = ?1 AND id = ?2",
                function,
                id
            )
            .execute(&mut *transaction)
            .await?
            .rows_affected();
            transaction.commit().await?;
            Ok(deleted > 0)
        };
        work.await.during("delete a saved event")
    }
}
