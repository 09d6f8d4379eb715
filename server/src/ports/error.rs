//! Why ports are refused.

use std::ops::RangeInclusive;

use crate::model::PortOwner;

/// Why somebody cannot have a port.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PortError {
    /// Another function, or another chain, has it.
    #[error("must be a free port; {0} has this one")]
    Owner(PortOwner),
    /// Another process has it.
    #[error("must be a free port; {0} has this one")]
    Process(String),
    /// It is not one of those that functions and chains may have.
    #[error("must be from {} to {} on this node (HEARTH_TRIGGER_PORTS)", .0.start(), .0.end())]
    Range(RangeInclusive<u16>),
    /// It is no broker that the node has.
    #[error("must be a broker of HEARTH_MQTT_BROKERS: {}", if .0.is_empty() { "this node has none" } else { .0 })]
    Broker(String),
    /// The kernel refused.
    #[error("must be a port that can be opened: {0}")]
    Host(String),
}
