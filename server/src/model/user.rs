//! Users, their roles, and their sessions.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Right;

/// A session that is not used for this long ends: a browser left open on a desk does not stay logged in overnight.
pub const SESSION_IDLE: Duration = Duration::from_secs(2 * 3600);
/// A session ends after this long however much it is used: a working day.
pub const SESSION_ABSOLUTE: Duration = Duration::from_secs(12 * 3600);

/// What a user may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Sees everything that belongs to functions.
    Viewer,
    /// Sees, invokes, deploys, changes and deletes functions.
    Operator,
    /// The same, and manages users, tokens and retention.
    Admin,
}

impl Role {
    /// From the least to the most.
    pub const ALL: [Self; 3] = [Self::Viewer, Self::Operator, Self::Admin];

    /// As the API spells it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Admin => "admin",
        }
    }

    /// The role of this name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }

    /// The rights it has.
    pub const fn rights(self) -> &'static [Right] {
        match self {
            Self::Viewer => &[Right::Read],
            Self::Operator => &[Right::Read, Right::Invoke, Right::Write],
            Self::Admin => &[Right::Read, Right::Invoke, Right::Write, Right::Admin],
        }
    }
}

/// A user as the API shows one: never the password or its hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UserView {
    /// Row id; never reused and not exposed: users are addressed by name.
    #[serde(skip)]
    pub id: i64,
    /// The name to log in with.
    pub name: String,
    /// What the user may do.
    pub role: Role,
    /// Whether log-in is blocked.
    pub disabled: bool,
    /// When the user was created.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// The last log-in, or null.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_login_at: Option<Timestamp>,
    /// Number of open sessions.
    pub sessions: u32,
}

/// What to change about a user; `None` leaves it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserPatch {
    /// Another role.
    pub role: Option<Role>,
    /// Lock out, or let in again.
    pub disabled: Option<bool>,
    /// Another password's hash, a PHC string.
    pub password: Option<String>,
}

/// Whose a session is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SessionOwner {
    /// The user with this id.
    User(i64),
    /// The API token with this id.
    Token(i64),
}

/// A session as its owner sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionView {
    /// Its number.
    pub id: i64,
    /// Where it was opened from.
    pub address: String,
    /// The `User-Agent` it was opened with.
    pub agent: String,
    /// When it was opened.
    pub created_at: Timestamp,
    /// When it was last used, to the minute.
    pub seen_at: Timestamp,
    /// When it ends at the latest.
    pub expires_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_may_what_the_one_below_may() {
        for pair in Role::ALL.windows(2) {
            let (less, more) = (pair[0].rights(), pair[1].rights());
            assert!(less.iter().all(|right| more.contains(right)));
            assert!(less.len() < more.len());
        }
        for role in Role::ALL {
            assert_eq!(Role::by_name(role.name()), Some(role));
        }
        assert_eq!(Role::by_name("root"), None);
        assert_eq!(Role::Viewer.rights(), [Right::Read]);
    }
}
