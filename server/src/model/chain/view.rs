//! Chains and their versions as the API shows them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Cpu, CpuCores, CpuUs, Hop, Live, Member, Pool, Spec, State, Transport, Trigger};
use crate::model::{PortLimits, Revision};

/// The settings of a chain as the API shows them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ChainSettings)]
pub struct Settings {
    /// Its members by name.
    pub members: BTreeMap<String, Member>,
    /// Its routes by name: the hops of a request. `gateway` is a return to the server, which passes the payload on.
    #[schema(value_type = BTreeMap<String, Vec<String>>)]
    pub routes: BTreeMap<String, Vec<Hop>>,
    /// Which member may call which: caller and callee.
    #[schema(value_type = Vec<Vec<String>>)]
    pub edges: Vec<(String, String)>,
    /// The memory that payloads lie in.
    pub pool: Pool,
    /// How descriptors travel between members.
    pub transport: Transport,
    /// Longest time of a request in ms.
    pub timeout_ms: u32,
    /// How much of the processors its members may take.
    pub cpu: Cpu,
    /// Processor time that each member takes for one request to the chain, in µs; empty if that was not measured.
    pub cpu_us: CpuUs,
    /// Cores that only its members use if `cpu` is `dedicated`.
    pub cpu_cores: CpuCores,
    /// Whether `/chain/{name}` answers without a token.
    pub public: bool,
    /// Its own ports.
    pub triggers: Vec<Trigger>,
    /// How much may start work there.
    pub port_limits: PortLimits,
}

impl From<Spec> for Settings {
    fn from(spec: Spec) -> Self {
        let Spec {
            name: _,
            members,
            routes,
            edges,
            pool,
            transport,
            timeout_ms,
            cpu,
            cpu_us,
            cpu_cores,
            public,
            triggers,
            port_limits,
        } = spec;
        Self {
            members,
            routes,
            edges,
            pool,
            transport,
            timeout_ms,
            cpu,
            cpu_us,
            cpu_cores,
            public,
            triggers,
            port_limits,
        }
    }
}

/// A chain as the API shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Chain)]
pub struct View {
    /// Row id; never reused and not exposed: chains are addressed by name.
    #[serde(skip)]
    pub id: i64,
    /// Its name.
    pub name: String,
    /// The version in service.
    #[schema(minimum = 1)]
    pub active_version: u32,
    /// Whether it can serve requests.
    pub state: State,
    /// Why `state` is `failed`, or why the members do not run what they should; null otherwise.
    pub state_reason: Option<String>,
    /// Its settings.
    #[serde(flatten)]
    pub settings: Settings,
    /// Live figures; null if it is not in service.
    pub live: Option<Live>,
    /// Where it is called: `/chain/{name}`.
    pub url: String,
    /// When the chain was created.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// When its settings or active version last changed.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Timestamp,
}

impl View {
    /// What was asked for of it, live state left out.
    #[must_use]
    pub fn revision(&self) -> Revision {
        Revision::of_chain(self.id, self.active_version)
    }
}

/// An immutable version of a chain as the API shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ChainVersion)]
pub struct VersionView {
    /// 1, 2, 3 … in order of creation.
    #[schema(minimum = 1)]
    pub version: u32,
    /// Whether it is the active version.
    pub active: bool,
    /// Its settings.
    #[serde(flatten)]
    pub settings: Settings,
    /// When it was created.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
}
