//! The maps of the ingress. Their descriptors come from the process that loaded the programs; who holds one may use the
//! map without privileges, and can make none.

mod functions;
mod hosts;
mod lists;
mod ports;
mod sources;

use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;

use aya::Pod;
use aya::maps::{Array, HashMap, Map, MapData, PerCpuArray, PerCpuValues, XskMap};

pub use functions::Functions;
pub use hosts::{Addresses, Listeners};
pub use lists::{Lists, Verdict};
pub use ports::Ports;
pub use sources::Sources;
pub(crate) use sources::in_use;

use crate::records::{
    Node, Queue, SETTINGS_CHECK_ADDRESS, SETTINGS_STEER_ADDRESS, SETTINGS_STEER_IPV4, Settings, Sum,
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
    pub const NAMES: [&'static str; 13] = [
        "ports",
        "functions",
        "totals",
        "traffic",
        "node",
        "sources",
        "listed4",
        "listed6",
        "addresses",
        "settings",
        "queues",
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
    /// What sources did. Shared, because reading all takes a while.
    pub sources: Arc<Sources>,
    /// Whom to let through and whom not.
    pub lists: Lists,
    /// The host's own addresses.
    pub addresses: Addresses,
    /// The listening sockets that connections are steered to.
    pub listeners: Listeners,
    node: PerCpuArray<MapData, Node>,
    settings: Array<MapData, Settings>,
    queues: HashMap<MapData, Queue, u32>,
    sockets: XskMap<MapData>,
}

/// The map behind a descriptor, as what it has to be.
pub(crate) fn typed<T: TryFrom<Map, Error = aya::maps::MapError>>(
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
        let ports = Ports::new(map!());
        let functions = Functions::new(map!(), map!(), map!());
        let node = map!();
        let sources = Arc::new(Sources::new(map!()));
        let listed = (map!(), map!());
        let addresses = Addresses::new(map!());
        let (name, descriptor) = take();
        let copy = descriptor.try_clone();
        let copy = copy.map_err(|error| MapError::Kernel(error.to_string()))?;
        let settings = typed(name, descriptor)?;
        let lists = Lists::new(listed.0, listed.1, typed(name, copy)?);
        let queues = map!();
        let sockets = map!();
        let listeners = Listeners::new(map!());
        Ok(Self {
            ports,
            functions,
            sources,
            lists,
            addresses,
            listeners,
            node,
            settings,
            queues,
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
        let mut settings = self.settings.get(&0, 0)?;
        settings.flags &= !SETTINGS_CHECK_ADDRESS;
        if check_address {
            settings.flags |= SETTINGS_CHECK_ADDRESS;
        }
        settings.largest_redirect = largest_redirect;
        settings.mask4 = mask(prefixes.0.saturating_add(96));
        settings.mask6 = mask(prefixes.1);
        Ok(self.settings.set(0, settings, 0)?)
    }

    /// Steers only connections to this address: `0.0.0.0` is all of IPv4, `::` all of both.
    ///
    /// # Errors
    /// [`MapError::Kernel`].
    pub fn steer_to(&mut self, address: IpAddr) -> Result<(), MapError> {
        let mut settings = self.settings.get(&0, 0)?;
        settings.flags &= !(SETTINGS_STEER_ADDRESS | SETTINGS_STEER_IPV4);
        if !address.is_unspecified() {
            settings.flags |= SETTINGS_STEER_ADDRESS;
        } else if address.is_ipv4() {
            settings.flags |= SETTINGS_STEER_IPV4;
        }
        settings.steer = match address {
            IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
            IpAddr::V6(address) => address.octets(),
        };
        Ok(self.settings.set(0, settings, 0)?)
    }

    /// Gives the datagrams of an interface's receive queue to an AF_XDP socket that is bound to it. It is number `slot` of all
    /// sockets, of which there are [`SOCKETS`](crate::records::SOCKETS) at most.
    ///
    /// # Errors
    /// [`MapError::Kernel`], also for a slot beyond the map.
    pub fn set_socket(
        &mut self,
        slot: u32,
        interface: u32,
        number: u32,
        socket: impl AsFd,
    ) -> Result<(), MapError> {
        self.sockets.set(slot, socket.as_fd().as_raw_fd(), 0)?;
        Ok(self.queues.insert(Queue { interface, number }, slot, 0)?)
    }

    /// Leaves the datagrams of a receive queue to the stack.
    ///
    /// # Errors
    /// [`MapError::Kernel`], also if there was no socket.
    pub fn unset_socket(&mut self, interface: u32, number: u32) -> Result<(), MapError> {
        Ok(self.queues.remove(&Queue { interface, number })?)
    }
}

/// The first `length` bits.
pub(crate) fn mask(length: u8) -> [u8; 16] {
    std::array::from_fn(|byte| {
        let bits = usize::from(length).saturating_sub(byte * 8).min(8);
        (0xff00_u16 >> bits) as u8
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_has_as_many_bits_as_the_prefix() {
        assert_eq!(mask(0), [0; 16]);
        assert_eq!(mask(64)[7..9], [255, 0]);
        assert_eq!(mask(125)[14..], [255, 248]);
        assert_eq!(mask(128), [255; 16]);
        assert_eq!(mask(255), [255; 16]);
    }
}
