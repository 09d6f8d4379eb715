//! What can be wrong with an entry.

use ipnet::IpNet;

use super::rule::{MAX_BYTES, MAX_NAME_PORTS};

/// What is wrong with an entry, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// Nothing there.
    #[error(
        "must not be empty; expected a host name such as api.example.com, or a network such as 198.51.100.0/24"
    )]
    Empty,
    /// Longer than any entry.
    #[error("must have at most {MAX_BYTES} bytes")]
    TooLong,
    /// Too many of them.
    #[error("must be one of at most {} entries", super::MAX_RULES)]
    TooMany,
    /// A URL.
    #[error("must be a host name without scheme or path; write {0}")]
    Url(String),
    /// Something after the name.
    #[error("must be a host name without a path; a protocol follows a port, as in {0}:443/udp")]
    Path(String),
    /// No host name.
    #[error("{0} is not a host name; expected one such as api.example.com or *.example.com")]
    Name(String),
    /// A wildcard with something beside it.
    #[error("{0}: * must be a whole label, as in *.example.com")]
    PartialWildcard(String),
    /// A wildcard at the end.
    #[error("{0}: the last label must not be *")]
    OpenEnd(String),
    /// Nothing but wildcards.
    #[error("* allows everything; write internet for all public addresses")]
    Everything,
    /// The function's own loopback.
    #[error("localhost is the function's own loopback, which it always reaches")]
    Localhost,
    /// No address.
    #[error(
        "{0} is not an address; expected one such as 198.51.100.7, 198.51.100.0/24 or [2001:db8::]/32"
    )]
    Address(String),
    /// Not the first address of its network.
    #[error(
        "{text} has bits set after its prefix; write {network}, or the address without a length"
    )]
    HostPart {
        /// As written.
        text: String,
        /// The network that it is in.
        network: String,
    },
    /// IPv4 as IPv6.
    #[error("must be written as IPv4: {0}")]
    Mapped(String),
    /// IPv6 without brackets.
    #[error(
        "an IPv6 address with a port must be in brackets, as in [2001:db8::1]:443 or [2001:db8::]/32:53/udp"
    )]
    Brackets,
    /// No ports.
    #[error(
        "{0} is not a port; expected one from 1 to 65535, a range such as 8000-8100, or * for all"
    )]
    Port(String),
    /// A name's ports that are neither few nor all.
    #[error(
        "{0} are too many ports for a host name; expected at most {MAX_NAME_PORTS}, or * for all"
    )]
    ManyPorts(String),
    /// No protocol.
    #[error("{0} is not a protocol; expected tcp or udp")]
    Protocol(String),
    /// `none` is no entry.
    #[error("none is not an entry; an empty list allows nothing")]
    NotAnEntry,
    /// Only the administrator can open it.
    #[error(
        "is in {range} ({what}), which HEARTH_NETWORK_ALLOW_PRIVATE does not open on this node"
    )]
    Special {
        /// The range.
        range: IpNet,
        /// What it is.
        what: &'static str,
    },
}
