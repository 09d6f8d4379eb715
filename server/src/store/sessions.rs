//! Sessions of the console: a cookie that identifies a user or a token, stored as a hash.
//!
//! A session ends after [`SESSION_IDLE`](crate::model::SESSION_IDLE) without use, and after [`SESSION_ABSOLUTE`] at the
//! latest. To avoid a write per request, the last use is written only when it is a minute behind.

mod ending;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use ending::remove_surplus;

use super::codes::{StoredCode, timestamp};
use super::tokens::{hash, new_secret};
use super::users::idle_since;
use super::{During, Session, Store, StoreError};
use crate::model::{Caller, Role, SESSION_ABSOLUTE, SessionOwner, SessionView, UserView};

/// How far a session's last use may lag behind, so that looking at pages writes next to nothing.
const SEEN_LAG: Duration = Duration::from_secs(60);
/// Longest address that is kept.
const MAX_ADDRESS_CHARS: usize = 64;
/// Longest `User-Agent` that is kept: browsers send about 150 characters.
const MAX_AGENT_CHARS: usize = 300;

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

/// The two columns of an owner.
fn columns(owner: SessionOwner) -> (Option<i64>, Option<i64>) {
    match owner {
        SessionOwner::User(id) => (Some(id), None),
        SessionOwner::Token(id) => (None, Some(id)),
    }
}

fn cut(text: &str, chars: usize) -> String {
    text.chars().take(chars).collect()
}

impl Store {
    /// Opens a session and returns its cookie, which is stored hashed. `address` and `agent` say where it was opened.
    /// Sessions that have ended are removed. A user's last log-in is noted.
    pub async fn create_session(
        &self,
        owner: SessionOwner,
        address: &str,
        agent: &str,
    ) -> Result<String, StoreError> {
        let now = Timestamp::now().as_microsecond();
        self.create_session_at(owner, address, agent, now).await
    }

    /// [`Self::create_session`] at a given time, in µs since 1970.
    pub(super) async fn create_session_at(
        &self,
        owner: SessionOwner,
        address: &str,
        agent: &str,
        now: i64,
    ) -> Result<String, StoreError> {
        let work = async {
            let cookie = new_secret("")?;
            let csrf = new_secret("")?;
            let hash = hash(&cookie);
            let hash = hash.as_slice();
            let (user, token) = columns(owner);
            let (address, agent) = (cut(address, MAX_ADDRESS_CHARS), cut(agent, MAX_AGENT_CHARS));
            let expires = now.saturating_add(micros(SESSION_ABSOLUTE));
            let mut transaction = self.write().await?;
            remove_surplus(&mut transaction, owner, now).await?;
            sqlx::query!(
                "INSERT INTO sessions (hash, user_id, token_id, csrf, address, agent, created_us, seen_us, expires_us) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7, ?8)",
                hash,
                user,
                token,
                csrf,
                address,
                agent,
                now,
                expires
            )
            .execute(&mut *transaction)
            .await?;
            sqlx::query!(
                "UPDATE users SET last_login_us = ?2 WHERE id = ?1",
                user,
                now
            )
            .execute(&mut *transaction)
            .await?;
            transaction.commit().await?;
            Ok(cookie)
        };
        work.await.during("open a session")
    }

    /// The session with this cookie, unless it has ended, or its user was disabled, or its token expired.
    pub async fn find_session(&self, cookie: &str) -> Result<Option<Session>, StoreError> {
        let now = Timestamp::now().as_microsecond();
        let found = self.find_session_at(cookie, now).await?;
        Ok(found.map(|(session, seen)| {
            if now.saturating_sub(seen) > micros(SEEN_LAG) {
                self.see_in_background(session.id, now);
            }
            session
        }))
    }

    /// [`Self::find_session`] without counting as use: for background requests, such as a stream in an open tab.
    pub async fn peek_session(&self, cookie: &str) -> Result<Option<Session>, StoreError> {
        let now = Timestamp::now().as_microsecond();
        let found = self.find_session_at(cookie, now).await?;
        Ok(found.map(|(session, _)| session))
    }

