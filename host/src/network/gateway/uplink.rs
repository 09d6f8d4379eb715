//! Connects the gateway to the host's own network namespace, once a sandbox needs it.

use std::io;

use rustix::net::{AddressFamily, SocketType};

use super::sysctl::forward;
use super::{Gateway, default, lock};
use crate::SandboxError;
use crate::network::address::{Slots, UPLINK};
use crate::network::connections::Connections;
use crate::network::link::{End, Route};
use crate::network::nft::Nftables;
use crate::network::rules;
use crate::network::sandbox::within;
use crate::protocol::Prefix;

/// Name of the gateway's interface to the host. On the host, it gets the first of these names that is free: another
/// Hearth may have one.
const OUTWARD: &str = "up";
const HOST_NAMES: u32 = 16;

impl Gateway {
    /// Joins the gateway to the host's own network namespace, if it is not.
    pub(super) fn join(&mut self) -> Result<(), SandboxError> {
        if self.host.is_some() {
            return Ok(());
        }
        let failed = |error: io::Error| SandboxError::step("network", error);
        let number = self.pair_with_host().map_err(failed)?;
        let name = host_name(number);
        let joined = within(&self.host_namespace, || {
            // Any socket will do for the request.
            let socket = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None)?;
            let index = rustix::net::netdevice::name_to_index(&socket, &name)?;
            let (route, nftables) = (Route::open()?, Nftables::open()?);
            rules::join(&nftables, index, &name, &self.addresses)?;
            route.up(index)?;
            for block in self.blocks() {
                route.route(index, block, None)?;
            }
            forward(self.has_ipv6)?;
            Ok((nftables, Connections::open()?))
        });
        let (nftables, connections) = match joined {
            Ok(joined) => joined,
            Err(error) => {
                // The next sandbox tries again.
                let _ = self.route.remove(UPLINK);
                return Err(failed(error));
            }
        };
        self.host = Some(nftables);
        // From now on there may be connections in the host's own namespace, too.
        let _ = self.remover.must(move |remover| {
            remover.host = Some(connections);
            None
        });
        Ok(())
    }

    /// Creates the pair of interfaces to the host, takes the addresses for its number, and returns the number.
    fn pair_with_host(&mut self) -> io::Result<u32> {
        let here = End {
            name: OUTWARD,
            index: UPLINK,
        };
        for number in 0..HOST_NAMES {
            let there = End {
                name: &host_name(number),
                index: 0,
            };
            match self.route.pair(&here, &there, &self.host_namespace) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => {
                    let joined = made.and_then(|()| self.take_share(number));
                    if joined.is_err() {
                        let _ = self.route.remove(UPLINK);
                    }
                    return joined.map(|()| number);
                }
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    fn take_share(&mut self, number: u32) -> io::Result<()> {
        let share = self.all.share(number);
        self.addresses = share.ok_or(io::ErrorKind::AddrNotAvailable)?;
        *lock(&self.slots) = Slots::new(&self.addresses);
        self.route.up(UPLINK)?;
        for address in self.present(self.addresses.of(0)) {
            self.route.address(UPLINK, address)?;
            self.route.route(UPLINK, default(address), None)?;
        }
        Ok(())
    }

    fn blocks(&self) -> impl Iterator<Item = Prefix> {
        let has_ipv6 = self.has_ipv6;
        let blocks = self.addresses.blocks().into_iter();
        blocks.filter(move |block| has_ipv6 || block.address().is_ipv4())
    }
}

fn host_name(number: u32) -> String {
    format!("hearth{number}")
}
