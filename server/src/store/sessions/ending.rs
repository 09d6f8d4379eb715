//! Sessions end: by log-out, by their owner's order, or to make room for one more.

use sqlx::{Sqlite, Transaction};

use super::columns;
use crate::model::SessionOwner;
use crate::store::tokens::hash;
use crate::store::users::idle_since;
use crate::store::{During, Store, StoreError};

/// Sessions of one user or token at a time: a script that logs in and never out must not fill the table. The ones that
/// were not used for longest end first.
const MAX_SESSIONS: i64 = 50;

impl Store {
    /// Ends one of an owner's sessions; false when the owner has none of that number.
    pub async fn end_session(&self, owner: SessionOwner, id: i64) -> Result<bool, StoreError> {
        let (user, token) = columns(owner);
        let ended = sqlx::query!(
            "DELETE FROM sessions WHERE id = ?1 AND user_id IS ?2 AND token_id IS ?3",
            id,
            user,
            token
        )
        .execute(&self.inner.pools.writer)
        .await
        .during("end a session")?
        .rows_affected();
        Ok(ended > 0)
    }

    /// Ends an owner's sessions, all but the one numbered `keep`, and says how many they were.
    pub async fn end_sessions(
        &self,
        owner: SessionOwner,
        keep: Option<i64>,
    ) -> Result<u64, StoreError> {
        let (user, token) = columns(owner);
        let ended = sqlx::query!(
            "DELETE FROM sessions WHERE user_id IS ?1 AND token_id IS ?2 AND id IS NOT ?3",
            user,
            token,
            keep
        )
        .execute(&self.inner.pools.writer)
        .await
        .during("end sessions")?
        .rows_affected();
        Ok(ended)
    }

    /// Ends the session with this cookie.
    pub async fn delete_session(&self, cookie: &str) -> Result<(), StoreError> {
        let hash = hash(cookie);
        let hash = hash.as_slice();
        sqlx::query!("DELETE FROM sessions WHERE hash = ?1", hash)
            .execute(&self.inner.pools.writer)
            .await
            .during("end a session")?;
        Ok(())
    }
}

/// Removes what has ended, and of the owner's others as many as make room for one more.
pub(super) async fn remove_surplus(
    transaction: &mut Transaction<'static, Sqlite>,
    owner: SessionOwner,
    now: i64,
) -> Result<(), sqlx::Error> {
    let idle = idle_since(now);
    sqlx::query!(
        "DELETE FROM sessions WHERE expires_us <= ?1 OR seen_us <= ?2",
        now,
        idle
    )
    .execute(&mut **transaction)
    .await?;
    let (user, token) = columns(owner);
    let keep = MAX_SESSIONS - 1;
    sqlx::query!(
        "DELETE FROM sessions WHERE id IN (SELECT id FROM sessions WHERE user_id IS ?1 AND token_id IS ?2 \
         ORDER BY seen_us DESC, id DESC LIMIT -1 OFFSET ?3)",
        user,
        token,
        keep
    )
    .execute(&mut **transaction)
    .await?;
    Ok(())
}
