//! What the host process is told about a sandbox's way out: addresses, ports and limits. Names are the server's to resolve.
//!
//! A policy has no fixed size: it comes as a sealed memfd, or in the [`Papers`](super::Papers) of a sandbox to be made.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;
use std::os::fd::OwnedFd;
use std::time::Duration;

use hearth_init::fields::{FieldError, Fields};
use hearth_init::fields_of;

use super::papers::{PapersError, read_sealed};
use crate::memfd::sealed;

/// Most prefixes of a policy, and most addresses in it that names resolved to. Protects the kernel's memory.
const PREFIXES_MAX: usize = 256;
/// See [`PREFIXES_MAX`].
const RESOLVED_MAX: usize = 4096;
/// Most ports of an address that a name resolved to, unless it is all of them: each takes an entry in the kernel.
pub const PORTS_MAX: usize = 64;
/// Longest time for which an address is allowed.
pub const TTL_MAX: Duration = Duration::from_secs(86_400);

/// A transport protocol that functions may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

impl Protocol {
    /// Its number in an IP header.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Tcp => 6,
            Self::Udp => 17,
        }
    }

    /// The one with this number in an IP header.
    #[must_use]
    pub const fn of_number(number: u8) -> Option<Self> {
        match number {
            6 => Some(Self::Tcp),
            17 => Some(Self::Udp),
            _ => None,
        }
    }
}

/// The addresses that begin with the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Prefix {
    address: IpAddr,
    length: u8,
}

impl Prefix {
    /// Those that share their first `length` bits with `address`. None if an address has fewer.
    #[must_use]
    pub fn new(address: IpAddr, length: u8) -> Option<Self> {
        let address = match address {
            IpAddr::V4(v4) => {
                let mask = u32::MAX.checked_shl(32_u32.checked_sub(length.into())?);
                IpAddr::V4(Ipv4Addr::from_bits(v4.to_bits() & mask.unwrap_or(0)))
            }
            IpAddr::V6(v6) => {
                let mask = u128::MAX.checked_shl(128_u32.checked_sub(length.into())?);
                IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & mask.unwrap_or(0)))
            }
        };
        Some(Self { address, length })
    }

    /// One address.
    #[must_use]
    pub const fn host(address: IpAddr) -> Self {
        let length = if address.is_ipv4() { 32 } else { 128 };
        Self { address, length }
    }

    /// Its first address.
    #[must_use]
    pub const fn address(&self) -> IpAddr {
        self.address
    }

    /// How many bits its addresses share.
    #[must_use]
    pub const fn length(&self) -> u8 {
        self.length
    }

    /// Whether this address is one of them.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        Self::new(address, self.length) == Some(*self)
    }
}

/// Addresses that may be reached, over a protocol and at these ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefixed {
    /// Addresses.
    pub prefix: Prefix,
    /// Protocol.
    pub protocol: Protocol,
    /// Ports, first and last.
    pub ports: RangeInclusive<u16>,
}

impl Prefixed {
    /// Whether this destination is one of them.
    #[must_use]
    pub fn contains(&self, address: IpAddr, protocol: Protocol, port: u16) -> bool {
        self.protocol == protocol && self.ports.contains(&port) && self.prefix.contains(address)
    }
}

/// An address that an allowed name resolved to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// Address.
    pub address: IpAddr,
    /// Protocol.
    pub protocol: Protocol,
    /// Ports, first and last: [`PORTS_MAX`] at most, or all (`0..=65535` or `1..=65535`).
    pub ports: RangeInclusive<u16>,
    /// How long connections to it may begin. [`Duration::ZERO`] in a policy that replaces another: none may, and those that
    /// there are go on.
    pub ttl: Duration,
}

impl Resolved {
    /// Whether all ports are meant.
    #[must_use]
    pub fn is_any_port(&self) -> bool {
        *self.ports.start() <= 1 && *self.ports.end() == u16::MAX
    }

    /// Whether the host process takes it.
    #[must_use]
    pub fn is_acceptable(&self) -> bool {
        self.ttl <= TTL_MAX
            && !self.ports.is_empty()
            && (self.is_any_port() || self.ports.len() <= PORTS_MAX)
    }
}

/// What one sandbox may use, by the kernel's count. 0 is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NetworkLimits {
    /// Connections at a time, half-open ones and UDP's among them.
    pub connections: u32,
    /// New connections a second.
    pub new_per_second: u32,
    /// Bytes a second in each direction.
    pub bytes_per_second: u64,
}

/// What the kernel is told about one sandbox. Nothing is allowed by default; private, local and reserved addresses never
/// are, unless the node's own rules permit them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KernelPolicy {
    /// Whether all public addresses are allowed, at all ports.
    pub internet: bool,
    /// What is allowed by address.
    pub allow: Vec<Prefixed>,
    /// Whether what is not allowed is let through and reported; what never is allowed, is refused all the same.
    pub dry_run: bool,
    /// Limits.
    pub limits: NetworkLimits,
    /// What names of this policy have resolved to up to now. In the place of what was allowed by
    /// [`Request::Allow`](super::Request::Allow) before.
    pub resolved: Vec<Resolved>,
}

impl KernelPolicy {
    /// Writes and seals it.
    ///
    /// # Errors
    /// When there is no memory or no descriptor.
    pub fn seal(&self) -> std::io::Result<OwnedFd> {
        sealed(&self.to_bytes())
    }

