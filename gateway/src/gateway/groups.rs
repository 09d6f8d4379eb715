//! Groups of sandboxes that share their limits: those of one function. A group begins with its first sandbox and ends with its
//! last, and has the limits of the one that has been in it longest: a new version, which may never serve, changes nothing for
//! those that do, and what replaces a function's policy does so for all of its sandboxes.

use std::collections::HashMap;

use hearth_host::protocol::Key;

use crate::protocol::{GroupId, NetworkLimits};
use crate::rules::GroupChange;

/// The groups that there are, each with its sandboxes in the order in which they joined and their limits.
#[derive(Default)]
pub(super) struct Groups(HashMap<GroupId, Vec<(Key, NetworkLimits)>>);

impl Groups {
    /// Adds a sandbox.
    pub(super) fn join(&mut self, group: GroupId, key: Key, limits: NetworkLimits) -> GroupChange {
        self.change(group, |members| members.push((key, limits)))
    }

    /// Gives one other limits.
    pub(super) fn set(&mut self, group: GroupId, key: Key, limits: NetworkLimits) -> GroupChange {
        self.change(group, |members| {
            for member in members.iter_mut().filter(|member| member.0 == key) {
                member.1 = limits;
            }
        })
    }

    /// Removes one.
    pub(super) fn leave(&mut self, group: GroupId, key: Key) -> GroupChange {
        self.change(group, |members| members.retain(|member| member.0 != key))
    }

    /// Those in force.
    pub(super) fn limits(&self, group: GroupId) -> Option<NetworkLimits> {
        let members = self.0.get(&group)?;
        members.first().map(|member| member.1)
    }

    fn change(
        &mut self,
        group: GroupId,
        change: impl FnOnce(&mut Vec<(Key, NetworkLimits)>),
    ) -> GroupChange {
        let members = self.0.entry(group).or_default();
        let in_force = |members: &[(Key, NetworkLimits)]| members.first().map(|member| member.1);
        let former = in_force(members);
        change(members);
        let now = in_force(members);
        if now.is_none() {
            self.0.remove(&group);
        }
        match (former, now) {
            (None, Some(limits)) => GroupChange::Begin(limits),
            (Some(_), None) => GroupChange::End,
            (Some(former), Some(now)) if former != now => GroupChange::Limits { former, now },
            _ => GroupChange::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(connections: u32) -> NetworkLimits {
        NetworkLimits {
            connections,
            ..NetworkLimits::default()
        }
    }

    #[test]
    fn the_limits_are_those_of_the_oldest_sandbox() {
        let mut groups = Groups::default();
        let from = |former, now| GroupChange::Limits {
            former: limits(former),
            now: limits(now),
        };
        assert_eq!(groups.join(7, 1, limits(1)), GroupChange::Begin(limits(1)));
        assert_eq!(groups.join(7, 2, limits(2)), GroupChange::Nothing);
        assert_eq!(groups.join(8, 3, limits(3)), GroupChange::Begin(limits(3)));
        assert_eq!(groups.set(7, 2, limits(4)), GroupChange::Nothing);
        assert_eq!(groups.set(7, 1, limits(5)), from(1, 5));
        assert_eq!(groups.leave(7, 1), from(5, 4));
        assert_eq!(groups.join(7, 4, limits(4)), GroupChange::Nothing);
        assert_eq!(groups.leave(7, 2), GroupChange::Nothing);
        assert_eq!(groups.leave(7, 4), GroupChange::End);
        assert_eq!(groups.leave(7, 4), GroupChange::Nothing, "it has left");
        assert_eq!(groups.leave(8, 3), GroupChange::End);
        assert!(groups.0.is_empty());
    }
}
