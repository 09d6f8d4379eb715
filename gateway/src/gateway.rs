//! The gateway: the network namespace between the sandboxes and the host's own. The thread that opened it works in it.
//!
//! - [`changes`]: changes to live sandboxes. [`groups`]: those that share limits. [`removal`]: what becomes of ended ones. [`sysctl`]: settings of namespaces.
//!   [`uplink`]: the way to the host. [`past`]: the way past the rules.

mod changes;
mod groups;
mod past;
mod removal;
mod sysctl;
mod uplink;

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::mpsc;
use std::time::Instant;

use hearth_host::SandboxError;
use hearth_host::protocol::Key;

use self::changes::until;
use self::groups::Groups;
use self::sysctl::{has_ipv6, set};
pub(crate) use self::uplink::Uplink;
use crate::address::{Addresses, INTERFACE, Slots, UPLINK};
use crate::connections::{Connections, Sockets};
use crate::fast::{Fast, Told};
use crate::interfaces::{Job, Worker};
use crate::link::{End, Route};
use crate::nft::Nftables;
use crate::protocol::{GroupId, KernelPolicy, NetworkLimits, Prefix};
use crate::refusals;
use crate::rules::{self, Entry};
use crate::settings::Settings;
use crate::sys::unshare_network;

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
    slots: Slots,
    /// Whether IPv6 is available here and on the host.
    has_ipv6: bool,
    /// Private addresses that the node permits.
    permitted: Vec<Prefix>,
    uplink: Uplink,
    route: Route,
    nftables: Nftables,
    connections: Connections,
    sandboxes: HashMap<Key, Sandbox>,
    groups: Groups,
    worker: mpsc::Sender<Job>,
    /// The way past the rules, or why there is none.
    fast: Result<Fast, String>,
}

/// What it takes to connect a sandbox, opened within it.
pub(crate) struct Inside {
    namespace: OwnedFd,
    route: Route,
    sockets: Sockets,
}

struct Sandbox {
    slot: u32,
    sockets: Sockets,
    group: GroupId,
    limits: NetworkLimits,
    /// Expiry of an address at a port; port 0 means all.
    resolved: HashMap<Entry, Instant>,
}

impl Inside {
    /// Of the descriptors that come with [`ToGateway::Attach`](hearth_host::protocol::ToGateway::Attach), after the policy.
    pub(crate) fn of(mut fds: impl Iterator<Item = OwnedFd>) -> Option<Self> {
        Some(Self {
            namespace: fds.next()?,
            route: Route::by(fds.next()?),
            sockets: Sockets::by(fds.next()?),
        })
    }
}

/// What came of opening.
pub(crate) struct Opened {
    pub(crate) gateway: Gateway,
    pub(crate) worker: Worker,
    /// Where the kernel reports what it refused, and where the gateway tells of connections that it does not report.
    pub(crate) reports: [OwnedFd; 2],
}

