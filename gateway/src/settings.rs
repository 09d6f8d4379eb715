//! What the gateway is started with.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hearth_init::fields_of;

use crate::protocol::Prefix;

/// What the administrator of the node chooses about the network.
#[derive(Debug, Clone)]
pub struct Settings {
    /// IPv4 addresses of sandboxes: a prefix that the host has no other use for. Each Hearth on the host takes 4,096 of them.
    /// The packets that leave the host have the host's address.
    pub block: Prefix,
    /// The same of IPv6, 96 bits or fewer: the last 32 are those of the IPv4 address.
    pub block6: Prefix,
    /// Private, local or reserved addresses that a policy may allow all the same.
    pub permitted: Vec<Prefix>,
    /// Whether connections may go past the rules where these would let them through.
    pub fast: bool,
    /// What to log, in `tracing` syntax.
    pub log: String,
}

impl Default for Settings {
    /// A part of what is set aside for measuring networks (RFC 2544), which no network has, and a unique local prefix.
    fn default() -> Self {
        Self {
            block: prefix(Ipv4Addr::new(198, 19, 0, 0), 16),
            block6: prefix(Ipv6Addr::new(0xfd68, 0x6561, 0x7274, 0x68, 0, 0, 0, 0), 96),
            permitted: Vec::new(),
            fast: true,
            log: "info".to_owned(),
        }
    }
}

fn prefix(address: impl Into<IpAddr>, length: u8) -> Prefix {
    let address = address.into();
    Prefix::new(address, length).unwrap_or(Prefix::host(address))
}

fields_of!(Settings {
    block,
    block6,
    permitted,
    fast,
    log,
});
