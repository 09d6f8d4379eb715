//! An exchange with one instance: owns the lease, the deadline and the record, and writes the history however the
//! invocation ends, even if nobody waits for it any more.

mod answers;
mod ending;
mod failing;
mod streaming;

use std::mem;
use std::time::{Duration, Instant};

use futures_util::{StreamExt, stream};
use hearth_abi::{Kind, RequestHead, monotonic_ns};

use super::bodies::ReadAhead;
use super::invocation::{Invocation, Receipt, micros};
use super::running::Running;
use super::stages::{HostInstants, believed, checked, spans};
use crate::channel::Received;
use crate::engine::InvokeError;
use crate::history::{Captured, History};
use crate::model::{Status, Trigger};
use crate::scheduler::Lease;

/// One invocation under way.
pub(super) struct Exchange {
    history: History,
    /// Gone once the invocation has ended.
    lease: Option<Lease>,
    running: Running,
    invocation: Invocation,
    instants: HostInstants,
    /// When the handler began and ended: known once the response has begun, if the worker's stamps are consistent with
    /// this side's clock.
    handler: Option<(u64, u64)>,
    /// Whether a core was free for spinning when the request was sent.
    free_core: bool,
    deadline: tokio::time::Instant,
    timeout_ms: u32,
    recorded: bool,
    /// The event and result to keep in the history, if any.
    captured: Option<Box<Captured>>,
}

impl Exchange {
    pub(super) fn new(
        history: History,
        running: Running,
        lease: Lease,
        mut invocation: Invocation,
    ) -> Self {
        let deployment = lease.deployment();
        let record = &mut invocation.record;
        record.status = Status::Running;
        record.start = Some(lease.start_kind);
        record.stages_us.queue = micros(lease.queue);
        record.stages_us.start = micros(lease.start);
        let (id, trigger) = (record.id, record.trigger);
        let captured = history.capture(deployment.function.get(), trigger, &invocation.event);
        let timeout_ms = deployment.spec.timeout_ms;
        lease.logs.begin(Some(id));
        let now = Instant::now();
        Self {
            history,
            lease: Some(lease),
            running,
            invocation,
            instants: HostInstants::begun(monotonic_ns()),
            handler: None,
            free_core: false,
            deadline: (now + Duration::from_millis(timeout_ms.into())).into(),
            timeout_ms,
            recorded: false,
            captured,
        }
    }

    /// What the history may keep of event and result.
    fn captured(&mut self) -> Option<&mut Captured> {
        self.captured.as_deref_mut()
    }

    fn lease(&mut self) -> Result<&mut Lease, InvokeError> {
        self.lease
            .as_mut()
            .ok_or_else(|| InvokeError::Internal("the invocation has ended".into()))
    }

    /// What is known of the invocation so far.
    fn receipt(&self) -> Receipt {
        self.invocation.receipt()
    }

    fn count_response(&mut self, bytes: usize) {
        self.invocation.record.response_bytes = bytes as u64;
    }

    /// Writes head and event. Rings the bell, unless there is more for the worker at once.
    async fn send(&mut self, ring: bool) -> Result<(), InvokeError> {
        // Another reference, not another copy: the channel below is borrowed from the same struct.
        let event = self.invocation.event.clone();
        self.invocation.record.request_bytes = event.len() as u64;
        let id = self.invocation.record.id.0;
        // The handler gets the host's own deadline.
        let deadline_us = self
            .invocation
            .at(self.deadline.into_std())
            .as_microsecond();
        self.free_core = self.running.may_look();
        let head = RequestHead::new(
            deadline_us.cast_unsigned(),
            trigger_code(self.invocation.record.trigger),
        )
        .with_free_core(self.free_core)
        .encode(self.invocation.traceparent.as_deref());
        let deadline = self.deadline;
        let channel = &mut self.lease()?.channel;
        let sending = async {
            channel.send(Kind::RequestHead, &id, &head).await?;
            channel.send(Kind::RequestEvent, &id, &event).await
        };
        let result = tokio::time::timeout_at(deadline, sending).await;
        // The bell may hand this processor to the worker: what comes after it is no longer sending.
        let sent = monotonic_ns();
        if ring {
            channel.ring();
        }
        self.settle(result).await?;
        self.instants.sent = Some(sent);
        Ok(())
    }