impl Gateway {
    /// Turns the calling thread's network namespace into the gateway, with its rules, and opens all that is needed later:
    /// the sandboxes' sockets come from elsewhere, and no others are opened. The host's own namespace stays unchanged until
    /// a sandbox needs it.
    ///
    /// # Errors
    /// What this host lacks.
    pub(crate) fn open(settings: &Settings) -> Result<Opened, String> {
        let failed = |what: &str| {
            let what = what.to_owned();
            move |error: io::Error| format!("{what}: {error}")
        };
        let addresses = Addresses::new(settings)?;
        let host_has_ipv6 = has_ipv6();
        let uplink = Uplink::open(host_has_ipv6).map_err(failed("the network namespace"))?;
        let of_host = Connections::open().map_err(failed("conntrack"))?;
        let (told, reports) = Told::pair().map_err(failed("a socket"))?;
        let (worker, jobs) = mpsc::channel();
        let (mut fast, attachments) = match Fast::open(settings, told, worker.clone()) {
            Ok((fast, attachments)) => (Ok(fast), Some(attachments)),
            Err(reason) => (Err(reason), None),
        };
        unshare_network().map_err(failed("a network namespace"))?;
        // Its interfaces get no link-local address: nobody would answer there.
        set("ipv6/conf/default/addr_gen_mode", "1").map_err(failed("sysctl"))?;
        let nftables = Nftables::open().map_err(failed("netfilter"))?;
        rules::set_up(&nftables, &addresses, &settings.permitted).map_err(failed(
            "nftables (the kernel needs nf_tables with NAT, conntrack and connlimit)",
        ))?;
        for (name, value) in SYSCTLS {
            set(name, value).map_err(failed(name))?;
        }
        let route = Route::open().map_err(failed("rtnetlink"))?;
        if let Ok(opened) = &mut fast
            && let Err(error) = uplink.name_namespace(&route)
        {
            opened.fail(&format!("the host's namespace: {error}"));
        }
        let of_worker = Worker {
            jobs,
            attachments,
            route: Route::open().map_err(failed("rtnetlink"))?,
            connections: [Connections::open().map_err(failed("conntrack"))?, of_host],
        };
        let gateway = Self {
            slots: Slots::new(&addresses),
            all: addresses.clone(),
            addresses,
            has_ipv6: host_has_ipv6 && has_ipv6(),
            permitted: settings.permitted.clone(),
            uplink,
            route,
            nftables,
            connections: Connections::open().map_err(failed("conntrack"))?,
            sandboxes: HashMap::new(),
            groups: Groups::default(),
            worker,
            fast,
        };
        Ok(Opened {
            gateway,
            worker: of_worker,
            reports: [
                refusals::open(rules::GROUP).map_err(failed("NFLOG"))?,
                reports,
            ],
        })
    }

    fn present(&self, addresses: [IpAddr; 2]) -> impl Iterator<Item = IpAddr> + use<> {
        let has_ipv6 = self.has_ipv6;
        let addresses = addresses.into_iter();
        addresses.filter(move |address| has_ipv6 || address.is_ipv4())
    }

    /// Gives a sandbox an interface and this policy, and returns the number of the interface. The fast way sees it a little later.
    pub(crate) fn attach(
        &mut self,
        key: Key,
        inside: Inside,
        policy: &KernelPolicy,
    ) -> Result<u32, SandboxError> {
        let failed = |step: &'static str| {
            move |error: io::Error| SandboxError::step("network", format!("{step}: {error}"))
        };
        self.join()?;
        let slot = self.slots.take();
        let slot = slot.ok_or_else(|| SandboxError::step("network", "no address is free"))?;
        let change = self.groups.join(policy.group, key, policy.limits);
        if let Err(error) = rules::add(
            &self.nftables,
            slot,
            &self.addresses,
            policy,
            &self.permitted,
            change,
        ) {
            self.groups.leave(policy.group, key);
            self.slots.put(slot);
            return Err(failed("rules")(error));
        }
        // From here on there is something to remove.
        let Inside {
            namespace,
            route,
            sockets,
        } = inside;
        self.sandboxes.insert(
            key,
            Sandbox {
                slot,
                sockets,
                group: policy.group,
                limits: policy.limits,
                resolved: until(&policy.resolved),
            },
        );
        self.wire(slot, &namespace, &route)
            .map_err(failed("interface"))?;
        if let Ok(fast) = &mut self.fast {
            fast.attach(slot, policy, self.groups.limits(policy.group));
        }
        Ok(INTERFACE + slot)
    }

    fn wire(&self, slot: u32, namespace: &OwnedFd, inside: &Route) -> io::Result<()> {
        let (name, index) = (format!("s{slot}"), INTERFACE + slot);
        let here = End { name: &name, index };
        self.route.pair(&here, &INSIDE, Some(namespace.as_fd()))?;
        self.route.up(index)?;
        inside.up(INSIDE.index)?;
        self.route.settle(index)?;
        for address in self.present(self.addresses.of(slot)) {
            self.route.route(index, Prefix::host(address), None)?;
            inside.address(INSIDE.index, address)?;
            inside.route(INSIDE.index, default(address), Some(address))?;
        }
        Ok(())
    }
}

impl Drop for Gateway {
    /// Removes the gateway's interface to the host now, rather than shortly after the namespace ends.
    fn drop(&mut self) {
        if self.uplink.is_up {
            let _ = self.route.remove(UPLINK);
        }
    }
}

fn default(address: IpAddr) -> Prefix {
    let all = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    Prefix::new(all, 0).unwrap_or(Prefix::host(all))
}
