//! Why an experiment cannot be changed, or why calls cannot be simulated.

use super::{ALL_MAX, FILES_MAX, OPEN_MAX, PATH_MAX};
use crate::engine::EngineError;
use crate::store::StoreError;
use hearth_lab::job::JobError;

/// Why an experiment cannot be changed.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// There is none.
    #[error("there is no experiment {0}")]
    NotFound(i64),
    /// It is over, runs, or does not run.
    #[error("experiment {0} {1}")]
    State(i64, &'static str),
    /// Another one runs.
    #[error("another experiment runs, and two would measure each other: try again when it is over")]
    Busy,
    /// The configuration is not one.
    #[error(transparent)]
    Job(#[from] JobError),
    /// What it compares is not there.
    #[error("{0}: there is no function {1:?}")]
    NoFunction(&'static str, String),
    /// Too many wait.
    #[error("{OPEN_MAX} experiments wait or run already")]
    Full,
    /// Calls are being simulated for others.
    #[error("calls are simulated for others: try again in a moment")]
    Simulating,
    /// Its files are too large, or all of them are.
    #[error(
        "the files of an experiment have at most {FILES_MAX} bytes, all experiments together {ALL_MAX}"
    )]
    Files,
    /// So much is kept that there is no room for another one.
    #[error("experiments and their files have {ALL_MAX} bytes: delete some of them")]
    Kept,
    /// A path that no file has.
    #[error("the path of a file: 1 to {PATH_MAX} bytes, no empty part, `.` or `..`")]
    Path,
    /// A function cannot be changed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The store fails.
    #[error(transparent)]
    Store(#[from] StoreError),
}
