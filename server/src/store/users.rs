//! Users: names, roles, and hashes of passwords.
//!
//! Invariant: once there is a user, there is an admin who can log in. Each change is applied and then checked in one
//! transaction, so that concurrent changes cannot break it.

use jiff::Timestamp;
use sqlx::{Sqlite, Transaction};

use super::codes::{StoredCode, timestamp};
use super::{During, Store, StoreError};
use crate::model::{Role, SESSION_IDLE, UserPatch, UserView};

struct UserRow {
    id: i64,
    name: String,
    role: i64,
    disabled: i64,
    created_us: i64,
    last_login_us: Option<i64>,
    sessions: i64,
}

impl UserRow {
    fn read(self) -> Result<UserView, sqlx::Error> {
        Ok(UserView {
            id: self.id,
            name: self.name,
            role: Role::from_code(self.role)?,
            disabled: self.disabled != 0,
            created_at: timestamp(self.created_us)?,
            last_login_at: self.last_login_us.map(timestamp).transpose()?,
            sessions: u32::try_from(self.sessions).unwrap_or(u32::MAX),
        })
    }
}

/// A session that was seen before this, in µs since 1970, has ended.
pub(super) fn idle_since(now: i64) -> i64 {
    now.saturating_sub(i64::try_from(SESSION_IDLE.as_micros()).unwrap_or(i64::MAX))
}

async fn read_one(
    database: impl sqlx::SqliteExecutor<'_>,
    name: &str,
) -> Result<Option<UserView>, sqlx::Error> {
    let now = Timestamp::now().as_microsecond();
    let idle = idle_since(now);
    sqlx::query_as!(
        UserRow,
        r#"SELECT id, name, role, disabled, created_us, last_login_us,
           (SELECT count(*) FROM sessions WHERE user_id = users.id AND expires_us > ?2 AND seen_us > ?3) AS "sessions!: i64"
           FROM users WHERE name = ?1"#,
        name,
        now,
        idle
    )
    .fetch_optional(database)
    .await?
    .map(UserRow::read)
    .transpose()
}

async fn admins(transaction: &mut Transaction<'static, Sqlite>) -> Result<i64, sqlx::Error> {
    let admin = Role::Admin.code();
    sqlx::query_scalar!(
        "SELECT count(*) FROM users WHERE role = ?1 AND disabled = 0",
        admin
    )
    .fetch_one(&mut **transaction)
    .await
}

impl Store {
    /// All users by name.
    pub async fn users(&self) -> Result<Vec<UserView>, StoreError> {
        let work = async {
            let now = Timestamp::now().as_microsecond();
            let idle = idle_since(now);
            sqlx::query_as!(
                UserRow,
                r#"SELECT id, name, role, disabled, created_us, last_login_us,
                   (SELECT count(*) FROM sessions WHERE user_id = users.id AND expires_us > ?1 AND seen_us > ?2)
                   AS "sessions!: i64"
                   FROM users ORDER BY name"#,
                now,
                idle
            )
            .fetch_all(self.readers())
            .await?
            .into_iter()
            .map(UserRow::read)
            .collect::<Result<Vec<UserView>, sqlx::Error>>()
        };
        work.await.during("list the users")
    }

    /// The user of this name.
    pub async fn user(&self, name: &str) -> Result<Option<UserView>, StoreError> {
        read_one(self.readers(), name).await.during("find a user")
    }

