//! Why a template did not come up, whose fault it is, and how long further requests get the same error.

use std::time::Duration;

use crate::instance::{BootError, StartError};
use crate::model::{FunctionError, LogLine};

/// After a failed boot, further requests are refused for this long instead of booting again: a function whose import
/// takes seconds to fail must not keep the machine busy.
const RETRY_AFTER_FAILURE: Duration = Duration::from_secs(2);

/// After a shortage on the host. It may end at any moment, and trying is cheap, because it fails early.
const RETRY_AFTER_SHORTAGE: Duration = Duration::from_millis(50);

/// Why there is no template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootFailure {
    /// One line.
    pub reason: String,
    /// Whose fault it is.
    pub cause: Cause,
}

/// Whose fault a failure is, which decides what follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// The host's: nothing is wrong with the function, and it is retried.
    Host,
    /// The code does not import: the exception, and the import's output.
    Import(FunctionError, Vec<LogLine>),
    /// The function's processes ended, or broke the protocol.
    Function,
}

impl BootFailure {
    /// No longer needed.
    pub(super) fn withdrawn() -> Self {
        Self {
            reason: "the start was withdrawn".into(),
            cause: Cause::Host,
        }
    }

    /// How long further requests get the same error.
    pub(super) fn stands_for(&self) -> Duration {
        match self.cause {
            Cause::Host => RETRY_AFTER_SHORTAGE,
            _ => RETRY_AFTER_FAILURE,
        }
    }

    /// Whether it says nothing about the function.
    pub fn is_of_host(&self) -> bool {
        self.cause == Cause::Host
    }
}

impl From<BootError> for BootFailure {
    fn from(error: BootError) -> Self {
        let reason = error.to_string();
        let cause = match error {
            BootError::Import { error, logs } => Cause::Import(error, logs),
            BootError::Host(_) => Cause::Host,
            BootError::Restore(_) => Cause::Function,
        };
        Self { reason, cause }
    }
}

impl From<StartError> for BootFailure {
    fn from(error: StartError) -> Self {
        Self {
            reason: error.to_string(),
            cause: match error {
                StartError::Host(_) => Cause::Host,
                _ => Cause::Function,
            },
        }
    }
}
