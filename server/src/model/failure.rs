//! What is shown of an invocation that did not succeed.

use jiff::Timestamp;

use super::{InvocationId, InvocationRecord, Status};

/// An invocation that did not succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Its id.
    pub id: InvocationId,
    /// Name of its function.
    pub function: String,
    /// How it ended.
    pub status: Status,
    /// Type of the error its handler raised, if that is what it did.
    pub error_type: Option<String>,
    /// When it ended.
    pub at: Timestamp,
}

impl Failure {
    /// The failure of a function's record, if it failed. Requests to chains are on their chain's page.
    #[must_use]
    pub fn of(record: &InvocationRecord) -> Option<Self> {
        let failed = record.status != Status::Succeeded && record.chain.is_none();
        failed.then(|| Self {
            id: record.id,
            function: record.function.clone(),
            status: record.status,
            error_type: record.error.as_ref().map(|error| error.error_type.clone()),
            at: record.finished_at.unwrap_or(record.received_at),
        })
    }
}
