//! Which function has which number in the maps, and which ports there.

use std::collections::BTreeMap;

use crate::model::Port;

/// See the module.
pub(super) struct Numbers {
    functions: BTreeMap<String, (u32, Vec<Port>)>,
    /// The largest number.
    last: u32,
}

/// What has to be changed in the maps.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Change {
    /// The function's number.
    pub(super) number: u32,
    /// Whether it is new: the counters are another function's.
    pub(super) is_new: bool,
    pub(super) given: Vec<Port>,
    pub(super) taken: Vec<Port>,
}

impl Numbers {
    pub(super) fn new(last: u32) -> Self {
        Self {
            functions: BTreeMap::new(),
            last,
        }
    }

    /// A function's number, if it has ports.
    pub(super) fn of(&self, function: &str) -> Option<u32> {
        self.functions.get(function).map(|(number, _)| *number)
    }

    /// All functions that have ports, with their numbers.
    pub(super) fn all(&self) -> impl Iterator<Item = (&str, u32)> {
        let functions = self.functions.iter();
        functions.map(|(name, (number, _))| (name.as_str(), *number))
    }

    /// How many ports they have.
    pub(super) fn ports(&self) -> usize {
        self.functions.values().map(|(_, ports)| ports.len()).sum()
    }

    /// Makes these a function's ports, and says what that changes. None if all numbers are taken.
    pub(super) fn settle(&mut self, function: &str, ports: Vec<Port>) -> Option<Change> {
        let known = self.functions.remove(function);
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
            given: beyond(&ports, &had),
            taken: beyond(&had, &ports),
        };
        if !ports.is_empty() {
            self.functions.insert(function.to_owned(), (number, ports));
        }
        Some(change)
    }

    /// The first number that nobody has.
    fn free(&self) -> Option<u32> {
        let mut used: Vec<u32> = self.functions.values().map(|(number, _)| *number).collect();
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

    fn tcp(number: u16) -> Port {
        Port {
            protocol: Protocol::Tcp,
            number,
        }
    }

    #[test]
    fn only_what_differs_is_changed() {
        let mut numbers = Numbers::new(10);
        let change = numbers.settle("a", vec![tcp(1), tcp(2)]).expect("room");
        assert_eq!((change.number, change.is_new), (1, true));
        assert_eq!((change.given, change.taken), (vec![tcp(1), tcp(2)], vec![]));
        let change = numbers.settle("a", vec![tcp(2), tcp(3)]).expect("room");
        assert_eq!((change.number, change.is_new), (1, false));
        assert_eq!((change.given, change.taken), (vec![tcp(3)], vec![tcp(1)]));
        let change = numbers.settle("a", vec![]).expect("room");
        assert_eq!((change.number, change.taken), (1, vec![tcp(2), tcp(3)]));
        assert_eq!(numbers.of("a"), None);
        assert_eq!(numbers.settle("a", vec![]), Some(Change::default()));
    }

    #[test]
    fn numbers_are_used_again() {
        let mut numbers = Numbers::new(2);
        for (function, number) in [("a", 1), ("b", 2)] {
            let change = numbers.settle(function, vec![tcp(number)]).expect("room");
            assert_eq!(change.number, u32::from(number));
        }
        assert_eq!(numbers.settle("c", vec![tcp(3)]), None);
        numbers.settle("a", vec![]).expect("room");
        assert_eq!(
            numbers
                .settle("c", vec![tcp(3)])
                .map(|change| change.number),
            Some(1)
        );
        assert_eq!((numbers.of("b"), numbers.of("c")), (Some(2), Some(1)));
    }
}
