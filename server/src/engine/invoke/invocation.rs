//! The value that travels: made by who asks, filled in on its way, and at its end handed to the history.
//!
//! ```text
//! HTTP ─▶ Invocation ─▶ Engine::invoke ─▶ Exchange (has the lease) ─▶ History::record_with (its record)
//!                                │
//!                                └─▶ Receipt: what the answer's headers say
//! ```

use std::time::{Duration, Instant};

use bytes::Bytes;
use jiff::Timestamp;

use super::bodies::Body;
use crate::engine::InvokeError;
use crate::engine::apart::VersionApart;
use crate::model::{
    FunctionError, InvocationId, InvocationRecord, Stages, StartKind, Status, Trigger,
};

/// One invocation, from the request to the history.
pub struct Invocation {
    /// What the history will keep of it.
    pub(super) record: InvocationRecord,
    /// The version that is to run, apart from its function's own requests; none for the active one.
    pub(super) version: Option<VersionApart>,
    /// When it was asked for.
    pub(super) received: Instant,
    /// The event as JSON text.
    pub(super) event: Bytes,
    /// The raw HTTP body, until it is read.
    pub(super) body: Option<Body>,
    pub(super) traceparent: Option<String>,
}

impl Invocation {
    /// Asks for a run of `function`, from now on. `event` is JSON text (checked to be JSON); for [`Trigger::Http`] the
    /// payload-2.0 object without `body` and `isBase64Encoded`, which the runtime adds from the body.
    #[must_use]
    pub fn new(function: &str, trigger: Trigger, event: Bytes) -> Self {
        Self {
            record: InvocationRecord {
                id: InvocationId::new(),
                function: function.to_owned(),
                version: 0,
                trigger,
                status: Status::Queued,
                start: None,
                received_at: Timestamp::now(),
                finished_at: None,
                stages_us: Stages::default(),
                counters: None,
                request_bytes: 0,
                response_bytes: 0,
                attempts: 1,
                error: None,
                chain: None,
                logs: Vec::new(),
            },
            version: None,
            received: Instant::now(),
            event,
            body: None,
            traceparent: None,
        }
    }

    /// It was asked for this long ago already: its time line begins when the kernel saw it.
    #[must_use]
    pub fn asked_before(mut self, age: Duration) -> Self {
        // Neither clock goes back beyond its beginning.
        if let Some(received) = self.received.checked_sub(age)
            && let Ok(received_at) = self.record.received_at.checked_sub(age)
        {
            self.received = received;
            self.record.received_at = received_at;
        }
        self
    }

    /// Adds the raw HTTP body; [`Trigger::Http`] only.
    #[must_use]
    pub fn with_body(mut self, body: Body) -> Self {
        self.body = Some(body);
        self
    }

    /// Asks for this version, whether it is active or not, by a template of it: one that no call has had is booted.
    #[must_use]
    pub fn of_version(mut self, version: VersionApart) -> Self {
        self.version = Some(version);
        self
    }

    /// Adds the request's W3C `traceparent`, already checked.
    #[must_use]
    pub fn with_traceparent(mut self, traceparent: Option<&str>) -> Self {
        self.traceparent = traceparent.map(str::to_owned);
        self
    }

    /// What is known of it so far.
    pub(super) fn receipt(&self) -> Receipt {
        Receipt {
            id: self.record.id,
            version: self.record.version,
            start: self.record.start,
            stages: self.record.stages_us,
        }
    }

    /// The time of day at an instant: the times that one invocation shows agree, whatever is done to the clock meanwhile.
    pub(super) fn at(&self, instant: Instant) -> Timestamp {
        let received_at = self.record.received_at;
        received_at
            .saturating_add(instant - self.received)
            .unwrap_or(received_at)
    }
}

/// What is known of an invocation when its answer starts.
#[derive(Debug, Clone, Copy)]
pub struct Receipt {
    /// Its id.
    pub id: InvocationId,
    /// The version that ran, or 0 when there is no such function.
    pub version: u32,
    /// The start kind its instance came from.
    pub start: Option<StartKind>,
    /// Stage times so far; complete unless the answer streams.
    pub stages: Stages,
}

pub(super) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// An error as the history keeps it.
pub(super) fn described(error_type: &str, error: &InvokeError) -> FunctionError {
    FunctionError {
        error_type: error_type.into(),
        error_message: error.to_string(),
        stack_trace: Vec::new(),
    }
}
