//! What goes into a live chain and what comes out of it.

use std::time::{Duration, Instant};

use bytes::Bytes;
use jiff::Timestamp;

use crate::model::{FunctionError, InvalidField, InvocationId};

/// One request to a route of a chain.
#[derive(Debug, Clone)]
pub struct Request {
    /// Its id; members' log lines carry it too.
    pub id: InvocationId,
    /// The first member's event, as JSON text.
    pub payload: Bytes,
    /// The client's W3C `traceparent`, already checked.
    pub traceparent: Option<String>,
    /// When it was admitted; hops are timed from here.
    pub received: Instant,
    /// When it is given up, at the latest; the chain's time limit may end it earlier.
    pub deadline: Instant,
}

/// One stay of a request at a member, in ns after its admission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop {
    /// Number of the member; see [`crate::model::chain::Spec::member_name`].
    pub member: u8,
    /// Number of the instance.
    pub instance: u16,
    /// Whether another member called it; otherwise it was next on the route.
    pub is_call: bool,
    /// When it had the payload.
    pub entered_ns: u64,
    /// When it passed the payload on; none if it never did.
    pub left_ns: Option<u64>,
}

/// What became of a request.
#[derive(Debug)]
pub struct Outcome {
    /// The last member's result as JSON text, or why there is none.
    pub result: Result<Bytes, InvokeError>,
    /// The members that it reached, in that order.
    pub hops: Vec<Hop>,
    /// The version of the chain that it passed through; none if it reached none.
    pub version: Option<u32>,
}

/// A version that cannot be put in service; the former one goes on.
#[derive(Debug, thiserror::Error)]
pub enum ActivateError {
    /// A member's function does not start: its code no longer imports, its process ended.
    #[error("member \"{member}\" cannot be started: {reason}")]
    Member {
        /// Name of the member.
        member: String,
        /// Why.
        reason: String,
    },
    /// The host cannot carry descriptors in this way.
    #[error("this host has no transport \"{transport}\": {reason}")]
    Transport {
        /// The transport.
        transport: &'static str,
        /// What is missing.
        reason: String,
    },
    /// The cores that it asks for cannot be its own.
    #[error(transparent)]
    Cores(InvalidField),
    /// The host has no memory, descriptors, processes … to give.
    #[error("the chain cannot be started now: {0}")]
    HostExhausted(String),
    /// A bug, or a broken host.
    #[error("internal error: {0}")]
    Internal(String),
}

/// Everything a request to a chain can end with except a result.
#[derive(Debug, Clone, thiserror::Error)]
pub enum InvokeError {
    /// No version of the chain is in service.
    #[error("the chain is not in service: {0}")]
    Unavailable(String),
    /// The chain has no such route.
    #[error("the chain has no route \"{0}\"")]
    NoRoute(String),
    /// The pool has no free block, or no run of free blocks that is long enough.
    #[error(
        "the chain's pool has no free block, or none that is followed by as many as the payload needs"
    )]
    PoolEmpty {
        /// When to retry.
        retry_after: Duration,
    },
    /// The payload is larger than the chain allows.
    #[error("the payload has {bytes} bytes, and may have {limit} in this chain")]
    TooLarge {
        /// Bytes of the payload.
        bytes: u64,
        /// Bytes that a payload may have.
        limit: u64,
    },
    /// The deadline passed.
    #[error("the chain did not answer within {timeout_ms} ms{}", reached(.hop))]
    Timeout {
        /// The chain's limit.
        timeout_ms: u32,
        /// The position in the route and the member there that had the request, if it reached one.
        hop: Option<(usize, String)>,
    },
    /// A member's handler failed.
    #[error("member \"{member}\" failed: {}: {}", error.error_type, error.error_message)]
    Member {
        /// Name of the member.
        member: String,
        /// As Lambda shapes it.
        error: FunctionError,
    },
    /// A member's process ended while it had the request.
    #[error("the process of member \"{member}\" died before it passed the request on: {reason}")]
    Crashed {
        /// Name of the member.
        member: String,
        /// How it ended.
        reason: String,
    },
    /// A member broke the chain's rules: an answer that was not asked of it, a descriptor of another block.
    #[error("member \"{member}\" broke the chain's rules: {reason}")]
    Broken {
        /// Name of the member.
        member: String,
        /// What it did.
        reason: String,
    },
    /// A member's result is larger than the chain allows.
    #[error(
        "the result of member \"{member}\" is larger than payloads may be in this chain: {limit} bytes"
    )]
    ResultTooLarge {
        /// Name of the member.
        member: String,
        /// Bytes that a payload may have.
        limit: u64,
    },
    /// The server is draining.
    #[error("the server is shutting down")]
    ShuttingDown,
    /// A bug.
    #[error("internal error: {0}")]
    Internal(String),
}

