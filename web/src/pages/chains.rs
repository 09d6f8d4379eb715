//! `/chains` and a chain's pages.

use askama::Template;

use super::{
    ChainInstanceRow, ChainRefusalRow, ErrorView, FieldErrors, LogRow, Moment, OwnPorts,
    Percentile, PortLimitsForm, RecentStats,
};
use crate::chrome::{Badge, Chrome};
use crate::graph::{Graph, NODE};
use crate::stage_bar::StageBar;
use crate::waterfall::{WIDTH, Waterfall};

/// A chain in the list.
#[derive(Debug, Clone)]
pub struct ChainRow {
    /// Its name.
    pub name: String,
    /// Whether it is in service.
    pub state: Badge,
    /// Why it is not, or not as it should be; may be empty.
    pub reason: String,
    /// The version in service.
    pub version: u32,
    /// Names of its members.
    pub members: Vec<String>,
    /// Names of its routes.
    pub routes: Vec<String>,
    /// Its last five minutes.
    pub recent: RecentStats,
    /// When it last changed.
    pub updated: Moment,
}

/// A workload that can be deployed as it is.
#[derive(Debug, Clone)]
pub struct WorkloadCard {
    /// Its key in the address.
    pub key: &'static str,
    /// What it is called.
    pub label: &'static str,
    /// What it does.
    pub summary: &'static str,
    /// Number of its functions.
    pub functions: usize,
}

/// `chains.html`.
#[derive(Debug, Clone, Template)]
#[template(path = "chains.html")]
pub struct ChainsPage {
    /// The frame.
    pub chrome: Chrome,
    /// All chains, by name.
    pub chains: Vec<ChainRow>,
    /// What can be deployed at once.
    pub workloads: Vec<WorkloadCard>,
    /// Why a workload was not deployed; may be empty.
    pub problem: String,
}

/// A member in a chain's table.
#[derive(Debug, Clone)]
pub struct ChainMemberRow {
    /// Its name in the chain.
    pub name: String,
    /// Name of its function.
    pub function: String,
    /// The version of the function that runs; none if the chain is not in service.
    pub version: Option<u32>,
    /// Whether it keeps to that version.
    pub pinned: bool,
    /// Instances that run, and those that are wanted.
    pub instances: (u32, u32),
    /// Instances that ended unasked and were replaced.
    pub restarts: u64,
    /// How long it had requests.
    pub p50: String,
    /// The same, 99th percentile.
    pub p99: String,
    /// The same, longest.
    pub max: String,
}

