//! The rules, in the order in which a packet of a sandbox meets them.
//!
//! ```text
//! gateway   spoof    the source is not the sandbox's ─▶ dropped
//!           forward  out<n>: bytes a second, counted
//!                    of an accepted connection ─▶ accepted
//!                    of a connection that was cut ─▶ reset
//!                    no TCP or UDP, never to be reached ─▶ refuse<n>
//!                    policy<n>: allowed ─▶ limits<n> ─▶ accepted
//!                               else ─▶ refuse<n>: counted, reported, rejected
//! host      input    ─▶ rejected: no address of the host is reached
//!           forward  what the host would translate to an address of its own ─▶ rejected
//!           masquerade
//! ```
//! A packet to a sandbox belongs to a connection that was accepted, and is counted by `in<n>`; all others are dropped.

use std::io;
use std::net::IpAddr;

use super::address::{Addresses, INTERFACE, UPLINK};
use super::link::octets;
use super::nft::{Batch, Element, Expressions, Hook, Kind, Load, Nftables, Verdict};
use super::ranges::{bounds, forbidden};
use crate::protocol::{KernelPolicy, NetworkLimits, Prefix, Prefixed, Protocol, Resolved};

/// The gateway's only table.
pub(super) const TABLE: &str = "hearth";
/// Netlink's group of reports.
pub(super) const GROUP: u16 = 1;
/// Bytes of a packet that are reported: IP and transport headers.
const REPORTED: u32 = 128;
/// Reports a second of one sandbox: protects the server, which reads them all. What is refused is counted without limit.
const REPORTS: (u64, u32) = (50, 50);
/// Most addresses that names of one sandbox have resolved to, times their ports. Protects the kernel's memory.
pub(super) const RESOLVED_ENTRIES: u32 = 4096;
/// Bytes that pass at once beyond what a second allows: a few of the largest packets that a device takes.
const BURST_BYTES: u32 = 512 << 10;

/// Why a packet is refused, as its mark says in a report.
const POLICY: u32 = 1;
const FORBIDDEN: u32 = 2;
const LIMIT: u32 = 3;
const DRY_RUN: u32 = 4;

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
const SOURCE4: Load = Load::Network(12, 4);
const SOURCE6: Load = Load::Network(8, 16);
const DESTINATION4: Load = Load::Network(16, 4);
const DESTINATION6: Load = Load::Network(24, 16);
/// Where the last four bytes of an IPv6 source are.
const SOURCE6_END: Load = Load::Network(20, 4);

impl Prefix {
    fn family(self) -> (&'static [u8], Load) {
        match self.address() {
            IpAddr::V4(_) => (IPV4, DESTINATION4),
            IpAddr::V6(_) => (IPV6, DESTINATION6),
        }
    }

    fn mask(self) -> Vec<u8> {
        let width = octets(self.address()).len();
        let bits = u128::MAX
            .checked_shl(width as u32 * 8 - u32::from(self.length()))
            .unwrap_or(0);
        bits.to_be_bytes()[16 - width..].to_vec()
    }
}

