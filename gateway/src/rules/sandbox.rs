//! The rules of one sandbox: its chains, sets, map entries and counters, with names that end in its slot number.

use std::io;

use super::policy::add_policy;
use super::{BURST_BYTES, GROUP, IPV6, LIMIT, REPORTED, REPORTS, RESOLVED_ENTRIES, TABLE};
use crate::address::{Addresses, INTERFACE};
use crate::link::octets;
use crate::nft::{Batch, Element, Expressions, Kind, Load, Nftables, Verdict};
use crate::protocol::{KernelPolicy, NetworkLimits, Prefix, Protocol};

/// Names of one sandbox's objects.
pub(super) struct Names(pub(super) u32);

impl Names {
    fn chains(&self) -> [String; 5] {
        ["out", "in", "policy", "limits", "refuse"].map(|name| self.of(name))
    }

    fn counters(&self) -> [String; 4] {
        ["out", "in", "connections", "refused"].map(|name| self.of(name))
    }

    pub(super) fn sets(&self) -> [(String, usize); 2] {
        [("resolved4", 12), ("resolved6", 24)]
            .map(|(name, key)| (self.of(&format!("{name}-")), key))
    }

    pub(super) fn of(&self, name: &str) -> String {
        format!("{name}{}", self.0)
    }

    /// Its elements in the sets and maps of all sandboxes.
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
            let element = Element {
                verdict: Some(verdict),
                ..Element::new(key.to_vec())
            };
            elements.push((map, element));
        }
        elements
    }
}

/// Adds a sandbox.
pub(crate) fn add(
    nftables: &Nftables,
    slot: u32,
    addresses: &Addresses,
    policy: &KernelPolicy,
    permitted: &[Prefix],
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
    add_policy(&mut batch, &names, policy, permitted);
    let refuse = names.of("refuse");
    batch.add_rule(&refuse, |rule| {
        rule.count(&names.of("refused"));
    });
    batch.add_rule(&refuse, |rule| {
        rule.packet_rate(REPORTS.0, REPORTS.1, false)
            .report(GROUP, REPORTED);
    });
    batch.add_rule(&refuse, |rule| {
        rule.is(Load::FAMILY, IPV6)
            .is(Load::PROTOCOL, &[Protocol::Tcp.number()])
            .say_unreachable();
    });
    batch.add_rule(&refuse, |rule| rule.prohibit());
    for (set, element) in names.shared(addresses) {
        batch.add_elements(set, &[element]);
    }
    nftables.commit(batch)
}

/// Removes it.
pub(crate) fn remove(nftables: &Nftables, slot: u32, addresses: &Addresses) -> io::Result<()> {
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

/// Replaces a sandbox's policy. Limits keep their counts unless they change.
pub(crate) fn replace(
    nftables: &Nftables,
    slot: u32,
    addresses: &Addresses,
    former: &NetworkLimits,
    policy: &KernelPolicy,
    permitted: &[Prefix],
) -> io::Result<()> {
    let (names, mut batch) = (Names(slot), Batch::new(TABLE));
    if policy.limits != *former {
        for chain in ["out", "in", "limits"] {
            batch.flush_chain(&names.of(chain));
        }
        add_rates(&mut batch, &names, &policy.limits);
        add_limits(&mut batch, &names, &policy.limits, addresses);
    }
    batch.flush_chain(&names.of("policy"));
    for (set, _) in names.sets() {
        batch.flush_set(&set);
    }
    add_policy(&mut batch, &names, policy, permitted);
    nftables.commit(batch)
}

/// The kernel's counters: bytes and packets out, in, connections, refused packets.
pub(crate) fn counted(nftables: &Nftables, slot: u32) -> io::Result<[(u64, u64); 4]> {
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
