//! One invocation: its identity, the stages of its life, how it ended.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// Identity of an invocation: a UUIDv7, so that ids sort by time.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(transparent)]
#[schema(value_type = String, format = "uuid")]
pub struct InvocationId(pub Uuid);

impl InvocationId {
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
    /// A datagram.
    Udp,
    /// Another function of a chain.
    Chain,
}

/// How an invocation stands, or how it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Waiting for an instance.
    Queued,
    /// With an instance.
    Running,
    /// The handler returned.
    Succeeded,
    /// The handler raised, or returned what cannot be sent.
    Failed,
    /// The handler ran past its deadline and was killed.
    TimedOut,
    /// The instance died, or broke the channel's protocol.
    Crashed,
    /// The instance was killed by its memory limit.
    OutOfMemory,
    /// The client went away before the answer.
    Cancelled,
    /// An asynchronous event that used up its attempts.
    Dead,
}

/// The start kind that the invocation's instance came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum StartKind {
    /// An idle instance was leased.
    Warm,
    /// The template forked.
    Fork,
    /// The template came back from a CRIU image, then forked.
    Restore,
    /// The runtime booted and imported the function.
    Boot,
}

/// Where an invocation's time went, each in µs. A stage that was not reached is 0. The stages follow each other, so together
/// they are at most `total`; what it has more was spent between them, or rounded down. Where `send` ends and `run` ends is
/// stamped by the instance, and checked against the server's clock: stamps that contradict it are ignored, and the server's
/// own instants are used (`hearth_refused_stamps_total` of `/metrics` counts that).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Stages {
    /// Waiting for an instance to be free.
    pub queue: u64,
    /// Starting an instance (0 when warm).
    pub start: u64,
    /// Delivering the request, until the handler is called: writing it, the body included, waking the instance, reading and
    /// decoding it there.
    pub send: u64,
    /// The handler, until it returns or raises; where it streams its answer, until the first piece.
    pub run: u64,
    /// Delivering the answer: encoding it, waking the server, reading it; where it is streamed, all after the first piece.
    pub recv: u64,
    /// From admission to the end of the response.
    pub total: u64,
}

/// An error as Lambda shapes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FunctionError {
    /// Name of the exception's type.
    pub error_type: String,
    /// Its message.
    pub error_message: String,
    /// The traceback, one entry a frame, outermost first.
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

/// One line a function wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LogLine {
    /// When the server read it.
    #[schema(value_type = String, format = DateTime)]
    pub time: Timestamp,
    /// Where it was written.
    pub stream: LogStream,
    /// The line without its newline; bytes that are not UTF-8 are replaced.
    pub text: String,
}

/// A finished invocation: what the history keeps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InvocationRecord {
    /// Its id.
    pub id: InvocationId,
    /// Name of the function.
    pub function: String,
    /// The version that ran.
    #[schema(minimum = 1)]
    pub version: u32,
    /// What caused it.
    pub trigger: Trigger,
    /// How it ended.
    pub status: Status,
    /// The start kind its instance came from; null when it never got one.
    pub start: Option<StartKind>,
    /// When it was admitted.
    #[schema(value_type = String, format = DateTime)]
    pub received_at: Timestamp,
    /// When it ended.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub finished_at: Option<Timestamp>,
    /// Where its time went.
    pub stages_us: Stages,
    /// Bytes of the event.
    pub request_bytes: u64,
    /// Bytes of the result.
    pub response_bytes: u64,
    /// How often it was tried; 1 for synchronous calls.
    pub attempts: u32,
    /// What went wrong, or null.
    pub error: Option<FunctionError>,
    /// What it printed. Empty in lists; filled by `GET /api/v1/invocations/{id}`.
    #[serde(default)]
    pub logs: Vec<LogLine>,
}

/// Which of a function's invocations to show; what is `None` does not matter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InvocationFilter {
    /// How it ended.
    pub status: Option<Status>,
    /// The start kind its instance came from.
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