/// What a chain's page shows as it changes.
#[derive(Debug, Clone, Template)]
#[template(path = "partials/chain_live.html")]
pub struct ChainLive {
    /// Its name.
    pub name: String,
    /// Whether it is in service.
    pub state: Badge,
    /// Why it is not, or not as it should be; may be empty.
    pub reason: String,
    /// The graph.
    pub graph: Graph,
    /// Label and value.
    pub figures: Vec<(&'static str, String)>,
    /// Blocks in use, of how many; none if the chain is not in service.
    pub pool: Option<(u32, u32)>,
    /// Its members.
    pub members: Vec<ChainMemberRow>,
    /// Its instances, where the kernel counts what they do.
    pub instances: Vec<ChainInstanceRow>,
    /// What was refused, the latest first.
    pub refused: Vec<ChainRefusalRow>,
    /// Whether its receivers spin, which takes processor time when idle.
    pub spins: bool,
}

impl ChainLive {
    /// A node's size.
    fn node(&self) -> (u32, u32) {
        NODE
    }
}

/// A request in a chain's list.
#[derive(Debug, Clone)]
pub struct ChainRequestRow {
    /// Its id.
    pub id: String,
    /// The route.
    pub route: String,
    /// How it ended.
    pub status: Badge,
    /// When.
    pub received: Moment,
    /// How many members it reached.
    pub hops: usize,
    /// How long it took.
    pub total: String,
}

/// A chain's last requests.
#[derive(Debug, Clone, Template)]
#[template(path = "partials/chain_requests.html")]
pub struct ChainRequests {
    /// Name of the chain.
    pub name: String,
    /// Newest first.
    pub rows: Vec<ChainRequestRow>,
    /// The last five minutes.
    pub recent: RecentStats,
    /// Percentiles of the total, label and value.
    pub percentiles: Vec<(&'static str, Percentile)>,
}

/// A version of a chain in its list.
#[derive(Debug, Clone)]
pub struct ChainVersionRow {
    /// Its number.
    pub version: u32,
    /// Whether it is in service.
    pub active: bool,
    /// When it was made.
    pub created: Moment,
}

/// `chain.html`.
#[derive(Debug, Clone, Template)]
#[template(path = "chain.html")]
pub struct ChainPage {
    /// The frame.
    pub chrome: Chrome,
    /// What changes by itself.
    pub live: ChainLive,
    /// Its last requests.
    pub requests: ChainRequests,
    /// Routes: name, and the members along it.
    pub routes: Vec<(String, Vec<String>)>,
    /// Its own ports.
    pub ports: OwnPorts,
    /// Versions, newest first.
    pub versions: Vec<ChainVersionRow>,
    /// The state that a change from this page is meant for.
    pub revision: String,
    /// The command that sends a request.
    pub curl: String,
    /// Why the last change was not made; may be empty.
    pub problem: String,
}

/// The settings as they are typed: a line for each item.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChainForm {
    /// Of a new chain.
    pub name: String,
    /// `cart: cart-function version 3 x8`.
    pub members: String,
    /// `checkout: cart, payment`.
    pub routes: String,
    /// `frontend -> cart`.
    pub edges: String,
    /// KiB.
    pub block_kb: String,
    /// Number of blocks.
    pub blocks: String,
    /// KiB; empty is one block.
    pub payload_kb: String,
    /// Whether to ask for huge pages.
    pub huge_pages: bool,
    /// `auto`, `ring` or `poll`.
    pub transport: String,
    /// Milliseconds.
    pub timeout_ms: String,
    /// `shared`, `proportional` or `dedicated`.
    pub cpu: String,
    /// `cart: 120`.
    pub cpu_us: String,
    /// `2, 3`.
    pub cpu_cores: String,
    /// Whether no token is needed.
    pub public: bool,
    /// `udp 9000 route checkout`.
    pub triggers: String,
    /// How much may start work at these ports.
    pub port_limits: PortLimitsForm,
}

/// `chain_settings.html`, also for a new chain.
#[derive(Debug, Clone, Template)]
#[template(path = "chain_settings.html")]
pub struct ChainSettingsPage {
    /// The frame.
    pub chrome: Chrome,
    /// Name of the chain; empty for a new one.
    pub name: String,
    /// The state that the form is based on.
    pub revision: String,
    /// As typed.
    pub form: ChainForm,
    /// What is wrong with the fields.
    pub errors: FieldErrors,
    /// Why the change was not made; may be empty.
    pub problem: String,
    /// Names of functions that can be members.
    pub functions: Vec<String>,
    /// Why limits at ports are not enforced on this node; empty where they are.
    pub limits_reason: String,
}

impl ChainSettingsPage {
    /// Where the form goes.
    fn action(&self) -> String {
        match self.name.is_empty() {
            true => "/new-chain".to_owned(),
            false => format!("/chains/{}/settings", self.name),
        }
    }
}

/// `chain_request.html`: one request with its waterfall.
#[derive(Debug, Clone, Template)]
#[template(path = "chain_request.html")]
pub struct ChainRequestPage {
    /// The frame.
    pub chrome: Chrome,
    /// Name of the chain.
    pub name: String,
    /// The request's id.
    pub id: String,
    /// The route.
    pub route: String,
    /// The version that it passed through.
    pub version: u32,
    /// How it ended.
    pub status: Badge,
    /// What caused it.
    pub trigger: &'static str,
    /// When it was admitted.
    pub received: Moment,
    /// Its way through the members.
    pub waterfall: Waterfall,
    /// Outside and inside of the members.
    pub stages: StageBar,
    /// What went wrong.
    pub error: Option<ErrorView>,
    /// What its members wrote.
    pub logs: Vec<LogRow>,
}

impl ChainRequestPage {
    /// Width of the time line.
    fn width(&self) -> u64 {
        WIDTH
    }
}
