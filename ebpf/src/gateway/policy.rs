//! What may begin on the fast way: a part of what the rules allow, which decide about all the rest.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::ops::RangeInclusive;

use aya::Ebpf;

use super::records::{
    ANY_SLOT, Allowed, CLASS_FORBIDDEN, CLASS_PERMITTED, Group, Prefix, Resolved, SANDBOX_ACTIVE,
    SANDBOX_INTERNET, SANDBOX_KNOWN, SANDBOX_NAMES, SANDBOX_PREFIXES, Sandbox, octets,
};
use super::table::Table;

const SECOND: u64 = 1_000_000_000;
/// Bytes that may exceed the rate in a burst, beside those of a second.
const BURST_BYTES: u64 = 512 << 10;
/// Bits of a prefix's key before its address.
const BEFORE: u32 = 32;

/// Limits of a group; 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Connections at a time.
    pub connections: u32,
    /// New ones a second.
    pub new_per_second: u32,
    /// Bytes a second in each direction.
    pub bytes_per_second: u64,
}

impl From<Limits> for Group {
    fn from(limits: Limits) -> Self {
        let per_second = |count: u64| match count {
            0 => 0,
            count => SECOND.div_ceil(count).max(1),
        };
        let (new, bytes) = (limits.new_per_second.into(), limits.bytes_per_second);
        let interval = per_second(new);
        Self {
            new_interval: interval,
            // Those of a second may come at once.
            new_slack: interval * new.saturating_sub(1),
            bytes_per_second: bytes,
            bytes_slack: SECOND + (BURST_BYTES * SECOND).checked_div(bytes).unwrap_or(0),
            connections: limits.connections.min(i32::MAX.cast_unsigned()),
            unused: 0,
        }
    }
}

/// An address with the first bits that count.
pub type Network = (IpAddr, u8);

/// A port of an address, or 0 for all, and until when new connections to it may begin, on the [`clock`](crate::clock).
pub type Port = (IpAddr, u16, u64);

/// What TCP connections of a sandbox may begin.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// Those to every public address.
    pub internet: bool,
    /// Those to these networks at these ports.
    pub networks: Vec<(Network, RangeInclusive<u16>)>,
    /// Those to addresses of names.
    pub names: Vec<Port>,
}

/// What is in the maps of one sandbox.
#[derive(Default)]
struct Known {
    group: u32,
    flags: u32,
    prefixes: Vec<Prefix>,
    names: HashMap<Resolved, u64>,
}

/// See the module.
pub(super) struct Policies {
    sandboxes: Table<u32, Sandbox>,
    groups: Table<u32, Group>,
    prefixes: Table<Prefix, Allowed>,
    names: Table<Resolved, u64>,
    known: HashMap<u16, Known>,
}

impl Policies {
    pub(super) fn of(object: &Ebpf) -> io::Result<Self> {
        Ok(Self {
            sandboxes: Table::of(object, "sandboxes")?,
            groups: Table::of(object, "groups")?,
            prefixes: Table::of(object, "prefixes")?,
            names: Table::of(object, "resolved")?,
            known: HashMap::new(),
        })
    }

    /// Networks that are never reached, and those that are only where a policy lists them.
    pub(super) fn classify(&self, forbidden: &[Network], permitted: &[Network]) -> io::Result<()> {
        // Of a network that is both, the rules know.
        for (class, networks) in [(CLASS_PERMITTED, permitted), (CLASS_FORBIDDEN, forbidden)] {
            for network in networks {
                let allowed = Allowed {
                    class,
                    ..Allowed::default()
                };
                self.prefixes.set(&prefix(ANY_SLOT, *network), &allowed)?;
            }
        }
        Ok(())
    }

    pub(super) fn limit(&self, group: u32, limits: Limits) -> io::Result<()> {
        self.groups.set(&group, &limits.into())
    }

    fn write(&self, slot: u16, known: &Known) -> io::Result<()> {
        let sandbox = Sandbox {
            flags: known.flags,
            group: known.group,
        };
        self.sandboxes.set(&slot.into(), &sandbox)
    }

    /// Leaves new connections to the rules, which a sandbox begins with.
    pub(super) fn pause(&mut self, slot: u16, group: u32) -> io::Result<()> {
        let known = self.known.entry(slot).or_default();
        known.flags = SANDBOX_KNOWN;
        known.group = group;
        let sandbox = Sandbox {
            flags: known.flags,
            group,
        };
        self.sandboxes.set(&slot.into(), &sandbox)
    }

    /// Replaces the policy of one that is paused. What is allowed is so when all of it is.
    pub(super) fn replace(&mut self, slot: u16, policy: &Policy) -> io::Result<()> {
        let Some(mut known) = self.known.remove(&slot) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let done = self
            .clear(&mut known)
            .and_then(|()| self.fill(slot, &mut known, policy));
        self.known.insert(slot, known);
        done
    }

    fn fill(&self, slot: u16, known: &mut Known, policy: &Policy) -> io::Result<()> {
        for (key, allowed) in merged(slot, &policy.networks) {
            known.prefixes.push(key);
            self.prefixes.set(&key, &allowed)?;
        }
        for (address, port, until) in &policy.names {
            let key = resolved(slot, *address, *port);
            known.names.insert(key, *until);
            self.names.set(&key, until)?;
        }
        let flag = |flag: u32, is_set: bool| if is_set { flag } else { 0 };
        known.flags = SANDBOX_KNOWN
            | SANDBOX_ACTIVE
            | flag(SANDBOX_INTERNET, policy.internet)
            | flag(SANDBOX_NAMES, !known.names.is_empty())
            | flag(SANDBOX_PREFIXES, !known.prefixes.is_empty());
        self.write(slot, known)
    }

