//! The gateway: the network namespace between the sandboxes and the host's own. The thread that made it works in it.
//!
//! - [`changes`]: of sandboxes that run. [`removal`]: of those that are gone. [`sysctl`]: settings of namespaces.

mod changes;
mod removal;
mod sysctl;

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rustix::net::{AddressFamily, SocketType};

use self::changes::until;
pub(super) use self::removal::{Leftover, Remover};
use self::sysctl::{forward, has_ipv6, set};
use super::address::{Addresses, INTERFACE, NetworkSettings, Slots, UPLINK};
use super::connections::{Connections, Sockets};
use super::link::{End, Route};
use super::nft::Nftables;
use super::rules::Entry;
use super::sandbox::{Inside, current, no_link_local, within};
use super::sys::unshare_network;
use super::{Attached, rules};
use crate::SandboxError;
use crate::protocol::{KernelPolicy, Key, NetworkLimits, Prefix};

/// Name of a sandbox's interface inside, and its number there, which leaves room for what the kernel makes by itself.
const INSIDE: End<'_> = End {
    name: "eth0",
    index: 1000,
};
/// What the gateway's interface to the host is called here; there, as the first of these that is free: another Hearth may
/// have one.
const OUTWARD: &str = "up";
const HOST_NAMES: u32 = 16;
/// Settings of the gateway (`Documentation/networking/ip-sysctl.rst`, `nf_conntrack-sysctl.rst`), where the kernel has them.
const SYSCTLS: &[(&str, &str)] = &[
    ("ipv4/ip_forward", "1"),
    ("ipv6/conf/all/forwarding", "1"),
    // Every refusal is answered at once: whoever floods it loads its own CPU time only.
    ("ipv4/icmp_ratelimit", "0"),
    ("ipv4/icmp_ratemask", "0"),
    ("ipv6/icmp/ratelimit", "0"),
    ("ipv6/icmp/ratemask", "255"),
    // What belongs to no connection is not taken for one: it may belong to one that was cut.
    ("netfilter/nf_conntrack_tcp_loose", "0"),
    // Half-open connections count towards a sandbox's limit for this long, seconds.
    ("netfilter/nf_conntrack_tcp_timeout_syn_sent", "30"),
];
/// See the module.
pub(super) struct Gateway {
    /// What the Hearths of this host share.
    all: Addresses,
    /// This one's.
    addresses: Addresses,
    slots: Arc<Mutex<Slots>>,
    /// Whether there is IPv6, here and on the host.
    has_ipv6: bool,
    /// What is not public and permitted by the node all the same.
    permitted: Vec<Prefix>,
    host_namespace: OwnedFd,
    /// Holds the table in the host's own namespace, which ends with it. None while there is nothing there.
    host: Option<Nftables>,
    route: Route,
    nftables: Nftables,
    connections: Connections,
    sandboxes: HashMap<Key, Sandbox>,
}

struct Sandbox {
    slot: u32,
    namespace: OwnedFd,
    sockets: Sockets,
    limits: NetworkLimits,
    /// Until when an address is allowed at a port; 0 is any.
    resolved: HashMap<Entry, Instant>,
}

impl Gateway {
    /// Makes the calling thread's network namespace the gateway, with its rules. The host's own is left alone until there is
    /// a sandbox to join to it.
    pub(super) fn open(settings: &NetworkSettings) -> Result<Self, String> {
        let failed = |what: &str| {
            let what = what.to_owned();
            move |error: io::Error| format!("{what}: {error}")
        };
        let addresses = Addresses::new(settings)?;
        let host_has_ipv6 = has_ipv6();
        let host_namespace = current().map_err(failed("the network namespace"))?;
        unshare_network().map_err(failed("a network namespace"))?;
        no_link_local().map_err(failed("sysctl"))?;
        let nftables = Nftables::open().map_err(failed("netfilter"))?;
        rules::set_up(&nftables, &addresses, &settings.permitted).map_err(failed(
            "nftables (the kernel needs nf_tables with NAT, conntrack and connlimit)",
        ))?;
        for (name, value) in SYSCTLS {
            set(name, value).map_err(failed(name))?;
        }
        Ok(Self {
            slots: Arc::new(Mutex::new(Slots::new(&addresses))),
            all: addresses.clone(),
            addresses,
            has_ipv6: host_has_ipv6 && has_ipv6(),
            permitted: settings.permitted.clone(),
            host_namespace,
            host: None,
            route: Route::open().map_err(failed("rtnetlink"))?,
            nftables,
            connections: Connections::open().map_err(failed("conntrack"))?,
            sandboxes: HashMap::new(),
        })
    }

