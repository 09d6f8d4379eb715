//! The maps of the ingress. Their descriptors come from the process that loaded the programs; who holds one may use the
//! map without privileges, and can make none.

use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

use aya::Pod;
use aya::maps::lpm_trie::Key;
use aya::maps::{
    Array, HashMap, LpmTrie, Map, MapData, PerCpuArray, PerCpuValues, SockMap, XskMap,
};

use crate::clock;
use crate::limits::Limits;
use crate::packet::UDP;
use crate::records::{
    Bucket, BucketKey, Function, LISTED_ALLOW, LISTED_DENY, LISTENERS, Listed, Node, PORT_REDIRECT,
    PORT_STEER, PORTS_OF_A_PROTOCOL, Port, SETTINGS_CHECK_ADDRESS, Settings, Sum, Traffic,
};

/// Why a map could not be used.
#[derive(Debug, thiserror::Error)]
pub enum MapError {
    /// The descriptor is not that of the map that was expected.
    #[error("this is not the map `{0}`: {1}")]
    NotTheMap(&'static str, String),
    /// There are not as many descriptors as maps.
    #[error("{0} descriptors, which is not one a map")]
    Count(usize),
    /// The function's index is 0, or the maps have no room for it.
    #[error("no room for function {0}")]
    Index(u32),
    /// The map is full: every entry is in use.
    #[error("the map is full")]
    Full,
    /// The kernel refused.
    #[error("the map refused: {0}")]
    Kernel(String),
}

impl From<aya::maps::MapError> for MapError {
    fn from(error: aya::maps::MapError) -> Self {
        let full = |error: &std::io::Error| {
            matches!(
                rustix::io::Errno::from_io_error(error),
                Some(rustix::io::Errno::NOSPC | rustix::io::Errno::TOOBIG)
            )
        };
        match &error {
            aya::maps::MapError::SyscallError(call) if full(&call.io_error) => Self::Full,
            _ => Self::Kernel(match std::error::Error::source(&error) {
                Some(source) => format!("{error}: {source}"),
                None => error.to_string(),
            }),
        }
    }
}

/// The maps' descriptors, for a process that is to use them: it gets them over a Unix socket, in this order.
#[derive(Debug)]
pub struct Descriptors(Vec<OwnedFd>);

impl Descriptors {
    /// The maps, in the order of their descriptors.
    pub const NAMES: [&'static str; 12] = [
        "ports",
        "functions",
        "totals",
        "traffic",
        "node",
        "buckets",
        "listed4",
        "listed6",
        "addresses",
        "settings",
        "sockets",
        "listeners",
    ];

    /// From descriptors in the order of [`NAMES`](Self::NAMES).
    ///
    /// # Errors
    /// [`MapError::Count`]. What they are is checked by [`Maps::new`].
    pub fn new(descriptors: Vec<OwnedFd>) -> Result<Self, MapError> {
        if descriptors.len() != Self::NAMES.len() {
            return Err(MapError::Count(descriptors.len()));
        }
        Ok(Self(descriptors))
    }

    /// The descriptors, to be sent.
    #[must_use]
    pub fn into_inner(self) -> Vec<OwnedFd> {
        self.0
    }
}

/// All maps of the ingress.
pub struct Maps {
    /// Who has which port.
    pub ports: Ports,
    /// The functions' limits and counters.
    pub functions: Functions,
    /// What sources did.
    pub sources: Sources,
    /// Whom to let through and whom not.
    pub lists: Lists,
    /// The host's own addresses.
    pub addresses: Addresses,
    /// The listening sockets that connections are steered to.
    pub listeners: Listeners,
    node: PerCpuArray<MapData, Node>,
    settings: Array<MapData, Settings>,
    sockets: XskMap<MapData>,
}

/// The map behind a descriptor, as what it has to be.
fn typed<T: TryFrom<Map, Error = aya::maps::MapError>>(
    name: &'static str,
    descriptor: OwnedFd,
) -> Result<T, MapError> {
    MapData::from_fd(descriptor)
        .and_then(Map::from_map_data)
        .and_then(T::try_from)
        .map_err(|error| MapError::NotTheMap(name, error.to_string()))
}

pub(crate) fn sum<T: Pod + Sum + Default>(values: &PerCpuValues<T>) -> T {
    let mut sum = T::default();
    for value in values.iter() {
        sum.add(value);
    }
    sum
}

impl Maps {
    /// The maps behind the descriptors.
    ///
    /// # Errors
    /// [`MapError::NotTheMap`] if one is something else, or its records have other sizes.
    pub fn new(descriptors: Descriptors) -> Result<Self, MapError> {
        let mut next = Descriptors::NAMES.into_iter().zip(descriptors.0);
        let mut take = || next.next().expect("as many descriptors as names");
        macro_rules! map {
            () => {{
                let (name, descriptor) = take();
                typed(name, descriptor)?
            }};
        }
        let ports = Ports(map!());
        let functions = Functions {
            limits: map!(),
            totals: map!(),
            traffic: map!(),
        };
        let node = map!();
        let sources = Sources(map!());
        let lists = Lists {
            ipv4: map!(),
            ipv6: map!(),
        };
        let addresses = Addresses(map!());
        let settings = map!();
        let sockets = map!();
        let listeners = Listeners(map!());
        Ok(Self {
            ports,
            functions,
            sources,
            lists,
            addresses,
            listeners,
            node,
            settings,
            sockets,
        })
    }

