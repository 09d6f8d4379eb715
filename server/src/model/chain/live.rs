//! What a chain does now, as the API shows it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::model::Percentiles;

/// Whether a chain can serve requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ChainState)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Its members run.
    Ready,
    /// Its members are being started; requests wait.
    Starting,
    /// A member did not start when the server did. The next request tries again.
    Failed,
}

/// Live figures of a chain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ChainLive)]
pub struct Live {
    /// How descriptors travel: what `auto` came to.
    pub transport: String,
    /// Requests under way.
    pub requests: u64,
    /// The pool.
    pub pool: PoolLive,
    /// Its members by name.
    pub members: BTreeMap<String, MemberLive>,
    /// What went from one member to another since the version was put in service.
    pub edges: Vec<EdgeLive>,
    /// Its instances, by the kernel's count; none unless `transport` is `sk_msg`.
    pub instances: Vec<InstanceLive>,
    /// What members sent and must not, each pair of sender and target once, the latest last.
    pub refusals: Vec<RefusalLive>,
}

/// An instance of a member, by the kernel's count.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ChainInstanceLive)]
pub struct InstanceLive {
    /// Its member.
    pub member: String,
    /// Its number.
    pub instance: u16,
    /// What it did.
    #[serde(flatten)]
    pub kernel: KernelLive,
}

/// What the kernel counted on the way of the descriptors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ChainKernelLive)]
pub struct KernelLive {
    /// Requests and calls that were sent to it.
    pub received: u64,
    /// Those of late, each second.
    pub per_second: u64,
    /// Those that it has in hand, or that wait for it.
    pub in_hand: u64,
    /// From when one was sent to it to when it passed it on, waiting included, on average, in µs; null before the first.
    pub response_us: Option<u64>,
    /// Descriptors that it sent and must not.
    pub refused: u64,
}

/// What an instance sent to another and must not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ChainRefusal)]
pub struct RefusalLive {
    /// The sender's member.
    pub from: String,
    /// The sender.
    pub instance: u16,
    /// The target's member, or `gateway`; null if no instance had that number.
    pub to: Option<String>,
    /// The target; 0 is the gateway.
    pub to_instance: u16,
    /// `no_edge`, `no_such_instance`, `instance_gone`, `block_not_in_hand`, `kind_not_allowed`, `no_descriptor` by the kernel's word;
    /// `not_valid` by the server's.
    #[schema(example = "no_edge")]
    pub reason: String,
    /// How often.
    pub count: u64,
    /// When it was last.
    #[schema(value_type = String, format = DateTime)]
    pub last_at: Timestamp,
}

/// Live figures of a pool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ChainPoolLive)]
pub struct PoolLive {
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

/// Live figures of a member.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ChainMemberLive)]
pub struct MemberLive {
    /// The version of its function that runs.
    #[schema(minimum = 1)]
    pub function_version: u32,
    /// Instances that take requests.
    pub instances: u32,
    /// Instances that ended unasked and were replaced.
    pub restarts: u64,
    /// How long it had requests of the last 5 to 10 minutes, in µs.
    pub latency_us: Percentiles,
    /// Processor time that its instances have taken that run now, in µs.
    pub cpu_us: u64,
    /// Processors that they may take together, in thousandths; null if they may take what their function may.
    pub cpu_limit_milli: Option<u32>,
    /// What the kernel counted, of instances that have ended, too; null unless `transport` is `sk_msg`.
    pub kernel: Option<KernelLive>,
}

/// What went from one member to another. `gateway` is the server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ChainEdgeLive)]
pub struct EdgeLive {
    /// The sender.
    pub from: String,
    /// The receiver.
    pub to: String,
    /// Descriptors sent.
    pub sent: u64,
    /// Descriptors sent each second of late.
    pub per_second: u64,
    /// Descriptors that the receiver refused.
    pub refused: u64,
}
