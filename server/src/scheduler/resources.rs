//! What all deployments share: the host's limits, and what starts take from.

use std::time::Duration;

use super::gate::StartGate;
use super::policy::controllers::Controllers;
use super::traffic::Traffic;
use crate::criu::Images;
use crate::host_error::HostErrors;
use crate::instance::Logs;
use crate::network;
use crate::ports::PortTable;
use crate::runtimes::{Runtimes, UidRange};
use crate::sandbox::Host;
use crate::secrets::Secrets;

/// What all deployments share.
pub struct Resources {
    /// Makes sandboxes.
    pub host: Host,
    /// Where log lines go.
    pub logs: Logs,
    /// The language runtimes of this node.
    pub runtimes: Runtimes,
    /// Host uids for sandboxes.
    pub uids: UidRange,
    /// Instances being started, over all functions.
    pub starts: StartGate,
    /// Templates being booted. Apart from the instances: a slow import must not hold up forks.
    pub boots: StartGate,
    /// Templates being restored. Apart from the boots: four imports of 20 s each must not hold up what takes 15 ms.
    pub restores: StartGate,
    /// Bytes that templates, idle instances and images may take.
    pub memory_budget: u64,
    /// Spin time of an instance before it sleeps.
    pub busy_poll: Duration,
    /// Images of templates.
    pub images: Images,
    /// What the host could not give.
    pub host_errors: HostErrors,
    /// Whether each template keeps a pre-forked instance.
    pub prefork: bool,
    /// What decides on starts and queues.
    pub controllers: Controllers,
    /// Whether sandboxes are pre-warmed for restores.
    pub prewarm: bool,
    /// Processors of this host.
    pub cores: u32,
    /// Whether anybody calls.
    pub traffic: Traffic,
    /// What functions reach over the network.
    pub network: network::Node,
    /// What functions are given.
    pub secrets: Secrets,
    /// The ports of functions.
    pub ports: PortTable,
}
