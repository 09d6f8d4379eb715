//! API tokens and what they allow.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a token or a user may do. No right implies another.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Right {
    /// See functions, history, logs, the node.
    Read,
    /// Invoke functions.
    Invoke,
    /// Deploy, change and delete functions.
    Write,
    /// Manage users, tokens and retention, see the audit log.
    Admin,
}

impl Right {
    /// Every right.
    pub const ALL: [Self; 4] = [Self::Read, Self::Invoke, Self::Write, Self::Admin];

    /// As the API spells it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Invoke => "invoke",
            Self::Write => "write",
            Self::Admin => "admin",
        }
    }

    /// The right of this name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|right| right.name() == name)
    }
}

/// A token as the API shows it: never the secret itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TokenView {
    /// Its number.
    pub id: i64,
    /// Name given by its owner.
    pub name: String,
    /// What it allows.
    pub rights: Vec<Right>,
    /// Names of the functions it is scoped to, or null for all.
    pub scope: Option<Vec<String>>,
    /// When it was created.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// When it was last used, accurate to about a second, or null.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_used_at: Option<Timestamp>,
    /// When it expires, or null for never.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub expires_at: Option<Timestamp>,
}

impl TokenView {
    /// Whether it is still valid at `now`.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|end| now < end)
    }
}

/// A token to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewToken {
    /// What it is for.
    pub name: String,
    /// What it allows.
    pub rights: Vec<Right>,
    /// The functions it is limited to; `None` for all.
    pub scope: Option<Vec<String>>,
    /// When it stops being valid.
    pub expires_at: Option<Timestamp>,
}
