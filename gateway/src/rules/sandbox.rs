//! The rules of one sandbox: its chains, sets, map entries and counters, with names that end in its slot number.

use std::io;

use super::group::refuse_exhausted;
use super::group::{self, GroupChange, GroupNames};
use super::policy::add_policy;
use super::{AT_ONCE, BEGUN, GROUP, REPORTED, REPORTED_BEGUN, REPORTS, RESOLVED_ENTRIES, TABLE};
use crate::address::{Addresses, INTERFACE};
use crate::link::octets;
use crate::nft::{Batch, Element, Kind, Load, Nftables, Verdict};
use crate::protocol::{GroupId, KernelPolicy, Prefix, Protocol};

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
    change: GroupChange,
) -> io::Result<()> {
    let (names, mut batch) = (Names(slot), Batch::new(TABLE));
    group::change(&mut batch, policy.group, change);
    for counter in names.counters() {
        batch.add_counter(&counter);
    }
    for (set, key) in names.sets() {
        batch.add_set(&set, key, Kind::Expiring(RESOLVED_ENTRIES));
    }
    for chain in names.chains() {
        batch.add_chain(&chain);
    }
    add_limited(&mut batch, &names, policy.group, addresses.mark(slot));
    add_policy(&mut batch, &names, policy, permitted);
    let refuse = names.of("refuse");
    batch.add_rule(&refuse, |rule| {
        rule.count(&names.of("refused"));
    });
    batch.add_rule(&refuse, |rule| {
        rule.packet_rate(REPORTS.0, REPORTS.1, false)
            .report(GROUP, REPORTED, AT_ONCE);
    });
    // An ICMP error is lost on a socket that is in use, as one is while its program is in connect(2): it would try again a
    // second later.
    batch.add_rule(&refuse, |rule| {
        rule.is(Load::PROTOCOL, &[Protocol::Tcp.number()]).reset();
    });
    batch.add_rule(&refuse, |rule| rule.prohibit());
    for (set, element) in names.shared(addresses) {
        batch.add_elements(set, &[element]);
    }
    nftables.commit(batch)
}

/// Removes it.
pub(crate) fn remove(
    nftables: &Nftables,
    slot: u32,
    addresses: &Addresses,
    group: GroupId,
    change: GroupChange,
) -> io::Result<()> {
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
    group::change(&mut batch, group, change);
    nftables.commit(batch)
}

/// Replaces a sandbox's policy.
pub(crate) fn replace(
    nftables: &Nftables,
    slot: u32,
    policy: &KernelPolicy,
    permitted: &[Prefix],
    change: GroupChange,
) -> io::Result<()> {
    let (names, mut batch) = (Names(slot), Batch::new(TABLE));
    group::change(&mut batch, policy.group, change);
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

/// The limits are the group's; what is counted, and refused, is the sandbox's.
fn add_limited(batch: &mut Batch<'_>, names: &Names, group: GroupId, mark: u32) {
    let group = GroupNames(group);
    for direction in ["out", "in"] {
        let chain = names.of(direction);
        batch.add_rule(&chain, |rule| {
            rule.verdict(Verdict::jump(group.rate(direction)));
        });
        // The chain's rule and its counter have the same name.
        batch.add_rule(&chain, |rule| {
            rule.count(&chain);
        });
    }
    batch.add_rule(&names.of("in"), |rule| rule.verdict(Verdict::Accept));
    let chain = names.of("limits");
    batch.add_rule(&chain, refuse_exhausted);
    batch.add_rule(&chain, |rule| rule.verdict(Verdict::jump(group.limits())));
    // Not by events of connection tracking: once anybody listens to those, the kernel makes them for every connection of
    // every network namespace of the host.
    batch.add_rule(&chain, |rule| {
        let (bytes, waiting) = REPORTED_BEGUN;
        rule.count(&names.of("connections"))
            .constant(&mark.to_ne_bytes(), 0)
            .mark_connection()
            .constant(&BEGUN.to_ne_bytes(), 0)
            .mark_packet()
            .report(GROUP, bytes, waiting)
            .verdict(Verdict::Accept);
    });
}
