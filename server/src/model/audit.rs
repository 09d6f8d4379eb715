//! The audit log: who changed what.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The kind of actor that made a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ActorKind {
    /// A user, in the console or with a session cookie.
    User,
    /// An API token.
    Token,
    /// Unknown: a failed log-in or the initial set-up.
    Nobody,
}

/// A change or an attempt to log in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditRecord {
    /// Sequence number.
    pub id: i64,
    /// When.
    #[schema(value_type = String, format = DateTime)]
    pub time: Timestamp,
    /// What kind of actor.
    pub actor_kind: ActorKind,
    /// Name of the user or the token; of a failed log-in, the name that was typed.
    pub actor: String,
    /// What was done, such as `function.create`.
    pub action: String,
    /// Name of the function, user or token it was done to. May be empty.
    pub target: String,
    /// The client's address.
    pub address: String,
    /// Request id, also in the server log.
    pub request_id: String,
    /// Names of changed fields and the like; never a secret. May be empty.
    pub detail: String,
}

/// Which records are wanted; `None` is any. Each matches exactly.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Name of the actor.
    pub actor: Option<String>,
    /// Name of the action.
    pub action: Option<String>,
    /// Name of the target.
    pub target: Option<String>,
}