/// Puts the gateway's own rules into force. `permitted` are exceptions that the node's administrator makes.
pub(super) fn set_up(
    nftables: &Nftables,
    addresses: &Addresses,
    permitted: &[Prefix],
) -> io::Result<()> {
    let mut batch = Batch::new(TABLE);
    batch.add_table(false);
    batch.add_set("sources4", 8, Kind::Plain);
    batch.add_set("sources6", 20, Kind::Plain);
    let mut never = forbidden();
    never.extend(addresses.blocks());
    for (name, prefixes) in [("never", never), ("permitted", permitted.to_vec())] {
        for (suffix, length, is_four) in [("4", 4, true), ("6", 16, false)] {
            let name = format!("{name}{suffix}");
            batch.add_set(&name, length, Kind::Ranges);
            batch.add_elements(&name, &range_elements(&prefixes, is_four));
        }
    }
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
        rule.is(Load::InInterface, &uplink).verdict(Verdict::Accept)
    });
    for (family, source, set) in [(IPV4, SOURCE4, "sources4"), (IPV6, SOURCE6, "sources6")] {
        batch.add_rule("spoof", |rule| {
            rule.is(Load::Family, family)
                .load(Load::InInterface, 0)
                .load(source, 1)
                .is_in(set)
                .verdict(Verdict::Accept);
        });
    }

    batch.add_rule("forward", |rule| {
        rule.is(Load::InInterface, &uplink)
            .verdict(Verdict::goto("inbound"));
    });
    batch.add_rule("forward", |rule| {
        rule.load(Load::InInterface, 0).by_map("out");
    });
    batch.add_rule("forward", |rule| {
        rule.has_any(Load::ConnectionState, KNOWN)
            .verdict(Verdict::Accept)
    });
    batch.add_rule("forward", |rule| {
        rule.has_any(Load::ConnectionState, INVALID)
            .is(Load::Protocol, &[Protocol::Tcp.number()])
            .reset();
    });
    batch.add_rule("forward", |rule| {
        rule.has_any(Load::ConnectionState, INVALID)
            .verdict(Verdict::Drop)
    });
    batch.add_rule("forward", |rule| {
        rule.is_not(Load::OutInterface, &uplink)
            .verdict(Verdict::goto("refuse-forbidden"));
    });
    batch.add_rule("forward", |rule| {
        let (tcp, udp) = (Protocol::Tcp.number(), Protocol::Udp.number());
        rule.is_not(Load::Protocol, &[tcp])
            .is_not(Load::Protocol, &[udp])
            .verdict(Verdict::goto("refuse-forbidden"));
    });
    batch.add_rule("forward", |rule| rule.verdict(Verdict::jump("destination")));
    batch.add_rule("forward", |rule| {
        rule.load(Load::InInterface, 0).by_map("policy");
    });

    for (family, destination, suffix) in [(IPV4, DESTINATION4, "4"), (IPV6, DESTINATION6, "6")] {
        batch.add_rule("destination", |rule| {
            rule.is(Load::Family, family)
                .load(destination, 0)
                .is_in(&format!("permitted{suffix}"))
                .verdict(Verdict::Return);
        });
        batch.add_rule("destination", |rule| {
            rule.is(Load::Family, family)
                .load(destination, 0)
                .is_in(&format!("never{suffix}"))
                .verdict(Verdict::goto("refuse-forbidden"));
        });
    }
    batch.add_rule("input", |rule| {
        rule.is_not(Load::InInterface, &uplink)
            .verdict(Verdict::goto("refuse-forbidden"));
    });
    batch.add_rule("inbound", |rule| {
        rule.has_none(Load::ConnectionState, KNOWN)
            .verdict(Verdict::Drop)
    });
    batch.add_rule("inbound", |rule| {
        rule.load(Load::OutInterface, 0).by_map("in");
    });
    batch.add_rule("refuse-forbidden", |rule| {
        rule.constant(&FORBIDDEN.to_ne_bytes(), 0)
            .mark_packet()
            .verdict(Verdict::goto("refuse"));
    });
    batch.add_rule("refuse", |rule| {
        rule.load(Load::InInterface, 0).by_map("refused");
    });
    batch.add_rule("refuse", |rule| rule.verdict(Verdict::Drop));
    nftables.commit(batch)
}

/// Puts the rules in the host's own namespace into force, for what comes and goes over `interface` there. They end with
/// `nftables`.
pub(super) fn join(
    nftables: &Nftables,
    interface: u32,
    table: &str,
    addresses: &Addresses,
) -> io::Result<()> {
    let (ours, mut batch) = (interface.to_ne_bytes(), Batch::new(table));
    batch.add_table(true);
    batch.add_base_chain("input", "filter", (Hook::Input, FILTER), true);
    batch.add_base_chain("forward", "filter", (Hook::Forward, FILTER), true);
    batch.add_base_chain("postrouting", "nat", (Hook::Postrouting, SOURCE_NAT), true);
    // At once also where the kernel answers few of those that ask one address after the other: ICMP is limited, TCP is not.
    batch.add_rule("input", |rule| {
        rule.is(Load::InInterface, &ours)
            .is(Load::Protocol, &[Protocol::Tcp.number()])
            .reset();
    });
    batch.add_rule("input", |rule| rule.is(Load::InInterface, &ours).prohibit());
    batch.add_rule("forward", |rule| {
        rule.is(Load::InInterface, &ours)
            .has_any(Load::ConnectionStatus, DESTINATION_TRANSLATED)
            .prohibit();
    });
    // By its mark a connection is forgotten with its sandbox.
    for (family, source) in [(IPV4, SOURCE4), (IPV6, SOURCE6_END)] {
        batch.add_rule("forward", |rule| {
            rule.is(Load::InInterface, &ours)
                .is(Load::Family, family)
                .load(source, 0)
                .mark_connection()
                .verdict(Verdict::Accept);
        });
    }
    batch.add_rule("forward", |rule| {
        rule.is(Load::OutInterface, &ours)
            .has_any(Load::ConnectionState, KNOWN)
            .verdict(Verdict::Accept);
    });
    batch.add_rule("forward", |rule| {
        rule.is(Load::OutInterface, &ours).verdict(Verdict::Drop)
    });
    for block in addresses.blocks() {
        let (family, source) = match block.address() {
            IpAddr::V4(_) => (IPV4, SOURCE4),
            IpAddr::V6(_) => (IPV6, SOURCE6),
        };
        batch.add_rule("postrouting", |rule| {
            rule.is(Load::Family, family)
                .is_masked(source, &block.mask(), &octets(block.address()))
                .is_not(Load::OutInterface, &ours)
                .masquerade();
        });
    }
    nftables.commit(batch)
}

