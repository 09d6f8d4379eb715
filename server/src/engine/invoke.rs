//! One invocation, from admission to the end of its answer.

mod ahead;
mod bodies;
mod exchange;
mod record;
mod stages;

use std::sync::atomic::Ordering;
use std::time::Instant;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use hearth_abi::Kind;
use jiff::Timestamp;
use serde::Deserialize;

pub(super) use self::bodies::Bodies;
use self::bodies::ReadAhead;
use self::exchange::Exchange;
use super::{Engine, InvokeError, InvokeMeta, InvokeReply, InvokeRequest};
use crate::model::{FunctionError, InvocationId, Stages, Status, Trigger};
use crate::scheduler::{Deployment, LeaseError};

/// Largest result of `invoke`, as Lambda's: it is held in memory whole.
pub const MAX_RESULT: u64 = 6 * 1024 * 1024;
/// Longest result that is checked to be JSON on the thread that received it, about a tenth of a millisecond; a longer one must
/// not hold up others' requests.
const CHECKED_AT_ONCE: usize = 128 * 1024;
/// When to come back after a 429.
const RETRY_AFTER: std::time::Duration = std::time::Duration::from_secs(1);

/// RESPONSE_HEAD, as the runtime writes it.
#[derive(Deserialize)]
struct ResponseHead {
    #[serde(rename = "statusCode")]
    status: u16,
    headers: Vec<(String, String)>,
}

impl Engine {
    /// Runs a function once. Dropping the future, or the stream of a streamed answer, cancels the invocation: its
    /// instance is killed, the history says `cancelled`.
    pub async fn invoke(
        &self,
        request: InvokeRequest,
    ) -> (InvokeMeta, Result<InvokeReply, InvokeError>) {
        let received = Instant::now();
        let id = InvocationId::new();
        let mut meta = InvokeMeta {
            id,
            version: 0,
            start: None,
            stages: Stages::default(),
        };
        if self.inner.draining.load(Ordering::Acquire) {
            return (meta, Err(InvokeError::ShuttingDown));
        }
        let Some(function) = self.inner.registry.get(&request.function) else {
            return (
                meta,
                Err(InvokeError::NotFound(request.function.to_string())),
            );
        };
        let running = Running::begin(self);
        let body = match self.inner.bodies.read_ahead(request.body).await {
            Ok(body) => body,
            Err(error) => return (meta, Err(error)),
        };
        let (deployment, lease) = function.lease(received).await;
        meta.version = deployment.version;
        let lease = match lease {
            Ok(lease) => lease,
            Err(LeaseError::Retired) => {
                return (
                    meta,
                    Err(InvokeError::NotFound(request.function.to_string())),
                );
            }
            Err(LeaseError::Full { max, queued }) => {
                let refusal = InvokeError::TooManyRequests {
                    max_concurrency: max,
                    queued,
                    retry_after: RETRY_AFTER,
                };
                return (meta, Err(refusal));
            }
            Err(LeaseError::Boot(failure)) => {
                let reason = failure.reason.clone();
                let error = if running.is_cut_off() {
                    InvokeError::ShuttingDown
                } else if failure.is_of_host() {
                    InvokeError::HostExhausted(reason)
                } else {
                    InvokeError::Unavailable(reason)
                };
                meta.stages = self
                    .record_unserved(&deployment, id, request.trigger, received, &error)
                    .await;
                return (meta, Err(error));
            }
        };
        meta.start = Some(lease.rung);
        let exchange = Exchange::new(
            self.inner.history.clone(),
            running,
            lease,
            received,
            id,
            request.trigger,
            request.event,
        );
        let traceparent = request.traceparent.as_deref();
        match request.trigger {
            Trigger::Http => exchange.http(meta, traceparent, body).await,
            _ => exchange.invoke(meta, traceparent).await,
        }
    }
}

impl Engine {
    /// An admitted invocation that no instance could be started for is part of the history, too.
    async fn record_unserved(
        &self,
        deployment: &Deployment,
        id: InvocationId,
        trigger: Trigger,
        received: Instant,
        error: &InvokeError,
    ) -> Stages {
        let mut record = record::new_record(deployment, id, trigger, received);
        let waited = record::micros(received.elapsed());
        record.stages_us = Stages {
            queue: waited,
            total: waited,
            ..Stages::default()
        };
        let (status, error_type) = match error {
            InvokeError::ShuttingDown => (Status::Cancelled, "Server.ShuttingDown"),
            InvokeError::HostExhausted(_) => (Status::Failed, "Host.Exhausted"),
            _ => (Status::Failed, "Runtime.Unavailable"),
        };
        record.status = status;
        record.error = Some(record::described(error_type, error));
        record.finished_at = Some(Timestamp::now());
        let stages = record.stages_us;
        self.inner
            .history
            .record(deployment.function.get(), record)
            .await;
        stages
    }
}

/// Counts a running invocation, for the drain.
pub(super) struct Running(Engine);

impl Running {
    fn begin(engine: &Engine) -> Self {
        engine.inner.resources.traffic.begin();
        Self(engine.clone())
    }

    /// One more count of the same.
    fn again(&self) -> Self {
        Self::begin(&self.0)
    }

    /// Whether the server ends what still runs.
    fn is_cut_off(&self) -> bool {
        self.0.inner.cut_off.load(Ordering::Acquire)
    }

