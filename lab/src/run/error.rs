//! Why an experiment did not come to its end.

use std::io;
use std::path::PathBuf;

use crate::load::PlanError;
use crate::load::process::GeneratorError;
use crate::platform::client::ClientError;
use crate::platform::hearth::HearthError;
use crate::store::StoreError;

/// Why an experiment did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// There is no sub-experiment of this number.
    #[error("there is no sub-experiment {0}; there are {1}, counted from 0")]
    Only(usize, usize),
    /// Files cannot be written.
    #[error("{0}: {1}")]
    File(PathBuf, #[source] io::Error),
    /// The server refuses, or does not answer.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// A function cannot be prepared.
    #[error(transparent)]
    Hearth(#[from] HearthError),
    /// A plan is beyond the load generator's limits.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The load generator failed.
    #[error(transparent)]
    Generator(#[from] GeneratorError),
    /// More requests failed than a tenth.
    #[error("sub-experiment {0}: given up after {1} failed requests")]
    TooManyFaults(usize, u64),
    /// There is no store for storage transfers.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// Functions could not be removed.
    #[error("left behind: {0}")]
    LeftBehind(String),
}