    /// Reads and checks it.
    ///
    /// # Errors
    /// [`PapersError`].
    pub fn open(fd: OwnedFd) -> Result<Self, PapersError> {
        let policy = Self::from_bytes(&read_sealed(fd)?)?;
        policy.check()?;
        Ok(policy)
    }

    /// Checks what decoding does not.
    ///
    /// # Errors
    /// [`PapersError::Value`].
    pub fn check(&self) -> Result<(), PapersError> {
        let good = self.allow.len() <= PREFIXES_MAX
            && self.allow.iter().all(|allowed| !allowed.ports.is_empty())
            && self.resolved.len() <= RESOLVED_MAX
            && self.resolved.iter().all(Resolved::is_acceptable);
        good.then_some(())
            .ok_or(PapersError::Value("network policy"))
    }
}

/// What the kernel has counted for a sandbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Bytes from the sandbox that were let through, IP headers included.
    pub bytes_out: u64,
    /// Packets from the sandbox that were let through.
    pub packets_out: u64,
    /// Bytes to the sandbox.
    pub bytes_in: u64,
    /// Packets to the sandbox.
    pub packets_in: u64,
    /// Connections that have begun, and UDP exchanges.
    pub connections: u64,
    /// Packets that were refused.
    pub refused: u64,
}

impl Fields for Protocol {
    fn write(&self, to: &mut Vec<u8>) {
        self.number().write(to);
    }

    fn read(from: &mut &[u8]) -> Result<Self, FieldError> {
        let number = u8::read(from)?;
        Self::of_number(number).ok_or(FieldError::Kind(number))
    }
}

impl Fields for Prefix {
    fn write(&self, to: &mut Vec<u8>) {
        (self.address, self.length).write(to);
    }

    fn read(from: &mut &[u8]) -> Result<Self, FieldError> {
        let (address, length) = Fields::read(from)?;
        // Other bits than the shared ones are zero: there is one form of each.
        Self::new(address, length)
            .filter(|prefix| prefix.address == address)
            .ok_or(FieldError::Kind(length))
    }
}

fields_of!(Prefixed {
    prefix,
    protocol,
    ports,
});
fields_of!(Resolved {
    address,
    protocol,
    ports,
    ttl,
});
fields_of!(NetworkLimits {
    connections,
    new_per_second,
    bytes_per_second,
});
fields_of!(KernelPolicy {
    internet,
    allow,
    dry_run,
    limits,
    resolved,
});
fields_of!(Counters {
    bytes_out,
    packets_out,
    bytes_in,
    packets_in,
    connections,
    refused,
});

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str, length: u8) -> Prefix {
        Prefix::new(text.parse().unwrap(), length).unwrap()
    }

    #[test]
    fn a_prefix_has_its_addresses_and_no_other() {
        let four = prefix("198.51.100.77", 24);
        assert_eq!(four.address(), "198.51.100.0".parse::<IpAddr>().unwrap());
        assert!(four.contains("198.51.100.255".parse().unwrap()));
        assert!(!four.contains("198.51.101.0".parse().unwrap()));
        assert!(!four.contains("::ffff:198.51.100.1".parse().unwrap()));
        let all = prefix("1.2.3.4", 0);
        assert!(all.contains("255.255.255.255".parse().unwrap()));
        assert!(!all.contains("::".parse().unwrap()));
        let six = prefix("2001:db8::1", 127);
        assert!(six.contains("2001:db8::".parse().unwrap()));
        assert!(!six.contains("2001:db8::2".parse().unwrap()));
        assert!(Prefix::new("1.2.3.4".parse().unwrap(), 33).is_none());
        assert!(Prefix::new("::".parse().unwrap(), 129).is_none());
    }

    #[test]
    fn a_policy_is_read_as_it_was_written() {
        let policy = KernelPolicy {
            internet: true,
            allow: vec![Prefixed {
                prefix: prefix("2001:db8::", 32),
                protocol: Protocol::Udp,
                ports: 53..=54,
            }],
            dry_run: true,
            limits: NetworkLimits {
                connections: 1,
                new_per_second: 2,
                bytes_per_second: 3,
            },
            resolved: vec![Resolved {
                address: "192.0.2.1".parse().unwrap(),
                protocol: Protocol::Tcp,
                ports: 443..=443,
                ttl: Duration::from_millis(1500),
            }],
        };
        assert_eq!(KernelPolicy::open(policy.seal().unwrap()).unwrap(), policy);
        let with = |change: fn(&mut KernelPolicy)| {
            let mut changed = policy.clone();
            change(&mut changed);
            KernelPolicy::open(changed.seal().unwrap()).is_err()
        };
        assert!(with(|policy| policy.resolved[0].ports = 1000..=2000));
        assert!(with(|policy| policy.resolved[0].ttl = TTL_MAX * 2));
        #[allow(clippy::reversed_empty_ranges)]
        let reversed = with(|policy| policy.allow[0].ports = 2..=1);
        assert!(reversed);
        assert!(with(|policy| {
            policy.allow = vec![policy.allow[0].clone(); PREFIXES_MAX + 1];
        }));
        assert!(!with(|policy| policy.resolved[0].ports = 1..=u16::MAX));
    }
}
