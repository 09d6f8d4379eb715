//! The limits of a group of sandboxes: chains that the chains of each of them jump to, with names that end in the group's
//! number. What they count, they count for all.

use super::{BURST_BYTES, EXHAUSTED, LIMIT};
use crate::nft::{Batch, Expressions, Load, Verdict};
use crate::protocol::{GroupId, NetworkLimits};

/// What becomes of a group when a sandbox joins or leaves it, or gets other limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GroupChange {
    /// It begins, with these limits.
    Begin(NetworkLimits),
    /// It stays as it is.
    Nothing,
    /// Its limits are replaced.
    Limits {
        former: NetworkLimits,
        now: NetworkLimits,
    },
    /// It ends.
    End,
}

/// Names of one group's chains.
pub(super) struct GroupNames(pub(super) GroupId);

impl GroupNames {
    /// Bytes a second in one direction, "out" or "in".
    pub(super) fn rate(&self, direction: &str) -> String {
        format!("{direction}-group{}", self.0)
    }

    fn rates(&self) -> [String; 2] {
        ["out", "in"].map(|direction| self.rate(direction))
    }

    /// Connections.
    pub(super) fn limits(&self) -> String {
        format!("limits-group{}", self.0)
    }
}

/// Adds the change to a transaction: before the chains of a sandbox that joins, after those of one that has left.
pub(super) fn change(batch: &mut Batch<'_>, group: GroupId, change: GroupChange) {
    let names = GroupNames(group);
    let all = || names.rates().into_iter().chain([names.limits()]);
    match change {
        GroupChange::Begin(limits) => {
            for chain in all() {
                batch.add_chain(&chain);
            }
            add_rates(batch, &names, &limits);
            add_limits(batch, &names, &limits);
        }
        GroupChange::Nothing => {}
        GroupChange::Limits { former, now } => replace(batch, &names, &former, &now),
        GroupChange::End => {
            for chain in all() {
                batch.flush_chain(&chain);
                batch.delete_chain(&chain);
            }
        }
    }
}

/// A rule that is replaced counts from 0: only those go that differ.
fn replace(batch: &mut Batch<'_>, names: &GroupNames, former: &NetworkLimits, now: &NetworkLimits) {
    if now.bytes_per_second != former.bytes_per_second {
        for chain in names.rates() {
            batch.flush_chain(&chain);
        }
        add_rates(batch, names, now);
    }
    let of_connections = |limits: &NetworkLimits| (limits.connections, limits.new_per_second);
    if of_connections(now) != of_connections(former) {
        batch.flush_chain(&names.limits());
        add_limits(batch, names, now);
    }
}

fn add_rates(batch: &mut Batch<'_>, names: &GroupNames, limits: &NetworkLimits) {
    if limits.bytes_per_second > 0 {
        for chain in names.rates() {
            batch.add_rule(&chain, |rule| {
                rule.over_byte_rate(limits.bytes_per_second, BURST_BYTES)
                    .verdict(Verdict::Drop);
            });
        }
    }
}

fn refused(rule: &mut Expressions<'_>) {
    rule.constant(&LIMIT.to_ne_bytes(), 0)
        .mark_packet()
        .verdict(Verdict::goto("refuse"));
}

/// Refuses what the fast way has found to be too much.
pub(super) fn refuse_exhausted(rule: &mut Expressions<'_>) {
    refused(rule.is(Load::MARK, &EXHAUSTED.to_ne_bytes()));
}

fn add_limits(batch: &mut Batch<'_>, names: &GroupNames, limits: &NetworkLimits) {
    let chain = names.limits();
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
}
