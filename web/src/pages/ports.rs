//! Ports of a function's or chain's own, and its subscriptions to brokers: how they are served, and the form for limits.

use askama::Template;

use super::{Moment, SourceRow};

/// A port.
#[derive(Debug, Clone)]
pub struct PortRow {
    /// Protocol and number.
    pub port: String,
    /// What is made of what comes to it.
    pub receives: String,
    /// Of a chain's port: where that goes.
    pub route: String,
    /// How that reaches the server.
    pub by: &'static str,
    /// Why not another way; empty where it is the best.
    pub why: String,
    /// Why it is not open; empty when it is.
    pub failed: String,
}

/// A subscription to a broker.
#[derive(Debug, Clone)]
pub struct BrokerRow {
    /// The broker's name.
    pub broker: String,
    /// The topics, and where their messages go.
    pub topics: String,
    /// What was counted.
    pub messages: String,
    /// Whether there is a connection.
    pub connected: bool,
    /// What is spoken there; may be empty.
    pub version: String,
    /// Since when there is a connection, or none.
    pub since: Option<Moment>,
    /// What went wrong last, and when.
    pub error: Option<(String, Moment)>,
}

/// The ports of a function or chain.
#[derive(Debug, Clone, Default)]
pub struct OwnPorts {
    /// Its name.
    pub name: String,
    /// Whether it is a chain.
    pub is_chain: bool,
    /// Whether the viewer may change the node's lists.
    pub can_admin: bool,
    /// The ports.
    pub rows: Vec<PortRow>,
    /// The subscriptions.
    pub brokers: Vec<BrokerRow>,
    /// Name and value of each figure; empty where nothing is counted.
    pub figures: Vec<(&'static str, String)>,
    /// Dropped packets by reason.
    pub dropped: Vec<(&'static str, String)>,
    /// The limits in one line.
    pub limits: String,
    /// Whether they are enforced.
    pub limits_enforced: bool,
    /// Who sends most.
    pub sources: Vec<SourceRow>,
}

impl OwnPorts {
    /// Whether there is neither a port nor a subscription.
    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.brokers.is_empty()
    }

    /// What it is, in one word.
    pub(super) fn kind(&self) -> &'static str {
        if self.is_chain { "chain" } else { "function" }
    }

    /// Where this comes from.
    pub(super) fn page(&self) -> String {
        match self.is_chain {
            true => format!("/chains/{}?part=ports", self.name),
            false => format!("/functions/{}/network", self.name),
        }
    }

    /// Where it is changed.
    pub(super) fn settings(&self) -> String {
        format!("/{}s/{}/settings#part-ports", self.kind(), self.name)
    }
}

/// `partials/own_ports.html`: what is refreshed.
#[derive(Debug, Clone, Template)]
#[template(path = "partials/own_ports.html")]
pub struct OwnPortsPartial {
    /// The ports.
    pub ports: OwnPorts,
}

/// The `port_limits` setting as typed; empty where there is no limit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PortLimitsForm {
    /// Of each source, a second.
    pub source_rate: String,
    /// Of each source, at once.
    pub source_burst: String,
    /// Of all sources, a second.
    pub total_rate: String,
    /// Of all sources, at once.
    pub total_burst: String,
}

impl PortLimitsForm {
    /// The number of this name, as typed.
    pub(super) fn number(&self, name: &str) -> &str {
        match name {
            "limit_source_rate" => &self.source_rate,
            "limit_source_burst" => &self.source_burst,
            "limit_total_rate" => &self.total_rate,
            "limit_total_burst" => &self.total_burst,
            _ => "",
        }
    }
}

/// A number of [`PortLimitsForm`]: name and id of its input, label, and what it does.
pub(crate) struct PortLimitField {
    pub name: &'static str,
    pub label: &'static str,
    pub unit: &'static str,
    pub hint: &'static str,
}

pub(crate) const PORT_LIMIT_FIELDS: [PortLimitField; 4] = [
    PortLimitField {
        name: "limit_source_rate",
        label: "Rate per source",
        unit: "per second",
        hint: "For each IPv4 address or IPv6 /64 network. Empty: no limit.",
    },
    PortLimitField {
        name: "limit_source_burst",
        label: "Burst per source",
        unit: "at once",
        hint: "Accepted at once after a pause. Empty: as many as in a second.",
    },
    PortLimitField {
        name: "limit_total_rate",
        label: "Total rate",
        unit: "per second",
        hint: "For all sources together. Empty: no limit.",
    },
    PortLimitField {
        name: "limit_total_burst",
        label: "Total burst",
        unit: "at once",
        hint: "Accepted at once after a pause. Empty: as many as in a second.",
    },
];
