//! Chains: functions that pass requests on to each other, as a user asks for them.

mod check;
mod cpu;
mod hop;
mod limits;
mod live;
mod numbers;
mod patch;
mod trace;
mod trigger;
mod view;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::PortLimits;

pub use cpu::{Cpu, CpuCores, CpuUs, MAX_CORES, MAX_CPU_US};
pub use hop::{GATEWAY, Hop};
pub use limits::{
    BLOCK_KB, DEFAULT_BLOCK_KB, DEFAULT_BLOCKS, DEFAULT_TIMEOUT_MS, MAX_BLOCKS, MAX_CONCURRENCY,
    MAX_EDGES, MAX_HOPS, MAX_INSTANCES, MAX_MEMBERS, MAX_POOL_BYTES, MAX_ROUTES, MAX_TIMEOUT_MS,
    PAYLOAD_KB, is_plain_name,
};
pub use live::{
    EdgeLive, InstanceLive, KernelLive, Live, MemberLive, PoolLive, RefusalLive, State,
};
pub use patch::Patch;
pub use trace::{Trace, TraceHop};
pub use trigger::Trigger;
pub use view::{Settings, VersionView, View};

/// The settings of one version of a chain: what `POST /api/v1/chains` takes.
///
/// A stored one has passed [`Spec::check`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// 1 to 64 of `[a-z0-9-]`, starting with a letter.
    pub name: String,
    /// Its members by their names in the chain, which follow the same rule; [`GATEWAY`] is none.
    pub members: BTreeMap<String, Member>,
    /// Its routes by name: the hops of a request, 1 to [`MAX_HOPS`].
    pub routes: BTreeMap<String, Vec<Hop>>,
    /// Which member may call which while it handles a request: caller and callee.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edges: Vec<(String, String)>,
    /// The memory that payloads lie in.
    pub pool: Pool,
    /// How descriptors travel between members.
    pub transport: Transport,
    /// Longest time of one request in ms, 1 to [`MAX_TIMEOUT_MS`], over all hops.
    pub timeout_ms: u32,
    /// How much of the processors its members may take.
    #[serde(default)]
    pub cpu: Cpu,
    /// Processor time that each member takes for one request.
    #[serde(default, skip_serializing_if = "CpuUs::is_empty")]
    pub cpu_us: CpuUs,
    /// Cores that only its members use, with [`Cpu::Dedicated`].
    #[serde(default, skip_serializing_if = "CpuCores::is_empty")]
    pub cpu_cores: CpuCores,
    /// Whether `/chain/{name}` answers without a token.
    #[serde(default)]
    pub public: bool,
    /// Its own ports: at most [`MAX_PORTS`](crate::model::MAX_PORTS), each once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub triggers: Vec<Trigger>,
    /// How much may start work there.
    #[serde(default, skip_serializing_if = "PortLimits::is_none")]
    pub port_limits: PortLimits,
}

impl Spec {
    /// Whether another version can go on with the members of this one: they differ at most in who reaches them, and where.
    #[must_use]
    pub fn shares_members(&self, other: &Self) -> bool {
        let with = Self {
            public: other.public,
            triggers: other.triggers.clone(),
            port_limits: other.port_limits,
            ..self.clone()
        };
        with == *other
    }
}

/// A function's place in a chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ChainMember)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// Name of the function.
    #[schema(pattern = "^[a-z][a-z0-9-]{0,63}$")]
    pub function: String,
    /// Version of the function; null follows its active one.
    #[serde(default)]
    #[schema(required = false, minimum = 1)]
    pub version: Option<u32>,
    /// Instances, each of which handles one request at a time. They are kept running while the chain exists.
    #[serde(default = "one")]
    #[schema(required = false, minimum = 1, maximum = 64, default = 1)]
    pub concurrency: u32,
    /// What its handler is called with.
    #[serde(default)]
    #[schema(required = false)]
    pub payload: PayloadForm,
}

/// What a member's handler is called with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, ToSchema)]
#[schema(as = ChainPayload)]
#[serde(rename_all = "lowercase")]
pub enum PayloadForm {
    /// The value that the payload is as JSON, as outside of a chain.
    #[default]
    Json,
    /// The payload's bytes in place, in the pool's memory: a `memoryview` in Python, a `Buffer` in Node.js. Native functions
    /// choose by themselves.
    Block,
}

impl PayloadForm {
    /// As the API calls it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Block => "block",
        }
    }

    /// The one of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        [Self::Json, Self::Block]
            .into_iter()
            .find(|form| form.as_str() == name)
    }
}

fn one() -> u32 {
    1
}

/// The memory that a chain's payloads lie in: blocks of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ChainPool)]
#[serde(default, deny_unknown_fields)]
pub struct Pool {
    /// Size of a block in KiB, a power of two.
    #[schema(required = false, minimum = 4, maximum = 8192, default = 64)]
    pub block_kb: u32,
    /// Number of blocks: bounds how many payloads there are at a time. Memory is taken when a block is first used.
    #[schema(required = false, minimum = 1, maximum = 65_536, default = 1024)]
    pub blocks: u32,
    /// The largest event or result in KiB: a multiple of `block_kb`, at most half of the pool. One that is larger than a block takes a run of
    /// consecutive blocks, of the pool's upper half. Null is one block.
    #[schema(required = false, minimum = 4, maximum = 65_536)]
    pub payload_kb: Option<u32>,
    /// Whether to ask the kernel for transparent huge pages.
    #[schema(required = false, default = false)]
    pub huge_pages: bool,
}

impl Default for Pool {
    fn default() -> Self {
        Self {
            block_kb: DEFAULT_BLOCK_KB,
            blocks: DEFAULT_BLOCKS,
            payload_kb: None,
            huge_pages: false,
        }
    }
}

impl Pool {
    /// Bytes of all blocks.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        u64::from(self.block_bytes()) * u64::from(self.blocks)
    }

    /// Bytes of one block.
    #[must_use]
    pub fn block_bytes(&self) -> u32 {
        self.block_kb.saturating_mul(1024)
    }

    /// Bytes that a payload may have.
    #[must_use]
    pub fn payload_bytes(&self) -> u32 {
        self.payload_kb
            .unwrap_or(self.block_kb)
            .saturating_mul(1024)
    }
}

/// How descriptors travel between the members of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, ToSchema)]
#[schema(as = ChainTransport)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// The best that the host gives.
    #[default]
    Auto,
    /// Rings in shared memory; receivers sleep when idle.
    Ring,
    /// Rings in shared memory; receivers spin, which takes a processor for each instance.
    Poll,
    /// Sockets between which the kernel passes descriptors on, as routes and edges allow; receivers sleep when idle.
    SkMsg,
}

impl Transport {
    /// Every one.
    pub const ALL: [Self; 4] = [Self::Auto, Self::Ring, Self::Poll, Self::SkMsg];

    /// As the API calls it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Ring => "ring",
            Self::Poll => "poll",
            Self::SkMsg => "sk_msg",
        }
    }
}

/// An immutable version of a chain, as it is put in service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// Row id of the chain; never reused.
    pub chain: i64,
    /// 1, 2, 3 … in order of creation.
    pub version: u32,
    /// Its settings.
    pub spec: Arc<Spec>,
    /// The version of its function that each member runs: the one it is pinned to, or the one that was active when the
    /// chain's version was put in service.
    pub functions: BTreeMap<String, u32>,
    /// When it was made.
    pub created_at: Timestamp,
}
