//! One entry of `allow`: `api.stripe.com:443`, `*.amazonaws.com`, `198.51.100.0/24:5432/tcp`, `[2001:db8::]/32:53/udp`,
//! `internet`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use ipnet::{IpNet, Ipv6Net};

use super::error::RuleError;
use super::name::NamePattern;
use super::prefix::{self, parse_prefix};

/// Longest entry: a name of 253 bytes, ports and a protocol.
pub(super) const MAX_BYTES: usize = 280;
/// Most ports of a host name, unless it is all of them: each is an element in the kernel for each of its addresses.
pub(super) const MAX_NAME_PORTS: u16 = 64;

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
        /// The protocol.
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
