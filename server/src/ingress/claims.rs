//! Who has which port, and which number each function has in the maps.

use std::collections::HashMap;
use std::sync::Arc;

use super::Ingress;
use crate::model::PortTrigger;

/// Why a function cannot have a port.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PortRefused {
    /// Somebody has it.
    #[error("TCP port {port} is taken by {by}")]
    Taken {
        /// The port.
        port: u16,
        /// Who has it, in words.
        by: String,
    },
    /// There are as many functions with ports as the maps have room for.
    #[error("no more than {0} functions can have ports")]
    Full(u32),
    /// No function can have one here.
    #[error("functions cannot have ports on this host: {0}")]
    NotHere(String),
}

/// Ports that are held for a function until they are settled or this is dropped.
#[must_use]
pub struct PortClaim {
    ingress: Ingress,
    function: String,
    /// Those that it did not have before.
    claimed: Vec<u16>,
}

impl PortClaim {
    pub(super) fn new(ingress: Ingress, function: &str, claimed: Vec<u16>) -> Self {
        Self {
            ingress,
            function: function.to_owned(),
            claimed,
        }
    }

    /// Keeps them. Says whose they are.
    pub(super) fn keep(mut self) -> String {
        self.claimed.clear();
        std::mem::take(&mut self.function)
    }
}

impl Drop for PortClaim {
    fn drop(&mut self) {
        if !self.claimed.is_empty() {
            self.ingress.release(&self.function, &self.claimed);
        }
    }
}

/// What has to be changed in the maps.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Change {
    /// The function's number; none if there is no room.
    pub(super) index: Option<u32>,
    /// Whether the number is new.
    pub(super) is_new: bool,
    pub(super) given: Vec<u16>,
    pub(super) taken: Vec<u16>,
}

/// See the module.
pub(super) struct Ports {
    /// Claimed ones, too.
    owners: HashMap<u16, Owner>,
    indices: HashMap<Arc<str>, u32>,
    /// The largest number of a function.
    last: u32,
}

struct Owner {
    function: Arc<str>,
    /// Whether connections go to it.
    is_settled: bool,
}

impl Ports {
    pub(super) fn new(last: u32) -> Self {
        Self {
            owners: HashMap::new(),
            indices: HashMap::new(),
            last,
        }
    }

    pub(super) fn owner(&self, port: u16) -> Option<Arc<str>> {
        let owner = self.owners.get(&port).filter(|owner| owner.is_settled)?;
        Some(owner.function.clone())
    }

    pub(super) fn index(&self, function: &str) -> Option<u32> {
        self.indices.get(function).copied()
    }

    /// Claims what the function does not have yet, and says which that is. `by_whom` knows who else on the host has a port.
    pub(super) fn claim(
        &mut self,
        function: &str,
        triggers: &[PortTrigger],
        by_whom: impl Fn(u16) -> Option<String>,
    ) -> Result<Vec<u16>, PortRefused> {
        let mut wanted = Vec::new();
        for PortTrigger { port, .. } in triggers {
            match self.owners.get(port) {
                Some(owner) if &*owner.function == function => {}
                Some(owner) => {
                    let by = format!("the function \"{}\"", owner.function);
                    return Err(PortRefused::Taken { port: *port, by });
                }
                None => {
                    if let Some(by) = by_whom(*port) {
                        return Err(PortRefused::Taken { port: *port, by });
                    }
                    wanted.push(*port);
                }
            }
        }
        let is_full = self.indices.len() as u64 >= u64::from(self.last);
        if !wanted.is_empty() && is_full && self.index(function).is_none() {
            return Err(PortRefused::Full(self.last));
        }
        let name: Arc<str> = function.into();
        for port in &wanted {
            let owner = Owner {
                function: name.clone(),
                is_settled: false,
            };
            self.owners.insert(*port, owner);
        }
        Ok(wanted)
    }

    /// Gives claimed ports back.
    pub(super) fn release(&mut self, function: &str, ports: &[u16]) {
        for port in ports {
            let is_claimed = self
                .owners
                .get(port)
                .is_some_and(|owner| &*owner.function == function && !owner.is_settled);
            if is_claimed {
                self.owners.remove(port);
            }
        }
    }