    /// Streams the HTTP body after the event. It counts towards the invocation's time: the handler is called once it is
    /// complete, with the time that is left.
    async fn send_body(&mut self, mut body: ReadAhead) -> Result<(), InvokeError> {
        self.instants.sent = None;
        let is_whole = body.is_whole();
        let mut rest = body.rest.take().unwrap_or_else(|| stream::empty().boxed());
        let mut ahead = mem::take(&mut body.pieces).into_iter();
        let (id, deadline) = (self.invocation.record.id.0, self.deadline);
        loop {
            let piece = match ahead.next() {
                Some(piece) => Some(piece),
                None => match tokio::time::timeout_at(deadline, rest.next()).await {
                    Ok(None) => None,
                    Ok(Some(Ok(piece))) => Some(piece),
                    Ok(Some(Err(error))) => return Err(InvokeError::body(&error)),
                    Err(_) => {
                        let late = format!(
                            "the body was not whole within the function's timeout of {} ms",
                            self.timeout_ms
                        );
                        return Err(InvokeError::RequestTimeout(late));
                    }
                },
            };
            let bytes = piece.as_deref().unwrap_or_default();
            let more = piece.is_some() && !(is_whole && ahead.len() == 0);
            if let Some(captured) = self.captured() {
                captured.body(bytes);
            }
            let channel = &mut self.lease()?.channel;
            let sending = channel.send_part(Kind::RequestBody, &id, bytes, more);
            let result = tokio::time::timeout_at(deadline, sending).await;
            let sent = monotonic_ns();
            channel.ring();
            self.invocation.record.request_bytes += bytes.len() as u64;
            self.settle(result).await?;
            if !more {
                self.instants.sent = Some(sent);
                break;
            }
        }
        Ok(())
    }

    /// Waits for the next frame, its payload appended to `payload`.
    async fn receive(&mut self, payload: &mut Vec<u8>) -> Result<Received, InvokeError> {
        // A worker that always has one more frame would never let this task sleep: it must neither keep the thread to
        // itself nor escape its deadline, which the timeout below looks at only when there is nothing to receive.
        tokio::task::coop::consume_budget().await;
        if tokio::time::Instant::now() >= self.deadline {
            return Err(self.timed_out()?);
        }
        let (id, deadline, busy) = (self.invocation.record.id.0, self.deadline, self.free_core);
        let channel = &mut self.lease()?.channel;
        let received = tokio::time::timeout_at(deadline, channel.recv(&id, payload, busy)).await;
        let received = self.settle(received).await?;
        self.mark_answered();
        Ok(received)
    }

    /// The next frame if it is there already.
    fn receive_ready(&mut self, payload: &mut Vec<u8>) -> Result<Option<Received>, InvokeError> {
        let id = self.invocation.record.id.0;
        self.lease()?
            .channel
            .try_recv(&id, payload)
            .map_err(|error| InvokeError::Crashed(error.to_string()))
    }

    /// The answer's first frame is here: the worker's stamps belong to this request.
    fn mark_answered(&mut self) {
        if self.instants.answered.is_some() {
            return;
        }
        self.instants.answer(monotonic_ns());
        let stamps = self.lease.as_ref().map(|lease| lease.channel.stamps());
        self.handler = stamps.and_then(|stamps| checked(stamps, self.instants));
        match &self.handler {
            // Whose stamps are nonsense is not asked what it has counted.
            None => self.running.count_refused_stamps(),
            Some((began, ended)) => {
                let counters = self
                    .lease
                    .as_ref()
                    .and_then(|lease| lease.channel.counters());
                let record = &mut self.invocation.record;
                let most = ended.saturating_sub(*began);
                record.counters = counters.map(|counters| believed(counters, most));
            }
        }
        self.write_stages();
    }

    /// The record's stages as far as they have come.
    fn write_stages(&mut self) {
        let spans = spans(self.handler, self.instants);
        let stages = &mut self.invocation.record.stages_us;
        stages.send = micros(spans.send);
        stages.run = micros(spans.run);
        stages.recv = micros(spans.recv);
    }
}

fn trigger_code(trigger: Trigger) -> hearth_abi::Trigger {
    match trigger {
        Trigger::Invoke => hearth_abi::Trigger::Invoke,
        Trigger::Http => hearth_abi::Trigger::Http,
        Trigger::Async => hearth_abi::Trigger::Async,
        Trigger::Schedule => hearth_abi::Trigger::Schedule,
        // Their runtimes need not know: an event is JSON text in each case.
        Trigger::Udp | Trigger::Coap => hearth_abi::Trigger::Udp,
        Trigger::Tcp | Trigger::Mqtt => hearth_abi::Trigger::Tcp,
        Trigger::Chain => hearth_abi::Trigger::Chain,
    }
}
