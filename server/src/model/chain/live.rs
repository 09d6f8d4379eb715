//! What a chain does now, as the API shows it.

use std::collections::BTreeMap;

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
