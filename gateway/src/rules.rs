//! The rules, in the order in which a sandbox's packet meets them.
//!
//! ```text
//! gateway   spoof    the source is not the sandbox's ─▶ dropped
//!           forward  out<n>: bytes a second of its group, counted
//!                    of an accepted connection ─▶ accepted
//!                    of a connection that was cut ─▶ reset
//!                    no TCP or UDP, never to be reached ─▶ refuse<n>
//!                    policy<n>: allowed ─▶ limits<n>: limits of its group, counted ─▶ accepted
//!                               else ─▶ refuse<n>: counted, reported, rejected
//! host      input    ─▶ rejected: no address of the host is reached
//!           forward  what the host would translate to an address of its own ─▶ rejected
//!           masquerade
//! ```
//! [`sandbox`] has the rules of one sandbox, [`policy`] those of its policy, [`group`] the limits that it shares with others.
//!
//! A packet to a sandbox passes if it belongs to an accepted connection, and is counted by `in<n>`; all others are
//! dropped.

mod group;
mod policy;
mod sandbox;

use std::io;
use std::net::IpAddr;
use std::ops::RangeInclusive;

pub(crate) use self::group::GroupChange;
pub(crate) use self::policy::{Entry, allow, entries};
pub(crate) use self::sandbox::{add, counted, remove, replace};
use crate::address::{Addresses, UPLINK};
use crate::link::octets;
use crate::nft::{Batch, Expressions, Hook, Kind, Load, Nftables, Verdict};
use crate::protocol::{Prefix, Protocol};
use crate::ranges::forbidden;

/// The gateway's only table.
pub(crate) const TABLE: &str = "hearth";
/// Netlink group of the reports.
pub(crate) const GROUP: u16 = 1;
/// Bytes reported of a packet: IP and transport headers.
const REPORTED: u32 = 128;
/// Of one that begins a connection, and how many of those may wait to be reported together.
const REPORTED_BEGUN: (u32, u16) = (64, 64);
/// Reports of a refused packet that wait: none, a person may look for it.
const AT_ONCE: u16 = 1;
/// Reports per second and sandbox: protects the server, which reads them all. Counting refusals is unlimited.
const REPORTS: (u64, u32) = (50, 50);
/// Most addresses, times ports, of one sandbox's resolved names. Protects the kernel's memory.
pub(crate) const RESOLVED_ENTRIES: u32 = 4096;
/// Bytes that may exceed the rate in a burst: a few of the largest packets a device accepts.
const BURST_BYTES: u32 = 512 << 10;

/// Why a packet is refused, or that it begins a connection: its mark in a report.
const POLICY: u32 = 1;
const FORBIDDEN: u32 = 2;
const LIMIT: u32 = 3;
const DRY_RUN: u32 = 4;
const BEGUN: u32 = 5;
/// Mark that a packet comes with whose group may not begin another connection, by the count of the fast way, which includes its
/// own (`ebpf/bpf/gateway.h`, where [`BEGUN`] is, too).
const EXHAUSTED: u32 = 0x4866_0000;

/// States of connections, and the status of one whose destination was translated (`nf_conntrack_common.h`).
const INVALID: u32 = 1;
const KNOWN: u32 = 2 | 4;
const DESTINATION_TRANSLATED: u32 = 1 << 5;

/// Priorities (`linux/netfilter_ipv4.h`).
const RAW: i32 = -300;
const FILTER: i32 = 0;
const SOURCE_NAT: i32 = 100;

const IPV4: &[u8] = &[2];
const IPV6: &[u8] = &[10];

impl Expressions<'_> {
    /// Goes on if the destination is in this prefix.
    fn is_to(&mut self, prefix: Prefix) -> &mut Self {
        let (family, destination) = match prefix.address() {
            IpAddr::V4(_) => (IPV4, Load::DESTINATION4),
            IpAddr::V6(_) => (IPV6, Load::DESTINATION6),
        };
        self.is(Load::FAMILY, family).is_masked(
            destination,
            &prefix.mask(),
            &octets(prefix.address()),
        )
    }
}