    /// Whether there is a core for each running invocation's instance and one for its thread here, and no other work of
    /// the host waits: then nobody waits for the side that looks before it sleeps. An invocation whose body is still coming
    /// needs neither.
    fn has_spare_core(&self) -> bool {
        let inner = &self.0.inner;
        let running = inner.resources.traffic.running();
        let at_work = running.saturating_sub(inner.bodies.awaited() as u64);
        !inner.resources.busy_poll.is_zero()
            && at_work * 2 <= u64::from(inner.resources.cores)
            && !inner.pressure.is_high()
    }

    /// A worker's stamps contradicted this side's clock.
    fn count_refused_stamps(&self) {
        self.0.inner.refused_stamps.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.inner.resources.traffic.end();
    }
}

impl Exchange {
    /// Event in, result out.
    async fn invoke(
        mut self,
        mut meta: InvokeMeta,
        traceparent: Option<&str>,
    ) -> (InvokeMeta, Result<InvokeReply, InvokeError>) {
        let answer = async {
            self.send(traceparent).await?;
            let mut result = Vec::new();
            loop {
                let received = self.receive(&mut result).await?;
                match received.kind {
                    Kind::ResponseError => return Err(self.error(result, received.more).await),
                    Kind::ResponseResult => {}
                    other => return Err(self.out_of_turn(other)),
                }
                self.count_response(result.len());
                if result.len() as u64 > MAX_RESULT {
                    return Err(self.too_large(received.more).await);
                }
                if !received.more {
                    return Ok(result);
                }
            }
        }
        .await;
        let answer = match answer {
            Ok(result) => checked_result(result).await,
            error => error,
        };
        if let (Ok(result), Some(captured)) = (&answer, self.captured()) {
            captured.result(result);
        }
        let answer = self
            .conclude(answer)
            .await
            .map(|result| InvokeReply::Json(result.into()));
        meta.stages = self.stages();
        (meta, answer)
    }

    /// HTTP request in, response out as it comes.
    async fn http(
        mut self,
        mut meta: InvokeMeta,
        traceparent: Option<&str>,
        body: ReadAhead,
    ) -> (InvokeMeta, Result<InvokeReply, InvokeError>) {
        let head = async {
            self.send(traceparent).await?;
            self.send_body(body).await?;
            let mut head = Vec::new();
            let received = self.receive(&mut head).await?;
            match received.kind {
                Kind::ResponseError => Err(self.error(head, received.more).await),
                Kind::ResponseHead if !received.more => {
                    if let Some(captured) = self.captured() {
                        captured.head(&head);
                    }
                    serde_json::from_slice::<ResponseHead>(&head).map_err(|error| {
                        self.broken(format!("its response head makes no sense: {error}"))
                    })
                }
                other => Err(self.out_of_turn(other)),
            }
        }
        .await;
        let ResponseHead { status, headers } = match head {
            Ok(head) => head,
            Err(error) => {
                let answer = self.conclude::<()>(Err(error)).await;
                meta.stages = self.stages();
                return (meta, answer.map(|()| InvokeReply::Json(Bytes::new())));
            }
        };
        // Most bodies are whole already: then the stage times are final and go into the headers.
        let mut first = Vec::new();
        let body = match self.receive_ready(&mut first) {
            Ok(Some(received)) if received.kind == Kind::ResponseBody && !received.more => {
                self.count_response(first.len());
                if let Some(captured) = self.captured() {
                    captured.result(&first);
                }
                let done = self.conclude(Ok(first)).await;
                meta.stages = self.stages();
                stream::once(async move { done.map(Bytes::from).map_err(std::io::Error::other) })
                    .boxed()
            }
            ready => {
                meta.stages = self.stages();
                let started = ready.map(|received| received.map(|received| (received, first)));
                self.into_body(started)
            }
        };
        (
            meta,
            Ok(InvokeReply::Http {
                status,
                headers,
                body,
            }),
        )
    }
}

/// A result goes out as `application/json`, so it has to be that, whatever the worker says.
async fn checked_result(result: Vec<u8>) -> Result<Vec<u8>, InvokeError> {
    let (result, checked) = if result.len() <= CHECKED_AT_ONCE {
        let checked = check_json(&result);
        (result, checked)
    } else {
        let check = move || {
            let checked = check_json(&result);
            (result, checked)
        };
        tokio::task::spawn_blocking(check)
            .await
            .map_err(|error| InvokeError::Internal(error.to_string()))?
    };
    match checked {
        Ok(()) => Ok(result),
        Err(why) => Err(InvokeError::InvalidResult(why)),
    }
}

fn check_json(text: &[u8]) -> Result<(), String> {
    let text = std::str::from_utf8(text).map_err(|error| error.to_string())?;
    serde_json::from_str::<serde::de::IgnoredAny>(text)
        .map(drop)
        .map_err(|error| error.to_string())
}

/// Parses RESPONSE_ERROR; a runtime that sends nonsense still ends in one clear error.
fn parse_error(bytes: &[u8]) -> FunctionError {
    serde_json::from_slice(bytes).unwrap_or_else(|error| FunctionError {
        error_type: "Runtime.ProtocolError".into(),
        error_message: format!("the runtime reported an error that makes no sense: {error}"),
        stack_trace: Vec::new(),
    })
}
