//! What can go wrong with a change of a chain.

use crate::engine::EngineError;
use crate::model::{Changed, InvalidField};
use crate::store::StoreError;

/// Everything that can go wrong with a change.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// 412 `precondition_failed`: somebody else changed it first.
    #[error("the chain {0}")]
    Changed(#[from] Changed),
    /// 404 `not_found`: "chain \"x\"", "version 3 of chain \"x\"".
    #[error("there is no {0}")]
    NotFound(String),
    /// 409 `already_exists`.
    #[error(
        "a chain named \"{0}\" already exists; replace its settings with PUT /api/v1/chains/{0}, or delete it first"
    )]
    AlreadyExists(String),
    /// 422 `invalid_field`.
    #[error(transparent)]
    Invalid(#[from] InvalidField),
    /// 409 `function_in_use`: chains could not start without it.
    #[error("the function \"{name}\" is a member of {}; take it out of their settings first", chains.join(", "))]
    FunctionInUse {
        /// Its name.
        name: String,
        /// Chains whose active version has it.
        chains: Vec<String>,
    },
    /// 422 `chain_not_started`: a member's function does not start.
    #[error("{0}")]
    NotStarted(String),
    /// 503 `host_exhausted`: nothing is wrong with the chain; try again.
    #[error("{0}")]
    HostExhausted(String),
    /// As the engine says.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// 503 `shutting_down`.
    #[error("the server is shutting down")]
    ShuttingDown,
    /// 500 `internal`.
    #[error("internal error: {0}")]
    Internal(String),
}

impl From<StoreError> for CatalogError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::ChainExists(name) => Self::AlreadyExists(name),
            other => Self::Internal(other.to_string()),
        }
    }
}