/// Names of what one sandbox has.
struct Names(u32);

impl Names {
    fn chains(&self) -> [String; 6] {
        ["out", "in", "policy", "public", "limits", "refuse"].map(|name| self.of(name))
    }

    fn counters(&self) -> [String; 4] {
        ["out", "in", "connections", "refused"].map(|name| self.of(name))
    }

    fn sets(&self) -> [(String, usize); 2] {
        [("resolved4", 12), ("resolved6", 24)]
            .map(|(name, key)| (self.of(&format!("{name}-")), key))
    }

    fn of(&self, name: &str) -> String {
        format!("{name}{}", self.0)
    }

    /// Elements of sets and maps that are about all sandboxes.
    fn shared(&self, addresses: &Addresses) -> Vec<(&'static str, Element)> {
        let key = (INTERFACE + self.0).to_ne_bytes();
        let mut elements: Vec<_> = addresses
            .of(self.0)
            .into_iter()
            .map(|ip| {
                let set = if ip.is_ipv4() { "sources4" } else { "sources6" };
                (set, Element::new([&key[..], &octets(ip)].concat()))
            })
            .collect();
        for (map, verdict) in [
            ("out", Verdict::jump(self.of("out"))),
            ("in", Verdict::jump(self.of("in"))),
            ("policy", Verdict::goto(self.of("policy"))),
            ("refused", Verdict::goto(self.of("refuse"))),
        ] {
            elements.push((map, Element::new(key.to_vec()).to(verdict)));
        }
        elements
    }
}

/// Adds a sandbox.
pub(super) fn add(
    nftables: &Nftables,
    slot: u32,
    addresses: &Addresses,
    policy: &KernelPolicy,
) -> io::Result<()> {
    let (names, mut batch) = (Names(slot), Batch::new(TABLE));
    for counter in names.counters() {
        batch.add_counter(&counter);
    }
    for (set, key) in names.sets() {
        batch.add_set(&set, key, Kind::Expiring(RESOLVED_ENTRIES));
    }
    for chain in names.chains() {
        batch.add_chain(&chain);
    }
    let limits = &policy.limits;
    add_rates(&mut batch, &names, limits);
    add_limits(&mut batch, &names, limits, addresses);
    add_policy(&mut batch, &names, policy);
    let refuse = names.of("refuse");
    batch.add_rule(&refuse, |rule| {
        rule.count(&names.of("refused"));
    });
    batch.add_rule(&refuse, |rule| {
        rule.packet_rate(REPORTS.0, REPORTS.1, false)
            .report(GROUP, REPORTED);
    });
    batch.add_rule(&refuse, |rule| {
        rule.is(Load::Family, IPV6)
            .is(Load::Protocol, &[Protocol::Tcp.number()])
            .say_unreachable();
    });
    batch.add_rule(&refuse, |rule| rule.prohibit());
    for (set, element) in names.shared(addresses) {
        batch.add_elements(set, &[element]);
    }
    nftables.commit(batch)
}

