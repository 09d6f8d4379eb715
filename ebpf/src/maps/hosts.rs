//! The host's addresses and listening sockets.

use std::net::IpAddr;
use std::os::fd::AsRawFd;

use aya::maps::{HashMap, MapData, SockMap};

use super::MapError;
use crate::records::LISTENERS;

/// The host's own addresses: packets to others are not for functions.
pub struct Addresses(HashMap<MapData, [u8; 16], u32>);

impl Addresses {
    pub(super) fn new(map: HashMap<MapData, [u8; 16], u32>) -> Self {
        Self(map)
    }

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
    pub(super) fn new(map: SockMap<MapData>) -> Self {
        Self(map)
    }

    /// Steers connections to `ipv4` and `ipv6`, which may be the same socket if it takes both. It is replaced in one step.
    ///
    /// # Errors
    /// [`MapError::Kernel`], also for a socket that does not listen.
    pub fn set(&mut self, ipv4: &impl AsRawFd, ipv6: &impl AsRawFd) -> Result<(), MapError> {
        self.0.set(LISTENERS[0], ipv4, 0)?;
        Ok(self.0.set(LISTENERS[1], ipv6, 0)?)
    }
}
