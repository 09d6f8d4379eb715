//! API tokens and what they allow.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a token allows.
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
    /// Manage tokens.
    Admin,
}

/// A token as the API shows it: never the secret itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TokenView {
    /// Its number.
    pub id: i64,
    /// What its owner called it.
    pub name: String,
    /// What it allows.
    pub rights: Vec<Right>,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
}