    /// What the interfaces' program saw, in all.
    ///
    /// # Errors
    /// [`MapError::Kernel`].
    pub fn node(&self) -> Result<Node, MapError> {
        Ok(sum(&self.node.get(&0, 0)?))
    }

    /// Sets what holds for all functions: the lengths of the prefixes by which sources are told apart (of IPv4 and IPv6
    /// addresses), the largest frame that AF_XDP takes, and whether only packets to [`Addresses`] are for functions.
    ///
    /// # Errors
    /// [`MapError::Kernel`].
    pub fn set(
        &mut self,
        prefixes: (u8, u8),
        largest_redirect: u32,
        check_address: bool,
    ) -> Result<(), MapError> {
        let settings = Settings {
            flags: if check_address {
                SETTINGS_CHECK_ADDRESS
            } else {
                0
            },
            largest_redirect,
            mask4: mask::<4>(prefixes.0),
            unused: 0,
            mask6: mask::<16>(prefixes.1),
        };
        Ok(self.settings.set(0, settings, 0)?)
    }

    /// Gives the datagrams of a receive queue to an AF_XDP socket that is bound to it.
    ///
    /// # Errors
    /// [`MapError::Kernel`], also for a queue beyond the map.
    pub fn set_socket(&mut self, queue: u32, socket: impl AsFd) -> Result<(), MapError> {
        Ok(self.sockets.set(queue, socket.as_fd().as_raw_fd(), 0)?)
    }

    /// Leaves the datagrams of a receive queue to the stack.
    ///
    /// # Errors
    /// [`MapError::Kernel`], also if there was no socket.
    pub fn unset_socket(&mut self, queue: u32) -> Result<(), MapError> {
        Ok(self.sockets.unset(queue)?)
    }
}

/// The first `length` bits.
pub(crate) fn mask<const N: usize>(length: u8) -> [u8; N] {
    std::array::from_fn(|byte| {
        let bits = usize::from(length).saturating_sub(byte * 8).min(8);
        (0xff00_u16 >> bits) as u8
    })
}

/// Who has which port. An update is one store: a packet sees it or not.
pub struct Ports(Array<MapData, Port>);

impl Ports {
    fn index(protocol: u8, port: u16) -> u32 {
        u32::from(port)
            + if protocol == UDP {
                PORTS_OF_A_PROTOCOL
            } else {
                0
            }
    }

    /// Gives a TCP port to a function. With `steer`, its connections go to the listening socket in [`Listeners`].
    ///
    /// # Errors
    /// [`MapError::Kernel`].
    pub fn give_tcp(&mut self, port: u16, function: u32, steer: bool) -> Result<(), MapError> {
        let flags = if steer { PORT_STEER } else { 0 };
        Ok(self.0.set(u32::from(port), Port { function, flags }, 0)?)
    }

    /// Gives a UDP port to a function. With `redirect`, its datagrams go to AF_XDP where there is a socket.
    ///
    /// # Errors
    /// [`MapError::Kernel`].
    pub fn give_udp(&mut self, port: u16, function: u32, redirect: bool) -> Result<(), MapError> {
        let flags = if redirect { PORT_REDIRECT } else { 0 };
        Ok(self
            .0
            .set(Self::index(UDP, port), Port { function, flags }, 0)?)
    }