/// Removes it.
pub(super) fn remove(nftables: &Nftables, slot: u32, addresses: &Addresses) -> io::Result<()> {
    let (names, mut batch) = (Names(slot), Batch::new(TABLE));
    for (set, element) in names.shared(addresses) {
        batch.delete_elements(set, &[element]);
    }
    for chain in names.chains() {
        batch.flush_chain(&chain);
    }
    for chain in names.chains() {
        batch.delete_chain(&chain);
    }
    for (set, _) in names.sets() {
        batch.delete_set(&set);
    }
    for counter in names.counters() {
        batch.delete_counter(&counter);
    }
    nftables.commit(batch)
}

/// Replaces a sandbox's policy. What its limits have counted stays unless they change.
pub(super) fn replace(
    nftables: &Nftables,
    slot: u32,
    addresses: &Addresses,
    former: &NetworkLimits,
    policy: &KernelPolicy,
) -> io::Result<()> {
    let (names, mut batch) = (Names(slot), Batch::new(TABLE));
    if policy.limits != *former {
        for chain in ["out", "in", "limits"] {
            batch.flush_chain(&names.of(chain));
        }
        add_rates(&mut batch, &names, &policy.limits);
        add_limits(&mut batch, &names, &policy.limits, addresses);
    }
    for chain in ["policy", "public"] {
        batch.flush_chain(&names.of(chain));
    }
    for (set, _) in names.sets() {
        batch.flush_set(&set);
    }
    add_policy(&mut batch, &names, policy);
    nftables.commit(batch)
}

/// Allows an address for a time from now on, by entries that are there, or were a moment ago, and by new ones.
pub(super) fn allow(
    nftables: &Nftables,
    slot: u32,
    resolved: &Resolved,
    known: &[Entry],
    new: &[Entry],
) -> io::Result<()> {
    let set = Names(slot).of(set_of(resolved.address));
    let commit = |removed: &[Entry], added: &[&[Entry]]| {
        let mut batch = Batch::new(TABLE);
        batch.delete_elements(&set, &elements(removed, resolved));
        for added in added {
            batch.add_elements(&set, &elements(added, resolved));
        }
        nftables.commit(batch)
    };
    match commit(known, &[known, new]) {
        // One of them has expired just now. They are taken one by one.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        done => return done,
    }
    for entry in known.chunks(1) {
        commit(entry, &[entry]).or_else(|_| commit(&[], &[entry]))?;
    }
    commit(&[], &[new])
}

/// What the kernel has counted: bytes and packets out, in, connections, refused packets.
pub(super) fn counted(nftables: &Nftables, slot: u32) -> io::Result<[(u64, u64); 4]> {
    let mut all = [(0, 0); 4];
    for (one, name) in all.iter_mut().zip(Names(slot).counters()) {
        *one = nftables.counter(TABLE, &name)?;
    }
    Ok(all)
}

fn add_rates(batch: &mut Batch<'_>, names: &Names, limits: &NetworkLimits) {
    for chain in ["out", "in"].map(|name| names.of(name)) {
        if limits.bytes_per_second > 0 {
            batch.add_rule(&chain, |rule| {
                rule.over_byte_rate(limits.bytes_per_second, BURST_BYTES)
                    .verdict(Verdict::Drop);
            });
        }
        // The chain's rule and its counter have the same name.
        batch.add_rule(&chain, |rule| {
            rule.count(&chain);
        });
    }
    batch.add_rule(&names.of("in"), |rule| rule.verdict(Verdict::Accept));
}

fn add_limits(batch: &mut Batch<'_>, names: &Names, limits: &NetworkLimits, addresses: &Addresses) {
    let (chain, refuse) = (names.of("limits"), names.of("refuse"));
    let refused = |rule: &mut Expressions<'_>| {
        rule.constant(&LIMIT.to_ne_bytes(), 0)
            .mark_packet()
            .verdict(Verdict::goto(refuse.as_str()));
    };
    if limits.new_per_second > 0 {
        let rate = limits.new_per_second;
        batch.add_rule(&chain, |rule| {
            refused(rule.packet_rate(rate.into(), rate, true))
        });
    }
    if limits.connections > 0 {
        batch.add_rule(&chain, |rule| {
            refused(rule.over_connections(limits.connections))
        });
    }
    batch.add_rule(&chain, |rule| {
        rule.count(&names.of("connections"))
            .constant(&addresses.mark(names.0).to_ne_bytes(), 0)
            .mark_connection()
            .verdict(Verdict::Accept);
    });
}

