//! The request bodies as shown in the OpenAPI document. They are parsed field by field by
//! [`create_chain`](crate::http::spec::create_chain) and its siblings; a test keeps both in sync.

use std::collections::BTreeMap;

use serde::Deserialize;
use utoipa::ToSchema;

use crate::model::PortLimits;
use crate::model::chain::{Cpu, CpuCores, CpuUs, Member, Pool, Transport, Trigger};

/// A new chain. Only `name`, `members` and `routes` are required; unknown fields are rejected.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "name": "shop",
    "members": {"cart": {"function": "cart", "concurrency": 2}, "payment": {"function": "payment"}},
    "routes": {"checkout": ["cart", "payment"]},
}))]
#[allow(dead_code)]
pub struct CreateChain {
    /// Name; cannot be changed.
    #[schema(pattern = "^[a-z][a-z0-9-]{0,63}$")]
    pub name: String,
    /// The chain's members, 1 to 64, by their names in the chain; `gateway` is none. They have at most 120 instances
    /// together.
    pub members: BTreeMap<String, Member>,
    /// Routes, 1 to 256, by name: the members that a request passes, one after the other, 1 to 256 hops. A member may
    /// occur more than once. `gateway` returns the payload to the server, which passes it on.
    pub routes: BTreeMap<String, Vec<String>>,
    /// Calls that members may make while they handle a request: caller and callee.
    #[schema(required = false)]
    pub edges: Vec<(String, String)>,
    /// The memory that payloads lie in.
    #[schema(required = false)]
    pub pool: Pool,
    /// How descriptors travel between members.
    #[schema(required = false)]
    pub transport: Transport,
    /// Timeout of a request in ms, over all hops.
    #[schema(required = false, minimum = 1, maximum = 900000, default = 30000)]
    pub timeout_ms: u32,
    /// How much of the processors its members may take: what their functions may (`shared`), what the chain's requests of late
    /// need by `cpu_us` (`proportional`), or what their functions may on cores of their own (`dedicated`).
    #[schema(required = false)]
    pub cpu: Cpu,
    /// Processor time that each member takes for one request to the chain, in µs. `hearth lab fit` measures and sets it.
    #[schema(required = false)]
    pub cpu_us: CpuUs,
    /// Cores that only its members use, if `cpu` is `dedicated`: cores of this host, none of another chain, and not all.
    #[schema(required = false)]
    pub cpu_cores: CpuCores,
    /// Whether `/chain/{name}` answers without a token.
    #[schema(required = false, default = false)]
    pub public: bool,
    /// Ports of the chain's own, at most 64. Each has one of the chain's routes: `udp` and `raw` need to name it if there are
    /// several; requests by HTTP to a port without `route` say it in the first segment of their path.
    #[schema(required = false, max_items = 64)]
    pub triggers: Vec<Trigger>,
    /// How much may start work at these ports; null for no limits.
    #[schema(required = false)]
    pub port_limits: Option<PortLimits>,
}

/// All settings of a chain; those that are left out get their defaults.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "members": {"cart": {"function": "cart"}, "payment": {"function": "payment"}},
    "routes": {"checkout": ["cart", "payment"]},
}))]
#[allow(dead_code)]
pub struct PutChain {
    /// The name in the address, if it is given.
    #[schema(required = false, pattern = "^[a-z][a-z0-9-]{0,63}$")]
    pub name: String,
    /// See the creation of a chain.
    pub members: BTreeMap<String, Member>,
    /// See the creation of a chain.
    pub routes: BTreeMap<String, Vec<String>>,
    /// See the creation of a chain.
    #[schema(required = false)]
    pub edges: Vec<(String, String)>,
    /// See the creation of a chain.
    #[schema(required = false)]
    pub pool: Pool,
    /// See the creation of a chain.
    #[schema(required = false)]
    pub transport: Transport,
    /// See the creation of a chain.
    #[schema(required = false, minimum = 1, maximum = 900000, default = 30000)]
    pub timeout_ms: u32,
    /// See the creation of a chain.
    #[schema(required = false)]
    pub cpu: Cpu,
    /// See the creation of a chain.
    #[schema(required = false)]
    pub cpu_us: CpuUs,
    /// See the creation of a chain.
    #[schema(required = false)]
    pub cpu_cores: CpuCores,
    /// See the creation of a chain.
    #[schema(required = false, default = false)]
    pub public: bool,
    /// See the creation of a chain.
    #[schema(required = false, max_items = 64)]
    pub triggers: Vec<Trigger>,
    /// See the creation of a chain.
    #[schema(required = false)]
    pub port_limits: Option<PortLimits>,
}

/// Settings to change, each of them whole; omitted ones stay. `name` cannot be changed.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"routes": {"checkout": ["cart", "payment", "email"]}}))]
#[allow(dead_code)]
pub struct PatchChain {
    /// All members.
    #[schema(required = false)]
    pub members: BTreeMap<String, Member>,
    /// All routes.
    #[schema(required = false)]
    pub routes: BTreeMap<String, Vec<String>>,
    /// All calls that members may make.
    #[schema(required = false)]
    pub edges: Vec<(String, String)>,
    /// The memory that payloads lie in; what is left out of it gets its default.
    #[schema(required = false)]
    pub pool: Pool,
    /// How descriptors travel between members.
    #[schema(required = false)]
    pub transport: Transport,
    /// Timeout of a request in ms, over all hops.
    #[schema(required = false, minimum = 1, maximum = 900000)]
    pub timeout_ms: u32,
    /// How much of the processors its members may take.
    #[schema(required = false)]
    pub cpu: Cpu,
    /// Processor time that each member takes for one request, in µs; all of them.
    #[schema(required = false)]
    pub cpu_us: CpuUs,
    /// Cores that only its members use, if `cpu` is `dedicated`; all of them.
    #[schema(required = false)]
    pub cpu_cores: CpuCores,
    /// Whether `/chain/{name}` answers without a token.
    #[schema(required = false)]
    pub public: bool,
    /// All ports; `[]` closes them.
    #[schema(required = false, max_items = 64)]
    pub triggers: Vec<Trigger>,
    /// How much may start work at the ports; null for no limits.
    #[schema(required = false)]
    pub port_limits: Option<PortLimits>,
}
