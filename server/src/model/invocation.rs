//! One invocation: its identity, the stages of its life, how it ended.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// Id of an invocation: a UUIDv7, so ids sort by time.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(transparent)]
#[schema(value_type = String, format = "uuid")]
pub struct InvocationId(pub Uuid);

impl InvocationId {
    /// No invocation that was admitted at this time or later, in µs since 1970, has a lower id.
    #[must_use]
    pub fn first_of(us: i64) -> Self {
        let ms = us.max(0).unsigned_abs() / 1_000;
        Self(Uuid::from_u128(u128::from(ms) << 80))
    }

    /// A new id, later than any this process made before.
    pub fn new() -> Self {
        Self(Uuid::now_v7())
    }
}

impl Default for InvocationId {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Display for InvocationId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// What caused an invocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Trigger {
    /// `POST /api/v1/functions/{name}/invoke`.
    Invoke,
    /// `/fn/{name}`.
    Http,
    /// A queued event.
    Async,
    /// A schedule.
    Schedule,
    /// A datagram, or several.
    Udp,
    /// A piece of a byte stream.
    Tcp,
    /// Another function of a chain.
    Chain,
    /// A CoAP request.
    Coap,
    /// An MQTT message.
    Mqtt,
}

/// State or outcome of an invocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Waiting for an instance.
    Queued,
    /// Running on an instance.
    Running,
    /// The handler returned.
    Succeeded,
    /// The handler raised, or returned something that cannot be serialised.
    Failed,
    /// The handler ran past its deadline and was killed.
    TimedOut,
    /// The instance died, or broke the channel's protocol.
    Crashed,
    /// The instance was killed by its memory limit.
    OutOfMemory,
    /// The client disconnected before the response.
    Cancelled,
    /// An asynchronous event out of attempts.
    Dead,
}

/// How the invocation's instance was started (start kind).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum StartKind {
    /// An idle instance was reused.
    Warm,
    /// The template forked.
    Fork,
    /// The template was restored from a CRIU image, then forked.
    Restore,
    /// The runtime booted and imported the function.
    Boot,
}

/// Duration of each stage of an invocation, in µs; 0 for stages not reached. Stages do not overlap, so their sum is at
/// most `total`; the rest was spent between stages or lost to rounding. The instance timestamps the ends of `send` and
/// `run`; timestamps that contradict the server's clock are replaced by the server's own (counted in
/// `hearth_refused_stamps_total` of `/metrics`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Stages {
    /// Waiting for a free instance.
    pub queue: u64,
    /// Starting an instance (0 when warm).
    pub start: u64,
    /// Delivering the request to the handler: writing it with its body, waking the instance, reading and decoding it
    /// there.
    pub send: u64,
    /// The handler, until it returns, raises, or streams the first chunk.
    pub run: u64,
    /// Delivering the response: encoding it, waking the server, reading it; for a stream, everything after the first
    /// chunk.
    pub recv: u64,
    /// From admission to the end of the response.
    pub total: u64,
}

/// What was counted while an instance served an invocation, from the request's arrival there until its handler was done (a streamed
/// answer: began), on the thread that runs the handler; of the runtime `provided` in the whole process `bootstrap`. The instance's own
/// figures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InvocationCounters {
    /// Page faults served from memory: first touches and copies on write.
    pub minor_faults: u32,
    /// Page faults that waited for a disk.
    pub major_faults: u32,
    /// Involuntary context switches: the processor was given to somebody else. Null of the runtime `provided`.
    pub preemptions: Option<u32>,
    /// Garbage collections that stopped the function. Null of the runtime `provided`.
    pub pauses: Option<u32>,
    /// How long they took, µs. Null of the runtime `provided`.
    pub paused_us: Option<u64>,
}

/// An error in Lambda's format.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FunctionError {
    /// Name of the exception's type.
    pub error_type: String,
    /// Its message.
    pub error_message: String,
    /// The traceback, one entry per frame, outermost first.
    #[serde(default)]
    pub stack_trace: Vec<String>,
}

/// Which stream a log line was written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogStream {
    /// File descriptor 1.
    Stdout,
    /// File descriptor 2.
    Stderr,
}

/// A line written by a function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogLine {
    /// When the server read the line.
    #[schema(value_type = String, format = DateTime)]
    pub time: Timestamp,
    /// Where it was written.
    pub stream: LogStream,
    /// The line without its newline; bytes that are not UTF-8 are replaced.
    pub text: String,
}

/// A finished invocation, as stored in the history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InvocationRecord {
    /// Its id.
    pub id: InvocationId,
    /// Name of the function; of the chain, for a request to one.
    pub function: String,
    /// The version that ran.
    #[schema(minimum = 1)]
    pub version: u32,
    /// What caused it.
    pub trigger: Trigger,
    /// How it ended.
    pub status: Status,
    /// How its instance was started; null if it never got one.
    pub start: Option<StartKind>,
    /// When it was admitted.
    #[schema(value_type = String, format = DateTime)]
    pub received_at: Timestamp,
    /// When it ended.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub finished_at: Option<Timestamp>,
    /// Time per stage.
    pub stages_us: Stages,
    /// Counters of the instance; null if it had the request for less than 50 µs, gave no answer, or is of a runtime that runs the
    /// handler in another process.
    #[serde(default)]
    pub counters: Option<InvocationCounters>,
    /// Bytes of the event.
    pub request_bytes: u64,
    /// Bytes of the result.
    pub response_bytes: u64,
    /// Number of attempts; 1 for synchronous calls.
    pub attempts: u32,
    /// What went wrong, or null.
    pub error: Option<FunctionError>,
    /// The way of a request through a chain; only for those.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub chain: Option<super::chain::Trace>,
    /// What it printed. Empty in lists; filled by `GET /api/v1/invocations/{id}`.
    #[serde(default)]
    pub logs: Vec<LogLine>,
}

/// Which of a function's invocations to show; what is `None` does not matter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InvocationFilter {
    /// How it ended.
    pub status: Option<Status>,
    /// How its instance was started.
    pub start: Option<StartKind>,
    /// The version that ran.
    pub version: Option<u32>,
    /// What caused it.
    pub trigger: Option<Trigger>,
    /// Shortest total, µs, inclusive.
    pub min_us: Option<u64>,
    /// Longest total, µs, inclusive.
    pub max_us: Option<u64>,
}
