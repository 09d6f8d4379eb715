//! One entry of `allow`: `api.stripe.com:443`, `*.amazonaws.com`, `198.51.100.0/24:5432/tcp`, `[2001:db8::]/32:53/udp`,
//! `internet`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use ipnet::{IpNet, Ipv6Net};

use super::name::NamePattern;
use super::prefix::{self, parse_prefix};

/// Longest entry: a name of 253 bytes, ports and a protocol.
const MAX_BYTES: usize = 280;
/// Most ports of a host name, unless it is all of them: each is an element in the kernel for each of its addresses.
const MAX_NAME_PORTS: u16 = 64;

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// All public addresses, at every port, by TCP and UDP.
    Internet,
    /// One name or network.
    Allow {
        /// What may be reached.
        target: Target,
        /// At which ports.
        ports: Ports,
        /// By which protocol.
        protocol: Protocol,
    },
}

/// What a rule opens.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    /// What a name resolves to.
    Name(NamePattern),
    /// Addresses.
    Network(IpNet),
}

/// Ports of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ports {
    /// 443 and 80: none were named.
    Web,
    /// From the first to the last.
    Range(u16, u16),
}

impl Ports {
    /// Every port.
    pub const ALL: Self = Self::Range(1, u16::MAX);

    /// Whether this is one of them.
    pub fn contain(self, port: u16) -> bool {
        self.ranges()
            .any(|(first, last)| (first..=last).contains(&port))
    }

    /// As ranges.
    pub fn ranges(self) -> impl Iterator<Item = (u16, u16)> {
        let (first, second) = match self {
            Self::Web => ((443, 443), Some((80, 80))),
            Self::Range(first, last) => ((first, last), None),
        };
        std::iter::once(first).chain(second)
    }
}

/// Transport protocol.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    serde::Serialize,
    serde::Deserialize,
    utoipa::ToSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

impl Protocol {
    /// As policies write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        }
    }
}

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

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(RuleError::Empty);
        }
        if text.len() > MAX_BYTES {
            return Err(RuleError::TooLong);
        }
        if let Some((_, rest)) = text.split_once("://") {
            let host = rest.split('/').next().unwrap_or_default();
            return Err(RuleError::Url(host.to_owned()));
        }
        match text.to_ascii_lowercase().as_str() {
            // The old name.
            "internet" | "outbound" => return Ok(Self::Internet),
            "none" => return Err(RuleError::NotAnEntry),
            _ => {}
        }
        let (target, rest) = target(text)?;
        let (ports, protocol) = match rest {
            None => (Ports::Web, Protocol::Tcp),
            Some(rest) => match rest.split_once('/') {
                None => (ports(rest)?, Protocol::Tcp),
                Some((before, after)) => (ports(before)?, protocol(after)?),
            },
        };
        if let (Target::Name(_), Ports::Range(first, last)) = (&target, ports)
            && ports != Ports::ALL
            && last - first >= MAX_NAME_PORTS
        {
            return Err(RuleError::ManyPorts(format!("{first}-{last}")));
        }
        Ok(Self::Allow {
            target,
            ports,
            protocol,
        })
    }
}

/// The target, and what follows the colon after it.
fn target(text: &str) -> Result<(Target, Option<&str>), RuleError> {
    if let Some(inside) = text.strip_prefix('[') {
        let (address, rest) = inside.split_once(']').ok_or(RuleError::Brackets)?;
        let address: Ipv6Addr = address
            .parse()
            .map_err(|_| RuleError::Address(address.to_owned()))?;
        let (length, rest) = match rest.split_once(':') {
            Some((length, rest)) => (length, Some(rest)),
            None => (rest, None),
        };
        let written = format!("{address}{length}");
        return Ok((Target::Network(parse_prefix(&written)?), rest));
    }
    if text.parse::<Ipv6Addr>().is_ok() || text.parse::<Ipv6Net>().is_ok() {
        return Ok((Target::Network(parse_prefix(text)?), None));
    }
    if text.matches(':').count() > 1 {
        return Err(RuleError::Brackets);
    }
    let (head, rest) = match text.split_once(':') {
        Some((head, rest)) => (head, Some(rest)),
        None => (text, None),
    };
    let address = head.split('/').next().unwrap_or_default();
    if address.parse::<Ipv4Addr>().is_ok() {
        return Ok((Target::Network(parse_prefix(head)?), rest));
    }
    if head.contains('/') {
        return Err(RuleError::Path(address.to_owned()));
    }
    Ok((Target::Name(NamePattern::parse(head)?), rest))
}

fn ports(text: &str) -> Result<Ports, RuleError> {
    if text == "*" {
        return Ok(Ports::ALL);
    }
    let refused = || RuleError::Port(text.to_owned());
    let port = |text: &str| -> Result<u16, RuleError> {
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(refused());
        }
        let number = text.parse().map_err(|_| refused())?;
        if number == 0 {
            Err(refused())
        } else {
            Ok(number)
        }
    };
    let (first, last) = match text.split_once('-') {
        Some((first, last)) => (port(first)?, port(last)?),
        None => (port(text)?, port(text)?),
    };
    if first > last {
        return Err(refused());
    }
    Ok(Ports::Range(first, last))
}

fn protocol(text: &str) -> Result<Protocol, RuleError> {
    match text.to_ascii_lowercase().as_str() {
        "tcp" => Ok(Protocol::Tcp),
        "udp" => Ok(Protocol::Udp),
        _ => Err(RuleError::Protocol(text.to_owned())),
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(pattern) => pattern.fmt(f),
            Self::Network(network) => prefix::write(network, f),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Allow {
            target,
            ports,
            protocol,
        } = self
        else {
            return f.write_str("internet");
        };
        target.fmt(f)?;
        match *ports {
            Ports::Web => {}
            Ports::ALL => f.write_str(":*")?,
            Ports::Range(first, last) if first == last => write!(f, ":{first}")?,
            Ports::Range(first, last) => write!(f, ":{first}-{last}")?,
        }
        if *protocol == Protocol::Udp {
            f.write_str("/udp")?;
        }
        Ok(())
    }
}

impl Rule {
    /// The narrowest rule that allows this.
    pub fn narrowest(target: Target, port: u16, protocol: Protocol) -> Self {
        Self::Allow {
            target,
            ports: Ports::Range(port, port),
            protocol,
        }
    }

    /// The rule that opens one port of a name or, where there is none, of an address. None where the name is none that a
    /// policy can write.
    pub fn for_destination(
        name: Option<&str>,
        address: IpAddr,
        port: u16,
        protocol: Protocol,
    ) -> Option<Self> {
        let target = match name {
            Some(name) => Target::Name(NamePattern::parse(name).ok()?),
            None => Target::Network(IpNet::from(address.to_canonical())),
        };
        Some(Self::narrowest(target, port, protocol))
    }
}
