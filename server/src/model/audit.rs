//! The audit log: who changed what.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What kind of actor a change was made by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ActorKind {
    /// A user, in the console or through the session's cookie.
    User,
    /// An API token.
    Token,
    /// Someone who is not known: a failed log-in, the first set-up.
    Nobody,
}

/// One change, or one attempt to log in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditRecord {
    /// Its number, in the order of the changes.
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
    /// To what: the name of the function, user or token. May be empty.
    pub target: String,
    /// The client's address.
    pub address: String,
    /// Id of the request, also found in the server's log.
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
