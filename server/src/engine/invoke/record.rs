//! What an invocation's record starts with, and how its errors are written down.

use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::engine::InvokeError;
use crate::model::{FunctionError, InvocationId, InvocationRecord, Stages, Status, Trigger};
use crate::scheduler::Deployment;

/// The record of an invocation that has just begun.
pub(super) fn new_record(
    deployment: &Deployment,
    id: InvocationId,
    trigger: Trigger,
    received: Instant,
) -> InvocationRecord {
    let received_at = Timestamp::now()
        .saturating_sub(received.elapsed())
        .unwrap_or_default();
    InvocationRecord {
        id,
        function: deployment.spec.name.clone(),
        version: deployment.version,
        trigger,
        status: Status::Running,
        start: None,
        received_at,
        finished_at: None,
        stages_us: Stages::default(),
        request_bytes: 0,
        response_bytes: 0,
        attempts: 1,
        error: None,
        logs: Vec::new(),
    }
}

pub(super) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

pub(super) fn described(error_type: &str, error: &InvokeError) -> FunctionError {
    FunctionError {
        error_type: error_type.into(),
        error_message: error.to_string(),
        stack_trace: Vec::new(),
    }
}
