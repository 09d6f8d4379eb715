//! The gateway: the network namespace between the sandboxes and the host's own. The thread that created it works in it.
//!
//! - [`changes`]: changes to live sandboxes. [`removal`]: removal of ended ones. [`sysctl`]: settings of namespaces.
//!   [`uplink`]: the way to the host.

mod changes;
mod removal;
mod sysctl;
mod uplink;

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use self::changes::until;
use self::removal::Remover;
use self::sysctl::{has_ipv6, set};
use super::address::{Addresses, INTERFACE, Slots, UPLINK};
use super::connections::{Connections, Sockets};
use super::link::{End, Route};
use super::nft::Nftables;
use super::rules::{self, Entry};
use super::sandbox::{Inside, current, no_link_local};
use super::sys::unshare_network;
use crate::SandboxError;
use crate::helpers::{Attached, Helper, News, Reporter};
use crate::protocol::{KernelPolicy, Key, NetworkLimits, Prefix};
use crate::settings::NetworkSettings;

/// Name and index of a sandbox's interface on the inside. Lower indices are left to the kernel's own.
const INSIDE: End<'_> = End {
    name: "eth0",
    index: 1000,
};
/// Settings of the gateway (`Documentation/networking/ip-sysctl.rst`, `nf_conntrack-sysctl.rst`), as far as the kernel
/// has them.
const SYSCTLS: &[(&str, &str)] = &[
    ("ipv4/ip_forward", "1"),
    ("ipv6/conf/all/forwarding", "1"),
    // Answer every refusal at once: who floods it spends its own CPU time.
    ("ipv4/icmp_ratelimit", "0"),
    ("ipv4/icmp_ratemask", "0"),
    ("ipv6/icmp/ratelimit", "0"),
    ("ipv6/icmp/ratemask", "255"),
    // Do not adopt packets without a connection: they may belong to one that was closed.
    ("netfilter/nf_conntrack_tcp_loose", "0"),
    // How long half-open connections count towards a sandbox's limit, seconds.
    ("netfilter/nf_conntrack_tcp_timeout_syn_sent", "30"),
    // Bytes of connections are counted, and reported when one is over, which is not long after its end.
    ("netfilter/nf_conntrack_acct", "1"),
    ("netfilter/nf_conntrack_tcp_timeout_time_wait", "10"),
];

/// See the module.
pub(crate) struct Gateway {
    /// Addresses of all Hearths on this host.
    all: Addresses,
    /// Addresses of this one.
    addresses: Addresses,
    slots: Arc<Mutex<Slots>>,
    /// Whether IPv6 is available here and on the host.
    has_ipv6: bool,
    /// Private addresses that the node permits.
    permitted: Vec<Prefix>,
    host_namespace: OwnedFd,
    /// Holds the table in the host's own namespace, which disappears with it. None while not connected to the host.
    host: Option<Nftables>,
    route: Route,
    nftables: Nftables,
    connections: Connections,
    sandboxes: HashMap<Key, Sandbox>,
    remover: Helper<Remover>,
}

struct Sandbox {
    slot: u32,
    namespace: OwnedFd,
    sockets: Sockets,
    limits: NetworkLimits,
    /// Expiry of an address at a port; port 0 means all.
    resolved: HashMap<Entry, Instant>,
}

impl Gateway {
    /// Turns the calling thread's network namespace into the gateway, with its rules. The host's own stays unchanged
    /// until a sandbox needs it.
    pub(super) fn open(settings: &NetworkSettings, reporter: Reporter) -> Result<Self, String> {
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
        let slots = Arc::new(Mutex::new(Slots::new(&addresses)));
        let remover = Remover::start(slots.clone(), reporter)?;
        Ok(Self {
            slots,
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
            remover,
        })
    }

    fn present(&self, addresses: [IpAddr; 2]) -> impl Iterator<Item = IpAddr> + use<> {
        let has_ipv6 = self.has_ipv6;
        let addresses = addresses.into_iter();
        addresses.filter(move |address| has_ipv6 || address.is_ipv4())
    }

    /// Gives the sandbox with this PID 1 an interface and this policy.
    pub(crate) fn attach(
        &mut self,
        key: Key,
        init: &OwnedFd,
        policy: &KernelPolicy,
    ) -> Result<Attached, SandboxError> {
        let failed = |step: &'static str| {
            move |error: io::Error| SandboxError::step("network", format!("{step}: {error}"))
        };
        self.join()?;
        let inside = Inside::open(init).map_err(failed("entering the sandbox"))?;
        let slot = lock(&self.slots).take();
        let slot = slot.ok_or_else(|| SandboxError::step("network", "no address is free"))?;
        if let Err(error) = rules::add(
            &self.nftables,
            slot,
            &self.addresses,
            policy,
            &self.permitted,
        ) {
            lock(&self.slots).put(slot);
            return Err(failed("rules")(error));
        }
        // From here on there is something to remove.
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

    /// Ends what a sandbox may do, and has the rest removed. Reports when nothing is left, if nobody else does.
    pub(crate) fn detach(&mut self, key: Key) -> Option<News> {
        let Some(Sandbox { slot, .. }) = self.sandboxes.remove(&key) else {
            return Some(News::Detached(key));
        };
        if let Err(error) = rules::remove(&self.nftables, slot, &self.addresses) {
            tracing::warn!(%error, "cannot remove the rules of a sandbox");
        }
        let mark = self.addresses.mark(slot);
        let is_taken = self.remover.must(move |remover| {
            remover.remove(slot, mark);
            Some(News::Detached(key))
        });
        (!is_taken).then_some(News::Detached(key))
    }
}

impl Drop for Gateway {
    /// Removes the gateway's interface to the host now, rather than shortly after the namespace ends.
    fn drop(&mut self) {
        if self.host.is_some() {
            let _ = self.route.remove(UPLINK);
        }
    }
}

fn lock(slots: &Mutex<Slots>) -> MutexGuard<'_, Slots> {
    // No operation leaves them half changed.
    slots.lock().unwrap_or_else(PoisonError::into_inner)
}

fn default(address: IpAddr) -> Prefix {
    let all = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    Prefix::new(all, 0).unwrap_or(Prefix::host(all))
}
