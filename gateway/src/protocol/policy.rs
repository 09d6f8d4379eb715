//! A sandbox's outbound policy as the gateway gets it: addresses, ports and limits. Resolving names is the server's.
//!
//! A policy has no fixed size: it comes as a sealed memfd, that of a new sandbox by way of the host process.
//!
//! One file: each type stands beside its checks and its one encoded form, so that a change of one shows the others.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;
use std::os::fd::OwnedFd;
use std::time::Duration;

use hearth_host::memfd::sealed;
use hearth_host::protocol::PapersError;
pub use hearth_host::protocol::Protocol;
use hearth_host::protocol::papers::read_sealed;
use hearth_init::fields::{FieldError, Fields};
use hearth_init::fields_of;

/// Most prefixes of a policy, and most addresses of its resolved names. Protects the kernel's memory.
const PREFIXES_MAX: usize = 256;
/// See [`PREFIXES_MAX`].
const RESOLVED_MAX: usize = 4096;
/// Most ports of a resolved address, unless it is all of them: each takes an entry in the kernel.
pub const PORTS_MAX: usize = 64;
/// Longest time that an address may be allowed for.
pub const TTL_MAX: Duration = Duration::from_secs(86_400);

/// The addresses that begin with the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Prefix {
    address: IpAddr,
    length: u8,
}

impl Prefix {
    /// The prefix of the first `length` bits of `address`. None if the address is shorter.
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

    /// A single address.
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

    /// Number of bits that its addresses share.
    #[must_use]
    pub const fn length(&self) -> u8 {
        self.length
    }

    /// Whether it contains this address.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        Self::new(address, self.length) == Some(*self)
    }
}

/// Addresses that may be reached over a protocol at these ports.
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
    /// Whether it contains this destination.
    #[must_use]
    pub fn contains(&self, address: IpAddr, protocol: Protocol, port: u16) -> bool {
        self.protocol == protocol && self.ports.contains(&port) && self.prefix.contains(address)
    }
}

/// An address of an allowed name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// Address.
    pub address: IpAddr,
    /// Protocol.
    pub protocol: Protocol,
    /// Ports, first and last: at most [`PORTS_MAX`], or all (`0..=65535` or `1..=65535`).
    pub ports: RangeInclusive<u16>,
    /// How long new connections to it are allowed. [`Duration::ZERO`] in a policy that replaces another: no new ones,
    /// but established ones continue.
    pub ttl: Duration,
}

impl Resolved {
    /// Whether it covers all ports.
    #[must_use]
    pub fn is_any_port(&self) -> bool {
        *self.ports.start() <= 1 && *self.ports.end() == u16::MAX
    }

    /// Whether the gateway accepts it.
    #[must_use]
    pub fn is_acceptable(&self) -> bool {
        self.ttl <= TTL_MAX
            && !self.ports.is_empty()
            && (self.is_any_port() || self.ports.len() <= PORTS_MAX)
    }
}

/// Names the sandboxes that share their limits, those of one function: any number that the server chooses. Nothing else
/// follows from it.
pub type GroupId = u64;

/// Limits of a group of sandboxes, enforced by the kernel. 0 means unlimited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NetworkLimits {
    /// Concurrent connections, including half-open ones and UDP exchanges.
    pub connections: u32,
    /// New connections per second.
    pub new_per_second: u32,
    /// Bytes per second in each direction.
    pub bytes_per_second: u64,
}

/// The kernel's policy for one sandbox. It allows nothing by default, and never private, local or reserved addresses
/// unless the node permits them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KernelPolicy {
    /// Allow all public addresses and ports.
    pub internet: bool,
    /// Allowed prefixes.
    pub allow: Vec<Prefixed>,
    /// Let through and report what is not allowed, except for addresses that are never allowed.
    pub dry_run: bool,
    /// The group of the sandbox, which stays as long as it does.
    pub group: GroupId,
    /// Limits. Those of the sandbox that has been in the group longest are in force.
    pub limits: NetworkLimits,
    /// Addresses that the policy's names have resolved to. They replace those of earlier
    /// [`Request::Allow`](super::Request::Allow).
    pub resolved: Vec<Resolved>,
}

impl KernelPolicy {
    /// Writes and seals it.
    ///
    /// # Errors
    /// If there is no memory or no descriptor.
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

/// The kernel's counters of a sandbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Bytes let through from the sandbox, IP headers included.
    pub bytes_out: u64,
    /// Packets let through from the sandbox.
    pub packets_out: u64,
    /// Bytes to the sandbox.
    pub bytes_in: u64,
    /// Packets to the sandbox.
    pub packets_in: u64,
    /// Connections started, UDP exchanges included.
    pub connections: u64,
    /// Packets refused.
    pub refused: u64,
    /// Those of the connections that were begun past the rules.
    pub fast: u64,
}

impl Fields for Prefix {
    fn write(&self, to: &mut Vec<u8>) {
        (self.address, self.length).write(to);
    }

    fn read(from: &mut &[u8]) -> Result<Self, FieldError> {
        let (address, length) = Fields::read(from)?;
        // The other bits must be zero: each prefix has one form.
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
    group,
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
    fast,
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
            group: u64::MAX,
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