    /// [`Self::find_session`] at a given time, in µs since 1970, with the time it was last used. Writes nothing.
    pub(super) async fn find_session_at(
        &self,
        cookie: &str,
        now: i64,
    ) -> Result<Option<(Session, i64)>, StoreError> {
        let hash = hash(cookie);
        let hash = hash.as_slice();
        let idle = idle_since(now);
        let work = async {
            let row = sqlx::query!(
                r#"SELECT sessions.id AS "id!", sessions.csrf, sessions.seen_us, sessions.token_id, users.id AS "user_id?",
                   users.name AS "name?", users.role AS "role?", users.created_us AS "created_us?", users.last_login_us
                   FROM sessions LEFT JOIN users ON users.id = sessions.user_id
                   WHERE sessions.hash = ?1 AND sessions.expires_us > ?2 AND sessions.seen_us > ?3
                   AND coalesce(users.disabled, 0) = 0"#,
                hash,
                now,
                idle
            )
            .fetch_optional(self.readers())
            .await?;
            let Some(row) = row else { return Ok(None) };
            let user = (row.user_id, row.name, row.role, row.created_us);
            let caller = match (user, row.token_id) {
                ((Some(id), Some(name), Some(role), Some(created)), _) => {
                    Some(Caller::User(Arc::new(UserView {
                        id,
                        name,
                        role: Role::from_code(role)?,
                        disabled: false,
                        created_at: timestamp(created)?,
                        last_login_at: row.last_login_us.map(timestamp).transpose()?,
                        // Only a list of users counts them.
                        sessions: 0,
                    })))
                }
                (_, Some(token)) => {
                    let token = self.inner.tokens.by_id(token);
                    let now = timestamp(now)?;
                    token.filter(|token| token.is_valid(now)).map(Caller::Token)
                }
                _ => None,
            };
            Ok(caller.map(|caller| {
                let session = Session {
                    id: row.id,
                    caller,
                    csrf: row.csrf,
                };
                (session, row.seen_us)
            }))
        };
        work.await.during("find a session")
    }

    /// Notes that a session is in use, without making its request wait for the disk.
    fn see_in_background(&self, session: i64, now: i64) {
        let store = self.clone();
        tokio::spawn(async move {
            if let Err(error) = store.see_session(session, now).await {
                tracing::warn!(%error, "cannot write a session's last use");
            }
        });
    }

    /// Notes that a session was used at `now`. Of several requests that saw it lag behind, the first writes.
    pub(super) async fn see_session(&self, session: i64, now: i64) -> Result<(), StoreError> {
        let before = now.saturating_sub(micros(SEEN_LAG));
        sqlx::query!(
            "UPDATE sessions SET seen_us = ?2 WHERE id = ?1 AND seen_us < ?3",
            session,
            now,
            before
        )
        .execute(&self.inner.pools.writer)
        .await
        .during("note a session's use")?;
        Ok(())
    }

    /// An owner's open sessions, the last used first.
    pub async fn sessions(&self, owner: SessionOwner) -> Result<Vec<SessionView>, StoreError> {
        let now = Timestamp::now().as_microsecond();
        let idle = idle_since(now);
        let (user, token) = columns(owner);
        let work = async {
            let rows = sqlx::query!(
                r#"SELECT id AS "id!", address, agent, created_us, seen_us, expires_us FROM sessions
                   WHERE user_id IS ?1 AND token_id IS ?2 AND expires_us > ?3 AND seen_us > ?4
                   ORDER BY seen_us DESC, id DESC"#,
                user,
                token,
                now,
                idle
            )
            .fetch_all(self.readers())
            .await?;
            rows.into_iter()
                .map(|row| {
                    Ok(SessionView {
                        id: row.id,
                        address: row.address,
                        agent: row.agent,
                        created_at: timestamp(row.created_us)?,
                        seen_at: timestamp(row.seen_us)?,
                        expires_at: timestamp(row.expires_us)?,
                    })
                })
                .collect::<Result<Vec<SessionView>, sqlx::Error>>()
        };
        work.await.during("list sessions")
    }
}
