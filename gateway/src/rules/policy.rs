//! The rules of one policy, and the addresses of its resolved names.

use std::io;
use std::net::IpAddr;

use super::group::refuse_exhausted;
use super::sandbox::Names;
use super::{AT_ONCE, DRY_RUN, GROUP, IPV4, IPV6, POLICY, REPORTED, REPORTS, TABLE};
use crate::link::octets;
use crate::nft::{Batch, Element, Expressions, Load, Nftables, Verdict};
use crate::protocol::{KernelPolicy, Prefix, Prefixed, Protocol, Resolved};

pub(super) fn add_policy(
    batch: &mut Batch<'_>,
    names: &Names,
    policy: &KernelPolicy,
    permitted: &[Prefix],
) {
    let (chain, accepted) = (names.of("policy"), || Verdict::goto(names.of("limits")));
    // Addresses of resolved names at one port, or at all, which port 0 stands for.
    for ((set, _), (family, destination, words)) in names
        .sets()
        .iter()
        .zip([(IPV4, Load::DESTINATION4, 1), (IPV6, Load::DESTINATION6, 4)])
    {
        for any in [false, true] {
            batch.add_rule(&chain, |rule| {
                rule.is(Load::FAMILY, family)
                    .load(destination, 0)
                    .load(Load::PROTOCOL, words);
                match any {
                    true => rule.constant(&[0; 4], words + 1),
                    false => rule.load(Load::PORT, words + 1),
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
        batch.add_rule(&chain, |rule| {
            rule.is_to(*prefix)
                .is(Load::PROTOCOL, &[protocol.number()])
                .has_port(*ports.start(), *ports.end())
                .verdict(accepted());
        });
    }
    let refused = |rule: &mut Expressions<'_>| {
        rule.constant(&POLICY.to_ne_bytes(), 0)
            .mark_packet()
            .verdict(Verdict::goto(names.of("refuse")));
    };
    if policy.internet || policy.dry_run {
        // Private addresses that the node permits apply only to rules that list them.
        for prefix in permitted {
            batch.add_rule(&chain, |rule| refused(rule.is_to(*prefix)));
        }
        if !policy.internet {
            // The next rule changes the mark.
            batch.add_rule(&chain, refuse_exhausted);
            batch.add_rule(&chain, |rule| {
                rule.constant(&DRY_RUN.to_ne_bytes(), 0).mark_packet();
            });
            batch.add_rule(&chain, |rule| {
                rule.packet_rate(REPORTS.0, REPORTS.1, false)
                    .report(GROUP, REPORTED, AT_ONCE);
            });
        }
        batch.add_rule(&chain, |rule| rule.verdict(accepted()));
    } else {
        batch.add_rule(&chain, refused);
    }
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

/// Allows an address from now on for some time, renewing entries that exist or have just expired.
pub(crate) fn allow(
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
        // One of them has just expired: take them one by one.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        done => return done,
    }
    for entry in known.chunks(1) {
        commit(entry, &[entry]).or_else(|_| commit(&[], &[entry]))?;
    }
    commit(&[], &[new])
}

fn set_of(address: IpAddr) -> &'static str {
    if address.is_ipv4() {
        "resolved4-"
    } else {
        "resolved6-"
    }
}

/// An address, a protocol, and a port, or 0 for all.
pub(crate) type Entry = (IpAddr, Protocol, u16);

/// The entries that allow an address.
pub(crate) fn entries(resolved: &Resolved) -> impl Iterator<Item = Entry> {
    let (address, protocol) = (resolved.address, resolved.protocol);
    let ports = match resolved.is_any_port() {
        true => 0..=0,
        false => resolved.ports.clone(),
    };
    ports.map(move |port| (address, protocol, port))
}

/// The entries as elements: protocol and port take four bytes each.
fn elements(entries: &[Entry], resolved: &Resolved) -> Vec<Element> {
    let milliseconds = u64::try_from(resolved.ttl.as_millis()).unwrap_or(u64::MAX);
    let element = |(address, protocol, port): &Entry| {
        let mut key = octets(*address);
        key.extend_from_slice(&[protocol.number(), 0, 0, 0]);
        key.extend_from_slice(&port.to_be_bytes());
        key.extend_from_slice(&[0, 0]);
        Element {
            timeout_ms: Some(milliseconds.max(1)),
            ..Element::new(key)
        }
    };
    entries.iter().map(element).collect()
}