    pub(super) fn remover(&self) -> io::Result<Remover> {
        Ok(Remover {
            slots: self.slots.clone(),
            route: Route::open()?,
            here: Connections::open()?,
            host: None,
        })
    }

    /// Joins the gateway to the host's own network namespace, if it is not. Returns how a remover reaches that one.
    pub(super) fn join(&mut self) -> Result<Option<Connections>, SandboxError> {
        if self.host.is_some() {
            return Ok(None);
        }
        let failed = |error: io::Error| SandboxError::step("network", error);
        let number = self.pair_with_host().map_err(failed)?;
        let name = host_name(number);
        let joined = within(&self.host_namespace, || {
            // Any socket will do to ask.
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
        let (nftables, for_remover) = match joined {
            Ok(joined) => joined,
            Err(error) => {
                // It is tried again with the next sandbox.
                let _ = self.route.remove(UPLINK);
                return Err(failed(error));
            }
        };
        self.host = Some(nftables);
        Ok(Some(for_remover))
    }

    /// Makes the pair of interfaces to the host, takes the addresses that belong to its number, and returns that.
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

    fn present(&self, addresses: [IpAddr; 2]) -> impl Iterator<Item = IpAddr> + use<> {
        let has_ipv6 = self.has_ipv6;
        let addresses = addresses.into_iter();
        addresses.filter(move |address| has_ipv6 || address.is_ipv4())
    }

    /// Gives the sandbox with this PID 1 an interface and this policy.
    pub(super) fn attach(
        &mut self,
        key: Key,
        init: &OwnedFd,
        policy: &KernelPolicy,
    ) -> Result<Attached, SandboxError> {
        let failed = |step: &'static str| {
            move |error: io::Error| SandboxError::step("network", format!("{step}: {error}"))
        };
        let inside = Inside::open(init).map_err(failed("entering the sandbox"))?;
        let slot = lock(&self.slots).take();
        let slot = slot.ok_or_else(|| SandboxError::step("network", "no address is free"))?;
        if let Err(error) = rules::add(&self.nftables, slot, &self.addresses, policy) {
            lock(&self.slots).put(slot);
            return Err(failed("rules")(error));
        }
        // From here on there is something to be removed.
        let Inside {
            namespace,
            route,
            sockets,
            resolver,
        } = inside;
        self.sandboxes.insert(
            key,
            Sandbox {
                slot,
                namespace,
                sockets,
                limits: policy.limits,
                resolved: until(&policy.resolved),
            },
        );
        self.wire(slot, &self.sandboxes[&key].namespace, &route)
            .map_err(failed("interface"))?;
        Ok(Attached {
            interface: INTERFACE + slot,
            resolver,
        })
    }

    fn wire(&self, slot: u32, namespace: &OwnedFd, inside: &Route) -> io::Result<()> {
        let (name, index) = (format!("s{slot}"), INTERFACE + slot);
        let here = End { name: &name, index };
        self.route.pair(&here, &INSIDE, namespace.as_fd())?;
        self.route.up(index)?;
        inside.up(INSIDE.index)?;
        for address in self.present(self.addresses.of(slot)) {
            self.route.route(index, Prefix::host(address), None)?;
            inside.address(INSIDE.index, address)?;
            inside.route(INSIDE.index, default(address), Some(address))?;
        }
        Ok(())
    }

    /// Ends what a sandbox may do. The rest is for a [`Remover`]; nothing if it has no network.
    pub(super) fn detach(&mut self, key: Key) -> Option<Leftover> {
        let Sandbox { slot, .. } = self.sandboxes.remove(&key)?;
        if let Err(error) = rules::remove(&self.nftables, slot, &self.addresses) {
            tracing::warn!(%error, "cannot remove the rules of a sandbox");
        }
        let mark = self.addresses.mark(slot);
        Some(Leftover { key, slot, mark })
    }

    /// Takes the gateway's interface to the host away, now and not a moment after the end of its namespace.
    pub(super) fn close(&self) {
        if self.host.is_some() {
            let _ = self.route.remove(UPLINK);
        }
    }
}

fn lock(slots: &Mutex<Slots>) -> MutexGuard<'_, Slots> {
    // No step of what is done to them can be half done.
    slots.lock().unwrap_or_else(PoisonError::into_inner)
}

fn host_name(number: u32) -> String {
    format!("hearth{number}")
}

fn default(address: IpAddr) -> Prefix {
    let all = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    Prefix::new(all, 0).unwrap_or(Prefix::host(all))
}
