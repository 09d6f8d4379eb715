//! How much may start work at a function's ports.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Largest rate and burst: more than a network card of 10 Gbit/s receives in a second.
pub const MAX_PORT_RATE: u32 = 20_000_000;

/// Limits on what starts work at a function's ports, TCP connections and UDP datagrams, enforced by the kernel before it makes
/// anything of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PortLimits {
    /// Of each source: an IPv4 address, or an IPv6 network of 64 bits. Null for no limit.
    #[serde(default)]
    #[schema(required = false)]
    pub per_source: Option<PortRate>,
    /// Of all sources together. Null for no limit.
    #[serde(default)]
    #[schema(required = false)]
    pub total: Option<PortRate>,
}

/// A token bucket: each connection and datagram takes a token, and is dropped if there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PortRate {
    /// New tokens a second.
    #[schema(minimum = 1, maximum = 20_000_000)]
    pub per_second: u32,
    /// Most tokens that wait; as many as come in a second if omitted.
    #[schema(required = false, minimum = 1, maximum = 20_000_000)]
    pub burst: u32,
}

impl PortLimits {
    /// Whether nothing is limited.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for PortLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rates = [("per source", self.per_source), ("total", self.total)];
        let mut separator = "";
        for (name, rate) in rates {
            if let Some(PortRate { per_second, burst }) = rate {
                write!(f, "{separator}{name} {per_second} a second, burst {burst}")?;
                separator = "; ";
            }
        }
        if separator.is_empty() {
            f.write_str("none")?;
        }
        Ok(())
    }
}
