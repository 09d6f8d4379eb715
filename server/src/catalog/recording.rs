//! What the history keeps of a request to a chain, from its admission on.

use std::time::{Duration, Instant};

use bytes::Bytes;
use jiff::Timestamp;

use super::invoke::{ChainRequest, Target};
use crate::chains::InvokeError;
use crate::engine::Admitted;
use crate::history::{Captured, History};
use crate::model::chain::{Trace, TraceHop};
use crate::model::{
    FunctionError, InvocationId, InvocationRecord, Stages, StartKind, Status, Trigger,
};

/// A request under way: whatever becomes of it, the history gets a record.
pub(super) struct Recording {
    history: History,
    /// Under which the history keeps the chain.
    subject: i64,
    pub(super) record: InvocationRecord,
    /// When it came to this host.
    pub(super) received: Instant,
    /// How long before its admission that was.
    age: Duration,
    event: Bytes,
    captured: Option<Box<Captured>>,
    pub(super) admitted: Admitted,
    is_recorded: bool,
}

impl Recording {
    pub(super) fn begin(target: &Target, request: &ChainRequest<'_>) -> Result<Self, InvokeError> {
        let inner = &target.catalog.inner;
        let admitted = inner.engine.admit().ok_or(InvokeError::ShuttingDown)?;
        let subject = -target.stored.id;
        let event = request.event.clone();
        let (mut received, mut received_at) = (Instant::now(), Timestamp::now());
        let mut age = Duration::ZERO;
        // Neither clock goes back beyond its beginning.
        if let Some(earlier) = received.checked_sub(request.age)
            && let Ok(earlier_at) = received_at.checked_sub(request.age)
        {
            (received, received_at, age) = (earlier, earlier_at, request.age);
        }
        Ok(Self {
            history: inner.history.clone(),
            subject,
            record: InvocationRecord {
                id: InvocationId::new(),
                function: target.spec().name.clone(),
                version: target.version(),
                trigger: request.trigger,
                status: Status::Running,
                start: None,
                received_at,
                finished_at: None,
                stages_us: Stages::default(),
                counters: None,
                request_bytes: event.len() as u64,
                response_bytes: 0,
                attempts: 1,
                error: None,
                chain: Some(Trace {
                    route: request.route.to_owned(),
                    hops: Vec::new(),
                }),
                logs: Vec::new(),
            },
            received,
            age,
            // The event of an HTTP request holds credentials, which only the function's own history knows to take out.
            captured: match request.trigger {
                Trigger::Http => None,
                trigger => inner.history.capture(subject, trigger, &event),
            },
            event,
            admitted,
            is_recorded: false,
        })
    }

    pub(super) fn route(&self) -> &str {
        self.record
            .chain
            .as_ref()
            .map_or("", |trace| trace.route.as_str())
    }

    /// Writes it to the history. Returns the total in µs.
    pub(super) async fn end(
        &mut self,
        result: &Result<Bytes, InvokeError>,
        version: Option<u32>,
        hops: Vec<TraceHop>,
    ) -> u64 {
        if let Some(version) = version {
            self.record.version = version;
        }
        let (status, error) = match result {
            Ok(payload) => {
                self.record.response_bytes = payload.len() as u64;
                if let Some(captured) = &mut self.captured {
                    captured.result(payload);
                }
                (Status::Succeeded, None)
            }
            Err(error) => described(error),
        };
        self.finish(status, error, hops);
        let record = self.record.clone();
        let captured = self.captured.take();
        self.history
            .record_with(self.subject, record, captured)
            .await;
        self.is_recorded = true;
        self.record.stages_us.total
    }

    fn finish(&mut self, status: Status, error: Option<FunctionError>, hops: Vec<TraceHop>) {
        let total = micros(self.received.elapsed());
        let entered = hops.first().map_or(total, |hop| hop.entered_us.min(total));
        let waited = micros(self.age).min(entered);
        let left = hops.iter().filter_map(|hop| hop.left_us).max();
        let left = left.map_or(total, |left| left.clamp(entered, total));
        let record = &mut self.record;
        record.stages_us = match hops.is_empty() {
            // It waited and reached no member.
            true => Stages {
                queue: total,
                total,
                ..Stages::default()
            },
            false => Stages {
                queue: waited,
                send: entered - waited,
                run: left - entered,
                recv: total - left,
                total,
                ..Stages::default()
            },
        };
        record.start = (!hops.is_empty()).then_some(StartKind::Warm);
        record.finished_at = record
            .received_at
            .checked_add(Duration::from_micros(total))
            .ok();
        if let Some(trace) = &mut record.chain {
            trace.hops = hops;
        }
        record.status = status;
        record.error = error;
        if self.captured.is_none() && status != Status::Succeeded && record.trigger != Trigger::Http
        {
            self.captured = self
                .history
                .capture_failed(self.subject, record.trigger, &self.event);
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if self.is_recorded {
            return;
        }
        let error = match self.admitted.is_cut_off() {
            true => described(&InvokeError::ShuttingDown).1,
            false => Some(FunctionError {
                error_type: "Client.Disconnected".into(),
                error_message: "the client went away before the answer".into(),
                stack_trace: Vec::new(),
            }),
        };
        self.finish(Status::Cancelled, error, Vec::new());
        let (history, subject) = (self.history.clone(), self.subject);
        let (record, captured) = (self.record.clone(), self.captured.take());
        let admitted = self.admitted.again();
        tokio::spawn(async move {
            history.record_with(subject, record, captured).await;
            // Counted as running until it is recorded, for the drain.
            drop(admitted);
        });
    }
}

/// A failure as the history keeps it.
fn described(error: &InvokeError) -> (Status, Option<FunctionError>) {
    let (status, error_type) = match error {
        InvokeError::Member { error, .. } => return (Status::Failed, Some(error.clone())),
        InvokeError::Timeout { .. } => (Status::TimedOut, "Chain.Timeout"),
        InvokeError::Crashed { .. } => (Status::Crashed, "Chain.MemberCrashed"),
        InvokeError::Broken { .. } => (Status::Crashed, "Chain.RuleBroken"),
        InvokeError::ResultTooLarge { .. } => (Status::Failed, "Chain.ResultTooLarge"),
        InvokeError::PoolEmpty { .. } => (Status::Failed, "Chain.PoolEmpty"),
        InvokeError::TooLarge { .. } => (Status::Failed, "Chain.PayloadTooLarge"),
        InvokeError::NoRoute(_) => (Status::Failed, "Chain.NoRoute"),
        InvokeError::Unavailable(_) => (Status::Failed, "Chain.Unavailable"),
        InvokeError::ShuttingDown => (Status::Cancelled, "Server.ShuttingDown"),
        InvokeError::Internal(_) => (Status::Failed, "Runtime.Internal"),
    };
    let described = FunctionError {
        error_type: error_type.into(),
        error_message: error.to_string(),
        stack_trace: Vec::new(),
    };
    (status, Some(described))
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
