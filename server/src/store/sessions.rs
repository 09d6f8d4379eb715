//! Sessions of the console: a cookie that stands for a token, stored hashed like one.

use std::time::Duration;

use jiff::Timestamp;

use super::tokens::{hash, new_secret};
use super::{During, Session, Store, StoreError};

impl Store {
    /// Opens a console session; returns the cookie's secret (stored hashed) and the session. `RowNotFound` when there is
    /// no such token. Removes sessions that have expired.
    pub async fn create_session(
        &self,
        token: i64,
        lifetime: Duration,
    ) -> Result<(String, Session), StoreError> {
        self.create_session_at(token, lifetime, Timestamp::now().as_microsecond())
            .await
    }

    /// [`Self::create_session`] at a given time, in µs since 1970.
    pub(super) async fn create_session_at(
        &self,
        token: i64,
        lifetime: Duration,
        now: i64,
    ) -> Result<(String, Session), StoreError> {
        let work = async {
            let view = self
                .inner
                .tokens
                .by_id(token)
                .ok_or(sqlx::Error::RowNotFound)?;
            let cookie = new_secret("")?;
            let csrf = new_secret("")?;
            let hash = hash(&cookie);
            let hash = hash.as_slice();
            let lifetime = i64::try_from(lifetime.as_micros()).unwrap_or(i64::MAX);
            let expires = now.saturating_add(lifetime);
            let mut transaction = self.write().await?;
            sqlx::query!("DELETE FROM sessions WHERE expires_us <= ?1", now)
                .execute(&mut *transaction)
                .await?;
            sqlx::query!(
                "INSERT INTO sessions (hash, token_id, csrf, expires_us) VALUES (?1, ?2, ?3, ?4)",
                hash,
                token,
                csrf,
                expires
            )
            .execute(&mut *transaction)
            .await?;
            transaction.commit().await?;
            Ok((cookie, Session { token: view, csrf }))
        };
        work.await.during("open a session")
    }

    /// The unexpired session with this cookie.
    pub async fn find_session(&self, cookie: &str) -> Result<Option<Session>, StoreError> {
        self.find_session_at(cookie, Timestamp::now().as_microsecond())
            .await
    }

    /// [`Self::find_session`] at a given time, in µs since 1970.
    pub(super) async fn find_session_at(
        &self,
        cookie: &str,
        now: i64,
    ) -> Result<Option<Session>, StoreError> {
        let hash = hash(cookie);
        let hash = hash.as_slice();
        let row = sqlx::query!(
            "SELECT token_id, csrf FROM sessions WHERE hash = ?1 AND expires_us > ?2",
            hash,
            now
        )
        .fetch_optional(self.readers())
        .await
        .during("find a session")?;
        Ok(row.and_then(|row| {
            let token = self.inner.tokens.by_id(row.token_id)?;
            Some(Session {
                token,
                csrf: row.csrf,
            })
        }))
    }

    /// Ends a session.
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