fn add_policy(batch: &mut Batch<'_>, names: &Names, policy: &KernelPolicy) {
    let (chain, accepted) = (names.of("policy"), || Verdict::goto(names.of("limits")));
    // Addresses that names resolved to, at one port, or at any, for which 0 stands.
    for ((set, _), (family, destination, words)) in names
        .sets()
        .iter()
        .zip([(IPV4, DESTINATION4, 1), (IPV6, DESTINATION6, 4)])
    {
        for any in [false, true] {
            batch.add_rule(&chain, |rule| {
                rule.is(Load::Family, family)
                    .load(destination, 0)
                    .load(Load::Protocol, words);
                match any {
                    true => rule.constant(&[0; 4], words + 1),
                    false => rule.load(Load::Port, words + 1),
                };
                rule.is_in(set).verdict(accepted());
            });
        }
    }
    for Prefixed {
        prefix,
        protocol,
        ports,
    } in &policy.allow
    {
        let (family, destination) = prefix.family();
        batch.add_rule(&chain, |rule| {
            rule.is(Load::Family, family)
                .is_masked(destination, &prefix.mask(), &octets(prefix.address()))
                .is(Load::Protocol, &[protocol.number()])
                .has_port(*ports.start(), *ports.end())
                .verdict(accepted());
        });
    }
    let marked = |mark: u32| {
        move |rule: &mut Expressions<'_>| {
            rule.constant(&mark.to_ne_bytes(), 0).mark_packet();
        }
    };
    if policy.internet || policy.dry_run {
        // Private addresses that the node permits are for those that name them.
        let public = names.of("public");
        for (family, destination, permitted) in [
            (IPV4, DESTINATION4, "permitted4"),
            (IPV6, DESTINATION6, "permitted6"),
        ] {
            batch.add_rule(&chain, |rule| {
                rule.is(Load::Family, family)
                    .load(destination, 0)
                    .is_not_in(permitted)
                    .verdict(Verdict::goto(public.as_str()));
            });
        }
        if !policy.internet {
            batch.add_rule(&public, marked(DRY_RUN));
            batch.add_rule(&public, |rule| {
                rule.packet_rate(REPORTS.0, REPORTS.1, false)
                    .report(GROUP, REPORTED);
            });
        }
        batch.add_rule(&public, |rule| rule.verdict(accepted()));
    }
    batch.add_rule(&chain, marked(POLICY));
    batch.add_rule(&chain, |rule| {
        rule.verdict(Verdict::goto(names.of("refuse")));
    });
    for resolved in policy
        .resolved
        .iter()
        .filter(|resolved| !resolved.ttl.is_zero())
    {
        let entries: Vec<_> = entries(resolved).collect();
        let set = names.of(set_of(resolved.address));
        batch.add_elements(&set, &elements(&entries, resolved));
    }
}

fn set_of(address: IpAddr) -> &'static str {
    if address.is_ipv4() {
        "resolved4-"
    } else {
        "resolved6-"
    }
}

/// An address, a protocol, and a port, or 0 for any.
pub(super) type Entry = (IpAddr, Protocol, u16);

/// The entries that allow an address.
pub(super) fn entries(resolved: &Resolved) -> impl Iterator<Item = Entry> {
    let (address, protocol) = (resolved.address, resolved.protocol);
    let ports = match resolved.is_any_port() {
        true => 0..=0,
        false => resolved.ports.clone(),
    };
    ports.map(move |port| (address, protocol, port))
}

/// They as elements: protocol and port take four bytes each.
fn elements(entries: &[Entry], resolved: &Resolved) -> Vec<Element> {
    let milliseconds = u64::try_from(resolved.ttl.as_millis()).unwrap_or(u64::MAX);
    let element = |(address, protocol, port): &Entry| {
        let mut key = octets(*address);
        key.extend_from_slice(&[protocol.number(), 0, 0, 0]);
        key.extend_from_slice(&port.to_be_bytes());
        key.extend_from_slice(&[0, 0]);
        Element::new(key).expiring(milliseconds.max(1))
    };
    entries.iter().map(element).collect()
}

fn range_elements(prefixes: &[Prefix], is_four: bool) -> Vec<Element> {
    let mut elements = Vec::new();
    for (first, end) in bounds(prefixes, is_four) {
        elements.push(Element::new(octets(first)));
        elements.extend(end.map(|end| Element::new(octets(end)).end()));
    }
    elements
}