    /// Allows ports of an address of a name.
    pub(super) fn allow(&mut self, slot: u16, ports: &[Port], now: u64) -> io::Result<()> {
        let Some(mut known) = self.known.remove(&slot) else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let done = self.add(slot, &mut known, ports, now);
        self.known.insert(slot, known);
        done
    }

    fn add(&self, slot: u16, known: &mut Known, ports: &[Port], now: u64) -> io::Result<()> {
        let expired = known.names.iter().filter(|(_, until)| **until < now);
        let expired: Vec<_> = expired.map(|(key, _)| *key).collect();
        for key in expired {
            self.names.remove(&key)?;
            known.names.remove(&key);
        }
        for (address, port, until) in ports {
            let key = resolved(slot, *address, *port);
            known.names.insert(key, *until);
            self.names.set(&key, until)?;
        }
        if known.flags & SANDBOX_NAMES == 0 {
            known.flags |= SANDBOX_NAMES;
            self.write(slot, known)?;
        }
        Ok(())
    }

    fn clear(&self, known: &mut Known) -> io::Result<()> {
        while let Some(key) = known.prefixes.last() {
            self.prefixes.remove(key)?;
            known.prefixes.pop();
        }
        for key in known.names.keys() {
            self.names.remove(key)?;
        }
        known.names.clear();
        Ok(())
    }

    /// Forgets a sandbox.
    pub(super) fn remove(&mut self, slot: u16) -> io::Result<()> {
        self.sandboxes.set(&slot.into(), &Sandbox::default())?;
        match self.known.remove(&slot) {
            Some(mut known) => self.clear(&mut known),
            None => Ok(()),
        }
    }
}

fn prefix(slot: u16, (address, length): Network) -> Prefix {
    let (family, before) = match address {
        IpAddr::V4(_) => (4_u16, BEFORE + 96),
        IpAddr::V6(_) => (6, BEFORE),
    };
    Prefix {
        length: before + u32::from(length),
        family: family.to_be_bytes(),
        slot: slot.to_be_bytes(),
        address: octets(address),
    }
}

fn resolved(slot: u16, address: IpAddr, port: u16) -> Resolved {
    Resolved {
        address: octets(address),
        slot,
        port: port.to_be_bytes(),
    }
}

/// One entry a network, with the ports of all networks that contain it: the kernel finds the longest only. Of more than
/// [`RANGES`] ports the rest is left to the rules.
fn merged(slot: u16, all: &[(Network, RangeInclusive<u16>)]) -> HashMap<Prefix, Allowed> {
    let mut found = HashMap::new();
    for (network, _) in all {
        let key = prefix(slot, *network);
        let mut allowed = Allowed::default();
        let around = all.iter().filter(|(other, _)| contains(*other, *network));
        for ((_, ports), to) in around.zip(&mut allowed.ports) {
            *to = [*ports.start(), *ports.end()];
            allowed.count += 1;
        }
        found.insert(key, allowed);
    }
    found
}

/// Whether the first network contains the other.
fn contains(outer: Network, inner: Network) -> bool {
    let bits = |address| u128::from_be_bytes(octets(address));
    let width = if outer.0.is_ipv4() { 32 } else { 128 };
    let shift = width - u32::from(outer.1);
    outer.0.is_ipv4() == inner.0.is_ipv4()
        && outer.1 <= inner.1
        && bits(outer.0).checked_shr(shift) == bits(inner.0).checked_shr(shift)
}

#[cfg(test)]
mod tests {
    use super::super::records::RANGES;
    use super::*;

    fn network(text: &str) -> Network {
        let (address, length) = text.split_once('/').unwrap();
        (address.parse().unwrap(), length.parse().unwrap())
    }

    #[test]
    fn a_network_has_the_ports_of_those_around_it() {
        let all = [
            (network("0.0.0.0/0"), 1..=1),
            (network("192.0.2.0/24"), 443..=443),
            (network("192.0.2.0/24"), 80..=81),
            (network("::/0"), 5..=5),
        ];
        let found = merged(7, &all);
        assert_eq!(found.len(), 3);
        let of = |text: &str| found[&prefix(7, network(text))];
        let inner = of("192.0.2.0/24");
        assert_eq!(
            (inner.count, inner.ports[..3].to_vec()),
            (3, vec![[1, 1], [443, 443], [80, 81]])
        );
        assert_eq!((of("0.0.0.0/0").count, of("::/0").count), (1, 1));
        assert_eq!(prefix(7, network("192.0.2.0/24")).length, 32 + 96 + 24);
        let many: Vec<_> = (0..20)
            .map(|port| (network("192.0.2.1/32"), port..=port))
            .collect();
        let found = merged(7, &many);
        assert_eq!(usize::from(found.values().next().unwrap().count), RANGES);
    }

    #[test]
    fn limits_become_intervals() {
        let limits = Limits {
            connections: 5,
            new_per_second: 10,
            bytes_per_second: 1 << 20,
        };
        let group = Group::from(limits);
        assert_eq!(
            (group.new_interval, group.new_slack),
            (SECOND / 10, SECOND / 10 * 9)
        );
        assert_eq!(group.bytes_slack, SECOND + SECOND / 2);
        assert_eq!(Group::from(Limits::default()).new_interval, 0);
    }
}
