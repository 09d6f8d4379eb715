//! Ports of a function's own.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A port at which a function is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
pub struct PortTrigger {
    /// The protocol.
    pub protocol: PortProtocol,
    /// The port, on all addresses of the host.
    #[schema(minimum = 1, maximum = 65535, example = 9000)]
    pub port: u16,
    /// What the function gets.
    #[serde(default)]
    pub mode: PortMode,
}

/// The protocol of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum PortProtocol {
    /// TCP.
    Tcp,
}

/// What a function gets of what comes to its port.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum PortMode {
    /// HTTP requests, as from `/fn/{name}`.
    #[default]
    Http,
}

impl fmt::Display for PortTrigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            protocol: PortProtocol::Tcp,
            port,
            mode: PortMode::Http,
        } = self;
        write!(f, "tcp {port} (http)")
    }
}