impl Prefix {
    fn mask(self) -> Vec<u8> {
        let width = octets(self.address()).len();
        let bits = u128::MAX
            .checked_shl(width as u32 * 8 - u32::from(self.length()))
            .unwrap_or(0);
        bits.to_be_bytes()[16 - width..].to_vec()
    }
}

/// Installs the gateway's own rules. `permitted` are the node administrator's exceptions.
pub(crate) fn set_up(
    nftables: &Nftables,
    addresses: &Addresses,
    permitted: &[Prefix],
) -> io::Result<()> {
    let mut batch = Batch::new(TABLE);
    batch.add_table(false);
    batch.add_set("sources4", 8, Kind::Plain);
    batch.add_set("sources6", 20, Kind::Plain);
    for map in ["out", "in", "policy", "refused"] {
        batch.add_set(map, 4, Kind::Verdicts);
    }
    for chain in ["inbound", "refuse", "refuse-forbidden", "destination"] {
        batch.add_chain(chain);
    }
    batch.add_base_chain("spoof", "filter", (Hook::Prerouting, RAW), false);
    batch.add_base_chain("forward", "filter", (Hook::Forward, FILTER), false);
    batch.add_base_chain("input", "filter", (Hook::Input, FILTER), false);

    let uplink = UPLINK.to_ne_bytes();
    batch.add_rule("spoof", |rule| {
        rule.is(Load::IN_INTERFACE, &uplink)
            .verdict(Verdict::Accept)
    });
    for (family, source, set) in [
        (IPV4, Load::SOURCE4, "sources4"),
        (IPV6, Load::SOURCE6, "sources6"),
    ] {
        batch.add_rule("spoof", |rule| {
            rule.is(Load::FAMILY, family)
                .load(Load::IN_INTERFACE, 0)
                .load(source, 1)
                .is_in(set)
                .verdict(Verdict::Accept);
        });
    }

    batch.add_rule("forward", |rule| {
        rule.is(Load::IN_INTERFACE, &uplink)
            .verdict(Verdict::goto("inbound"));
    });
    batch.add_rule("forward", |rule| {
        rule.load(Load::IN_INTERFACE, 0).by_map("out")
    });
    batch.add_rule("forward", |rule| {
        rule.has_any(Load::STATE, KNOWN).verdict(Verdict::Accept)
    });
    batch.add_rule("forward", |rule| {
        rule.has_any(Load::STATE, INVALID)
            .is(Load::PROTOCOL, &[Protocol::Tcp.number()])
            .reset();
    });
    batch.add_rule("forward", |rule| {
        rule.has_any(Load::STATE, INVALID).verdict(Verdict::Drop)
    });
    batch.add_rule("forward", |rule| {
        rule.is_not(Load::OUT_INTERFACE, &uplink)
            .verdict(Verdict::goto("refuse-forbidden"));
    });
    batch.add_rule("forward", |rule| {
        let (tcp, udp) = (Protocol::Tcp.number(), Protocol::Udp.number());
        rule.is_not(Load::PROTOCOL, &[tcp])
            .is_not(Load::PROTOCOL, &[udp])
            .verdict(Verdict::goto("refuse-forbidden"));
    });
    batch.add_rule("forward", |rule| rule.verdict(Verdict::jump("destination")));
    batch.add_rule("forward", |rule| {
        rule.load(Load::IN_INTERFACE, 0).by_map("policy");
    });

    for prefix in permitted {
        batch.add_rule("destination", |rule| {
            rule.is_to(*prefix).verdict(Verdict::Return)
        });
    }
    for prefix in forbidden().into_iter().chain(addresses.blocks()) {
        batch.add_rule("destination", |rule| {
            rule.is_to(prefix)
                .verdict(Verdict::goto("refuse-forbidden"))
        });
    }
    batch.add_rule("input", |rule| {
        rule.is_not(Load::IN_INTERFACE, &uplink)
            .verdict(Verdict::goto("refuse-forbidden"));
    });
    batch.add_rule("inbound", |rule| {
        rule.has_none(Load::STATE, KNOWN).verdict(Verdict::Drop)
    });
    batch.add_rule("inbound", |rule| {
        rule.load(Load::OUT_INTERFACE, 0).by_map("in");
    });
    batch.add_rule("refuse-forbidden", |rule| {
        rule.constant(&FORBIDDEN.to_ne_bytes(), 0)
            .mark_packet()
            .verdict(Verdict::goto("refuse"));
    });
    batch.add_rule("refuse", |rule| {
        rule.load(Load::IN_INTERFACE, 0).by_map("refused");
    });
    batch.add_rule("refuse", |rule| rule.verdict(Verdict::Drop));
    nftables.commit(batch)
}