    /// Whether there is any user, so that the set-up is done.
    pub async fn has_users(&self) -> Result<bool, StoreError> {
        let found = sqlx::query_scalar!(r#"SELECT EXISTS (SELECT 1 FROM users) AS "any!: i64""#)
            .fetch_one(self.readers())
            .await
            .during("check for users")?;
        Ok(found != 0)
    }

    /// The user of this name with the password's hash.
    pub async fn user_with_password(
        &self,
        name: &str,
    ) -> Result<Option<(UserView, String)>, StoreError> {
        let Some(user) = self.user(name).await? else {
            return Ok(None);
        };
        let password = sqlx::query_scalar!("SELECT password FROM users WHERE id = ?1", user.id)
            .fetch_optional(self.readers())
            .await
            .during("read a password's hash")?;
        Ok(password.map(|password| (user, password)))
    }

    /// Makes a user. `password` is its hash.
    pub async fn create_user(
        &self,
        name: &str,
        role: Role,
        password: &str,
    ) -> Result<UserView, StoreError> {
        const DURING: &str = "create a user";
        let mut transaction = self.write().await.during(DURING)?;
        let user = insert(&mut transaction, name, role, password)
            .await
            .during(DURING)?
            .ok_or_else(|| StoreError::UserExists(name.to_owned()))?;
        if admins(&mut transaction).await.during(DURING)? == 0 {
            return Err(StoreError::NoAdmin);
        }
        transaction.commit().await.during(DURING)?;
        Ok(user)
    }

    /// Makes the first admin; `None` when there is a user already.
    pub async fn create_first_user(
        &self,
        name: &str,
        password: &str,
    ) -> Result<Option<UserView>, StoreError> {
        let work = async {
            let mut transaction = self.write().await?;
            let any = sqlx::query_scalar!(r#"SELECT EXISTS (SELECT 1 FROM users) AS "any!: i64""#)
                .fetch_one(&mut *transaction)
                .await?;
            if any != 0 {
                return Ok(None);
            }
            let user = insert(&mut transaction, name, Role::Admin, password).await?;
            transaction.commit().await?;
            Ok(user)
        };
        work.await.during("create the first user")
    }

    /// Changes a user; `None` if there is no such user. Disabling a user or setting a password ends the user's sessions
    /// except `keep`.
    pub async fn update_user(
        &self,
        name: &str,
        patch: &UserPatch,
        keep: Option<i64>,
    ) -> Result<Option<UserView>, StoreError> {
        const DURING: &str = "change a user";
        let mut transaction = self.write().await.during(DURING)?;
        let changed = change(&mut transaction, name, patch, keep)
            .await
            .during(DURING)?;
        if !changed {
            return Ok(None);
        }
        if admins(&mut transaction).await.during(DURING)? == 0 {
            return Err(StoreError::LastAdmin(name.to_owned()));
        }
        let user = read_one(&mut *transaction, name).await.during(DURING)?;
        transaction.commit().await.during(DURING)?;
        Ok(user)
    }

    /// Deletes a user with all sessions; false if there is no such user.
    pub async fn delete_user(&self, name: &str) -> Result<bool, StoreError> {
        const DURING: &str = "delete a user";
        let mut transaction = self.write().await.during(DURING)?;
        let deleted = sqlx::query!("DELETE FROM users WHERE name = ?1", name)
            .execute(&mut *transaction)
            .await
            .during(DURING)?
            .rows_affected();
        if deleted == 0 {
            return Ok(false);
        }
        if admins(&mut transaction).await.during(DURING)? == 0 {
            return Err(StoreError::LastAdmin(name.to_owned()));
        }
        transaction.commit().await.during(DURING)?;
        Ok(true)
    }
}

/// Inserts a user; `None` when the name is taken.
async fn insert(
    transaction: &mut Transaction<'static, Sqlite>,
    name: &str,
    role: Role,
    password: &str,
) -> Result<Option<UserView>, sqlx::Error> {
    let role = role.code();
    let now = Timestamp::now().as_microsecond();
    let inserted = sqlx::query!(
        "INSERT INTO users (name, role, password, disabled, created_us) VALUES (?1, ?2, ?3, 0, ?4) \
         ON CONFLICT (name) DO NOTHING",
        name,
        role,
        password,
        now
    )
    .execute(&mut **transaction)
    .await?
    .rows_affected();
    match inserted {
        0 => Ok(None),
        _ => read_one(&mut **transaction, name).await,
    }
}

/// Carries a patch out; false when there is no such user.
async fn change(
    transaction: &mut Transaction<'static, Sqlite>,
    name: &str,
    patch: &UserPatch,
    keep: Option<i64>,
) -> Result<bool, sqlx::Error> {
    let role = patch.role.map(StoredCode::code);
    let disabled = patch.disabled.map(i64::from);
    let password = patch.password.as_deref();
    let changed = sqlx::query!(
        "UPDATE users SET role = coalesce(?2, role), disabled = coalesce(?3, disabled), \
         password = coalesce(?4, password) WHERE name = ?1",
        name,
        role,
        disabled,
        password
    )
    .execute(&mut **transaction)
    .await?
    .rows_affected();
    if patch.disabled == Some(true) || patch.password.is_some() {
        sqlx::query!(
            "DELETE FROM sessions WHERE user_id = (SELECT id FROM users WHERE name = ?1) AND id IS NOT ?2",
            name,
            keep
        )
        .execute(&mut **transaction)
        .await?;
    }
    Ok(changed > 0)
}