    /// Takes a port back.
    ///
    /// # Errors
    /// [`MapError::Kernel`].
    pub fn take(&mut self, protocol: u8, port: u16) -> Result<(), MapError> {
        Ok(self
            .0
            .set(Self::index(protocol, port), Port::default(), 0)?)
    }

    /// The function that has the port.
    ///
    /// # Errors
    /// [`MapError::Kernel`].
    pub fn owner(&self, protocol: u8, port: u16) -> Result<Option<u32>, MapError> {
        let port = self.0.get(&Self::index(protocol, port), 0)?;
        Ok((port.function != 0).then_some(port.function))
    }
}

/// The functions' limits and counters, by an index from 1.
pub struct Functions {
    limits: Array<MapData, Function>,
    totals: Array<MapData, u64>,
    traffic: PerCpuArray<MapData, Traffic>,
}

impl Functions {
    /// The largest index.
    #[must_use]
    pub fn last(&self) -> u32 {
        self.limits.len() - 1
    }

    fn check(&self, function: u32) -> Result<(), MapError> {
        if function == 0 || function > self.last() {
            return Err(MapError::Index(function));
        }
        Ok(())
    }

    /// Prepares an index for a function: its limits, a full bucket, counters at 0. Before it gets ports.
    ///
    /// # Errors
    /// [`MapError::Index`], [`MapError::Kernel`].
    pub fn add(&mut self, function: u32, limits: Limits) -> Result<(), MapError> {
        self.check(function)?;
        let cpus = self.traffic.get(&0, 0)?.len();
        for direction in 0..2 {
            let none = PerCpuValues::try_from(vec![Traffic::default(); cpus])
                .map_err(|error| MapError::Kernel(error.to_string()))?;
            self.traffic.set(2 * function + direction, none, 0)?;
        }
        self.totals.set(function, 0, 0)?;
        self.limit(function, limits)
    }

    /// Changes a function's limits.
    ///
    /// # Errors
    /// [`MapError::Index`], [`MapError::Kernel`].
    pub fn limit(&mut self, function: u32, limits: Limits) -> Result<(), MapError> {
        self.check(function)?;
        Ok(self.limits.set(function, Function::from(limits), 0)?)
    }

    /// What a function received and sent.
    ///
    /// # Errors
    /// [`MapError::Index`], [`MapError::Kernel`].
    pub fn traffic(&self, function: u32) -> Result<[Traffic; 2], MapError> {
        self.check(function)?;
        let received = sum(&self.traffic.get(&(2 * function), 0)?);
        let sent = sum(&self.traffic.get(&(2 * function + 1), 0)?);
        Ok([received, sent])
    }
}

/// What sources did: the map forgets those that were quiet for longest.
pub struct Sources(HashMap<MapData, BucketKey, Bucket>);

impl Sources {
    /// All, as function, prefix and bucket. Costs two system calls an entry.
    #[must_use]
    pub fn all(&self) -> Vec<(u32, IpAddr, Bucket)> {
        // An entry that was evicted meanwhile is an error here, and no longer of interest.
        let found = self.0.iter().filter_map(Result::ok);
        found
            .map(|(key, bucket)| {
                (
                    key.function,
                    Ipv6Addr::from(key.prefix).to_canonical(),
                    bucket,
                )
            })
            .collect()
    }
}

/// What is to happen to a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Let through past the limits.
    Allow,
    /// Dropped.
    Deny,
}

/// Prefixes of sources, for all functions. The longest that matches and has not expired decides.
pub struct Lists {
    ipv4: LpmTrie<MapData, [u8; 4], Listed>,
    ipv6: LpmTrie<MapData, [u8; 16], Listed>,
}

impl Lists {
    /// Lists a prefix, for a time or until it is removed. Replaces what was said of it.
    ///
    /// # Errors
    /// [`MapError::Full`], [`MapError::Kernel`]; also for a prefix longer than the address.
    pub fn insert(
        &mut self,
        address: IpAddr,
        length: u8,
        verdict: Verdict,
        lasts: Option<Duration>,
    ) -> Result<(), MapError> {
        let length = u32::from(length);
        let listed = Listed {
            expires: lasts.map(clock::after).unwrap_or_default(),
            verdict: match verdict {
                Verdict::Allow => LISTED_ALLOW,
                Verdict::Deny => LISTED_DENY,
            },
            length,
        };
        match address.to_canonical() {
            IpAddr::V4(address) => {
                Ok(self
                    .ipv4
                    .insert(&Key::new(length, address.octets()), listed, 0)?)
            }
            IpAddr::V6(address) => {
                Ok(self
                    .ipv6
                    .insert(&Key::new(length, address.octets()), listed, 0)?)
            }
        }
    }

