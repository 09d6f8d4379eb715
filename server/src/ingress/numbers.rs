//! Which function or chain has which number in the maps, and which ports there. The maps call all of them functions.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{Port, PortOwner};

/// See the module.
pub(super) struct Numbers {
    owners: BTreeMap<PortOwner, (u32, Vec<Port>)>,
    /// Those whose owners have left: what was counted there stays until another gets them.
    left: BTreeSet<u32>,
    /// The largest number.
    last: u32,
}

/// What has to be changed in the maps.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Change {
    /// The owner's number.
    pub(super) number: u32,
    /// Whether it is new: the counters are nobody's, or another one's who has left.
    pub(super) is_new: bool,
    pub(super) was_used: bool,
    pub(super) given: Vec<Port>,
    pub(super) taken: Vec<Port>,
}

impl Numbers {
    pub(super) fn new(last: u32) -> Self {
        Self {
            owners: BTreeMap::new(),
            left: BTreeSet::new(),
            last,
        }
    }

    /// An owner's number, if it has ports.
    pub(super) fn of(&self, owner: &PortOwner) -> Option<u32> {
        self.owners.get(owner).map(|(number, _)| *number)
    }

    /// All that have ports, with their numbers.
    pub(super) fn all(&self) -> impl Iterator<Item = (&PortOwner, u32)> {
        let owners = self.owners.iter();
        owners.map(|(owner, (number, _))| (owner, *number))
    }

    /// Numbers whose counters are of owners that have no ports any more.
    pub(super) fn left(&self) -> impl Iterator<Item = u32> {
        self.left.iter().copied()
    }

    /// How many ports they have.
    pub(super) fn ports(&self) -> usize {
        self.owners.values().map(|(_, ports)| ports.len()).sum()
    }

    /// Makes these an owner's ports, and says what that changes. None if all numbers are taken.
    pub(super) fn settle(&mut self, owner: &PortOwner, ports: Vec<Port>) -> Option<Change> {
        let known = self.owners.remove(owner);
        let is_new = known.is_none();
        let (number, had) = match known {
            Some(known) => known,
            None if ports.is_empty() => return Some(Change::default()),
            None => (self.free()?, Vec::new()),
        };
        let beyond = |some: &[Port], others: &[Port]| {
            let mut some = some.to_vec();
            some.retain(|port| !others.contains(port));
            some
        };
        let change = Change {
            number,
            is_new,
            was_used: is_new && self.left.remove(&number),
            given: beyond(&ports, &had),
            taken: beyond(&had, &ports),
        };
        if ports.is_empty() {
            self.left.insert(number);
        } else {
            self.owners.insert(owner.clone(), (number, ports));
        }
        Some(change)
    }

    /// The first number that nobody has.
    fn free(&self) -> Option<u32> {
        let mut used: Vec<u32> = self.owners.values().map(|(number, _)| *number).collect();
        used.sort_unstable();
        let gap = (1..).zip(&used).find(|(number, used)| number != *used);
        let free = gap.map_or(used.len() as u32 + 1, |(number, _)| number);
        (free <= self.last).then_some(free)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Protocol;

    fn named(name: &str) -> PortOwner {
        PortOwner::function(name)
    }

    fn tcp(number: u16) -> Port {
        Port {
            protocol: Protocol::Tcp,
            number,
        }
    }

    #[test]
    fn only_what_differs_is_changed() {
        let mut numbers = Numbers::new(10);
        let change = numbers
            .settle(&named("a"), vec![tcp(1), tcp(2)])
            .expect("room");
        assert_eq!((change.number, change.is_new), (1, true));
        assert_eq!((change.given, change.taken), (vec![tcp(1), tcp(2)], vec![]));
        let change = numbers
            .settle(&named("a"), vec![tcp(2), tcp(3)])
            .expect("room");
        assert_eq!((change.number, change.is_new), (1, false));
        assert_eq!((change.given, change.taken), (vec![tcp(3)], vec![tcp(1)]));
        let change = numbers.settle(&named("a"), vec![]).expect("room");
        assert_eq!((change.number, change.taken), (1, vec![tcp(2), tcp(3)]));
        assert_eq!(numbers.of(&named("a")), None);
        assert_eq!(numbers.settle(&named("a"), vec![]), Some(Change::default()));
    }

    #[test]
    fn numbers_are_used_again() {
        let mut numbers = Numbers::new(2);
        for (function, number) in [("a", 1), ("b", 2)] {
            let change = numbers
                .settle(&named(function), vec![tcp(number)])
                .expect("room");
            assert_eq!(change.number, u32::from(number));
        }
        assert_eq!(numbers.settle(&named("c"), vec![tcp(3)]), None);
        numbers.settle(&named("a"), vec![]).expect("room");
        assert_eq!(
            numbers
                .settle(&named("c"), vec![tcp(3)])
                .map(|change| change.number),
            Some(1)
        );
        assert_eq!(
            (numbers.of(&named("b")), numbers.of(&named("c"))),
            (Some(2), Some(1))
        );
    }

    #[test]
    fn a_function_and_a_chain_of_one_name_are_two() {
        let mut numbers = Numbers::new(2);
        for (owner, number) in [(named("a"), 1), (PortOwner::chain("a"), 2)] {
            let change = numbers.settle(&owner, vec![tcp(number)]).expect("room");
            assert_eq!(change.number, u32::from(number));
            assert_eq!(numbers.of(&owner), Some(u32::from(number)));
        }
    }

    #[test]
    fn what_was_counted_for_who_has_left_is_known_until_the_number_is_used_again() {
        let mut numbers = Numbers::new(2);
        numbers.settle(&named("a"), vec![tcp(1)]).expect("room");
        assert_eq!(numbers.left().count(), 0);
        numbers.settle(&named("a"), vec![]).expect("room");
        assert_eq!(numbers.left().collect::<Vec<_>>(), [1]);
        let change = numbers.settle(&named("b"), vec![tcp(1)]).expect("room");
        assert!(change.is_new && change.was_used);
        let change = numbers.settle(&named("c"), vec![tcp(2)]).expect("room");
        assert!(change.is_new && !change.was_used);
        assert_eq!(numbers.left().count(), 0);
    }
}