    /// Makes these the function's ports, and says what that changes.
    pub(super) fn settle(&mut self, function: &str, triggers: &[PortTrigger]) -> Change {
        let known = self.indices.get_key_value(function);
        let name: Arc<str> = known.map_or_else(|| function.into(), |(name, _)| name.clone());
        let had = self.index(function);
        let index = had.or_else(|| {
            let mut used: Vec<u32> = self.indices.values().copied().collect();
            used.sort_unstable();
            // The first gap.
            let free = (1..).zip(&used).find(|(number, used)| number != *used);
            let free = free.map_or(used.len() as u32 + 1, |(number, _)| number);
            (free <= self.last).then_some(free)
        });
        let mut change = Change {
            index,
            is_new: had.is_none() && !triggers.is_empty(),
            ..Change::default()
        };
        let Some(index) = index.or(triggers.is_empty().then_some(0)) else {
            return change;
        };
        change.index = Some(index);
        for PortTrigger { port, .. } in triggers {
            let owner = Owner {
                function: name.clone(),
                is_settled: true,
            };
            let before = self.owners.insert(*port, owner);
            if !before.is_some_and(|before| before.is_settled) {
                change.given.push(*port);
            }
        }
        self.owners.retain(|port, owner| {
            let stays =
                owner.function != name || triggers.iter().any(|trigger| trigger.port == *port);
            if !stays {
                change.taken.push(*port);
            }
            stays
        });
        match triggers {
            [] => self.indices.remove(&*name),
            _ => self.indices.insert(name, index),
        };
        change
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{PortMode, PortProtocol};

    fn tcp(port: u16) -> PortTrigger {
        PortTrigger {
            protocol: PortProtocol::Tcp,
            port,
            mode: PortMode::Http,
        }
    }

    fn nobody(_: u16) -> Option<String> {
        None
    }

    #[test]
    fn a_port_has_one_owner() {
        let mut ports = Ports::new(10);
        assert_eq!(ports.claim("a", &[tcp(1), tcp(2)], nobody), Ok(vec![1, 2]));
        // Claimed is not served yet, and nobody else's either.
        assert_eq!(ports.owner(1), None);
        let refused = ports.claim("b", &[tcp(3), tcp(2)], nobody);
        let by = "the function \"a\"".to_owned();
        assert_eq!(refused, Err(PortRefused::Taken { port: 2, by }));
        assert_eq!(ports.claim("c", &[tcp(3)], nobody), Ok(vec![3]));
        ports.release("c", &[3]);
        let change = ports.settle("a", &[tcp(1), tcp(2)]);
        assert_eq!((change.index, change.is_new), (Some(1), true));
        assert_eq!((change.given, change.taken), (vec![1, 2], vec![]));
        assert_eq!(ports.owner(1).as_deref(), Some("a"));
        // Its own it can have again, and a release of what is settled changes nothing.
        assert_eq!(ports.claim("a", &[tcp(2), tcp(3)], nobody), Ok(vec![3]));
        ports.release("a", &[2]);
        let change = ports.settle("a", &[tcp(2), tcp(3)]);
        assert_eq!((change.index, change.is_new), (Some(1), false));
        assert_eq!((change.given, change.taken), (vec![3], vec![1]));
        assert_eq!(ports.claim("b", &[tcp(1)], nobody), Ok(vec![1]));
    }

    #[test]
    fn who_else_has_a_port_is_named_and_nothing_is_claimed() {
        let mut ports = Ports::new(10);
        let by_whom = |port| (port == 22).then(|| "a process".to_owned());
        let refused = ports.claim("a", &[tcp(1), tcp(22)], by_whom);
        let by = "a process".to_owned();
        assert_eq!(refused, Err(PortRefused::Taken { port: 22, by }));
        assert_eq!(ports.claim("b", &[tcp(1)], by_whom), Ok(vec![1]));
    }

    #[test]
    fn numbers_are_used_again() {
        let mut ports = Ports::new(2);
        for (function, port, index) in [("a", 1, 1), ("b", 2, 2)] {
            ports
                .claim(function, &[tcp(port)], nobody)
                .expect("claimed");
            assert_eq!(ports.settle(function, &[tcp(port)]).index, Some(index));
        }
        let refused = ports.claim("c", &[tcp(3)], nobody);
        assert_eq!(refused, Err(PortRefused::Full(2)));
        let change = ports.settle("a", &[]);
        assert_eq!((change.taken, change.is_new), (vec![1], false));
        assert_eq!(ports.index("a"), None);
        ports.claim("c", &[tcp(3)], nobody).expect("claimed");
        assert_eq!(ports.settle("c", &[tcp(3)]).index, Some(1));
        // One that never had any changes nothing.
        assert_eq!(ports.settle("d", &[]).given, [] as [u16; 0]);
    }
}