    /// Removes just this prefix.
    ///
    /// # Errors
    /// [`MapError::Kernel`], also if it is not listed.
    pub fn remove(&mut self, address: IpAddr, length: u8) -> Result<(), MapError> {
        let length = u32::from(length);
        match address.to_canonical() {
            IpAddr::V4(address) => Ok(self.ipv4.remove(&Key::new(length, address.octets()))?),
            IpAddr::V6(address) => Ok(self.ipv6.remove(&Key::new(length, address.octets()))?),
        }
    }

    /// All prefixes with their verdicts and, where they expire, when on the [`clock`].
    #[must_use]
    pub fn all(&self) -> Vec<(IpAddr, u8, Verdict, Option<u64>)> {
        let ipv4 = self.ipv4.iter().filter_map(Result::ok);
        let ipv6 = self.ipv6.iter().filter_map(Result::ok);
        let ipv4 = ipv4.map(|(key, listed)| (IpAddr::from(key.data()), listed));
        let ipv6 = ipv6.map(|(key, listed)| (IpAddr::from(key.data()), listed));
        ipv4.chain(ipv6)
            .map(|(address, listed)| {
                let verdict = if listed.verdict == LISTED_DENY {
                    Verdict::Deny
                } else {
                    Verdict::Allow
                };
                let expires = (listed.expires != 0).then_some(listed.expires);
                (address, listed.length as u8, verdict, expires)
            })
            .collect()
    }

    /// Removes what has expired, which makes room and look-ups short. Says how many.
    ///
    /// # Errors
    /// [`MapError::Kernel`].
    pub fn sweep(&mut self) -> Result<usize, MapError> {
        let now = clock::now();
        let expired: Vec<_> = self
            .all()
            .into_iter()
            .filter(|(.., expires)| expires.is_some_and(|expires| expires <= now))
            .collect();
        for (address, length, ..) in &expired {
            self.remove(*address, *length)?;
        }
        Ok(expired.len())
    }
}

/// The host's own addresses: packets to others are not for functions.
pub struct Addresses(HashMap<MapData, [u8; 16], u32>);

impl Addresses {
    /// Makes these the host's addresses: adds first, removes after, so that none that stays is missing meanwhile.
    ///
    /// # Errors
    /// [`MapError::Full`], [`MapError::Kernel`].
    pub fn replace(&mut self, addresses: &[IpAddr]) -> Result<(), MapError> {
        let wanted: Vec<[u8; 16]> = addresses
            .iter()
            .map(|address| match address {
                IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
                IpAddr::V6(address) => address.octets(),
            })
            .collect();
        for address in &wanted {
            self.0.insert(address, 1, 0)?;
        }
        let old: Vec<[u8; 16]> = self.0.keys().filter_map(Result::ok).collect();
        for address in old.iter().filter(|address| !wanted.contains(address)) {
            self.0.remove(address)?;
        }
        Ok(())
    }
}

/// The listening sockets that connections to functions' ports go to.
pub struct Listeners(SockMap<MapData>);

impl Listeners {
    /// Steers connections to `ipv4` and `ipv6`, which may be the same socket if it takes both. It is replaced in one step.
    ///
    /// # Errors
    /// [`MapError::Kernel`], also for a socket that does not listen.
    pub fn set(&mut self, ipv4: &impl AsRawFd, ipv6: &impl AsRawFd) -> Result<(), MapError> {
        self.0.set(LISTENERS[0], ipv4, 0)?;
        Ok(self.0.set(LISTENERS[1], ipv6, 0)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_has_as_many_bits_as_the_prefix() {
        assert_eq!(mask::<4>(0), [0, 0, 0, 0]);
        assert_eq!(mask::<4>(24), [255, 255, 255, 0]);
        assert_eq!(mask::<4>(29), [255, 255, 255, 248]);
        assert_eq!(mask::<4>(32), [255; 4]);
        assert_eq!(mask::<16>(64)[7..9], [255, 0]);
    }
}