/// Installs the rules for `interface` in the host's own namespace. They disappear with `nftables`. TCP connections get one of
/// these ports there, if any are named.
pub(crate) fn join(
    nftables: &Nftables,
    interface: u32,
    table: &str,
    addresses: &Addresses,
    ports: Option<&RangeInclusive<u16>>,
) -> io::Result<()> {
    let (ours, mut batch) = (interface.to_ne_bytes(), Batch::new(table));
    batch.add_table(true);
    batch.add_base_chain("input", "filter", (Hook::Input, FILTER), true);
    batch.add_base_chain("forward", "filter", (Hook::Forward, FILTER), true);
    batch.add_base_chain("postrouting", "nat", (Hook::Postrouting, SOURCE_NAT), true);
    // A reset, because the kernel limits the rate of ICMP errors but not of resets: a scan of addresses is refused at
    // once.
    batch.add_rule("input", |rule| {
        rule.is(Load::IN_INTERFACE, &ours)
            .is(Load::PROTOCOL, &[Protocol::Tcp.number()])
            .reset();
    });
    batch.add_rule("input", |rule| {
        rule.is(Load::IN_INTERFACE, &ours).prohibit()
    });
    batch.add_rule("forward", |rule| {
        rule.is(Load::IN_INTERFACE, &ours)
            .has_any(Load::STATUS, DESTINATION_TRANSLATED)
            .prohibit();
    });
    // The mark identifies the connections to remove with a sandbox.
    for (family, source) in [(IPV4, Load::SOURCE4), (IPV6, Load::SOURCE6_END)] {
        batch.add_rule("forward", |rule| {
            rule.is(Load::IN_INTERFACE, &ours)
                .is(Load::FAMILY, family)
                .load(source, 0)
                .mark_connection()
                .verdict(Verdict::Accept);
        });
    }
    batch.add_rule("forward", |rule| {
        rule.is(Load::OUT_INTERFACE, &ours)
            .has_any(Load::STATE, KNOWN)
            .verdict(Verdict::Accept);
    });
    batch.add_rule("forward", |rule| {
        rule.is(Load::OUT_INTERFACE, &ours).verdict(Verdict::Drop)
    });
    for block in addresses.blocks() {
        let (family, source) = match block.address() {
            IpAddr::V4(_) => (IPV4, Load::SOURCE4),
            IpAddr::V6(_) => (IPV6, Load::SOURCE6),
        };
        for ports in ports.map(Some).into_iter().chain([None]) {
            batch.add_rule("postrouting", |rule| {
                rule.is(Load::FAMILY, family)
                    .is_masked(source, &block.mask(), &octets(block.address()))
                    .is_not(Load::OUT_INTERFACE, &ours);
                match ports {
                    Some(ports) => rule
                        .is(Load::PROTOCOL, &[Protocol::Tcp.number()])
                        .masquerade_as(ports),
                    None => rule.masquerade(),
                };
            });
        }
    }
    nftables.commit(batch)
}

/// Removes what [`join`] has installed.
pub(crate) fn leave(nftables: &Nftables, table: &str) -> io::Result<()> {
    let mut batch = Batch::new(table);
    batch.delete_table();
    nftables.commit(batch)
}