fn reached(hop: &Option<(usize, String)>) -> String {
    match hop {
        Some((at, member)) => format!("; it had reached hop {at}, member \"{member}\""),
        None => String::new(),
    }
}

/// What a live chain does now.
#[derive(Debug, Clone, PartialEq)]
pub struct Status {
    /// Number of the version in service.
    pub version: u32,
    /// The transport in use: "ring", "poll" or "sk_msg".
    pub transport: &'static str,
    /// The pool.
    pub pool: PoolStatus,
    /// Requests under way.
    pub requests: u64,
    /// Its members, in the order of their numbers.
    pub members: Vec<MemberStatus>,
    /// Each pair of which one may send to the other; number 0 is the gateway.
    pub edges: Vec<EdgeStatus>,
    /// Its instances, by the kernel's count; none where it does not carry the descriptors.
    pub instances: Vec<InstanceStatus>,
    /// What was refused, the latest last.
    pub refusals: Vec<RefusalStatus>,
}

/// What an instance did, by the kernel's count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InstanceStatus {
    /// Number of its member.
    pub member: u8,
    /// Its number.
    pub instance: u16,
    /// What it did.
    pub work: Work,
}

/// Requests and calls of an instance or a member.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Work {
    /// Those that were sent to it.
    pub received: u64,
    /// Those of them that it passed on.
    pub handled: u64,
    /// From the one to the other, of all that were handled, in ns.
    pub busy_ns: u64,
    /// Those that it has in hand, or that wait for it.
    pub in_hand: u64,
    /// Descriptors of all kinds that it sent and that were refused.
    pub refused: u64,
}

impl Work {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            received: self.received + other.received,
            handled: self.handled + other.handled,
            busy_ns: self.busy_ns + other.busy_ns,
            in_hand: self.in_hand + other.in_hand,
            refused: self.refused + other.refused,
        }
    }
}

/// What instances sent to each other and must not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefusalStatus {
    /// Number of the sender's member.
    pub from: u8,
    /// The sender.
    pub instance: u16,
    /// Number of the target's member; none if no instance has its number.
    pub to: Option<u8>,
    /// The target; 0 is the gateway.
    pub to_instance: u16,
    /// Why.
    pub reason: &'static str,
    /// How often.
    pub count: u64,
    /// When it was last.
    pub last: Timestamp,
}

/// The pool of a live chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolStatus {
    /// Blocks in all.
    pub blocks: u32,
    /// Blocks that are not free.
    pub in_use: u32,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Bytes that a payload may have, in one block or a run of them.
    pub payload_bytes: u32,
    /// Whether it has huge pages.
    pub huge_pages: bool,
}

/// A member of a live chain.
#[derive(Debug, Clone, PartialEq)]
pub struct MemberStatus {
    /// Number of the member.
    pub member: u8,
    /// The version of its function that runs.
    pub function_version: u32,
    /// Instances that take requests.
    pub instances: u32,
    /// Instances that ended unasked and were replaced.
    pub restarts: u64,
    /// What its instances that run take of the processors.
    pub cpu: CpuTime,
    /// What its instances did, those that have ended included; none where the kernel does not carry the descriptors.
    pub work: Option<Work>,
}

/// Processor time of a member's instances.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// What those that run now have taken.
    pub used: Duration,
    /// What they may take together in each period of the scheduler's ([`hearth_host::CPU_PERIOD_US`]), µs; 0: what their
    /// sandbox may.
    pub quota_us: u32,
}

/// What went from one member to another since the chain was put in service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EdgeStatus {
    /// Number of the sender.
    pub from: u8,
    /// Number of the receiver.
    pub to: u8,
    /// Descriptors sent.
    pub sent: u64,
    /// Descriptors that the receiver refused.
    pub refused: u64,
}
