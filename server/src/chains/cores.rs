//! Cores that chains have for themselves: which there are, and who has them.

use std::collections::BTreeSet;
use std::sync::Arc;

use hearth_host::cores;
use parking_lot::Mutex;

use super::ActivateError;
use crate::model::InvalidField;
use crate::model::chain::{CpuCores, MAX_CORES, Spec};
use crate::sandbox::{Capability, Host};

/// A request to the host process has room for them.
const _: () = assert!(MAX_CORES == cores::DEDICATED_CORES);

/// Cores by the chain that has them; a chain has them once for each version that has members.
#[derive(Debug, Clone, Default)]
pub(super) struct Reservations {
    all: Arc<Mutex<Vec<Reserved>>>,
}

#[derive(Debug)]
struct Reserved {
    number: u64,
    chain: String,
    cores: BTreeSet<u32>,
}

/// Cores of a version. They are free again when it is dropped.
#[derive(Debug)]
pub(super) struct Reservation {
    number: u64,
    all: Arc<Mutex<Vec<Reserved>>>,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.all.lock().retain(|of| of.number != self.number);
    }
}

impl Reservations {
    /// Reserves what a chain asks for.
    ///
    /// # Errors
    /// The first core that cannot be had, or the setting where the host has none to give.
    pub(super) fn reserve(
        &self,
        spec: &Spec,
        host: &Host,
    ) -> Result<Option<Reservation>, ActivateError> {
        if spec.dedicated_cores().is_empty() {
            return Ok(None);
        }
        let there = there(host.capability("cpuset"))?;
        self.take(&spec.name, &spec.cpu_cores, &there).map(Some)
    }

    fn take(
        &self,
        chain: &str,
        wanted: &CpuCores,
        there: &BTreeSet<u32>,
    ) -> Result<Reservation, ActivateError> {
        let mut all = self.all.lock();
        let others = || all.iter().filter(|of| of.chain != chain);
        for (core, at) in wanted.iter().zip(0..) {
            let rule = if !there.contains(core) {
                format!(
                    "must be a core that Hearth may use; this host has {}",
                    cores::list(there)
                )
            } else if let Some(other) = others().find(|of| of.cores.contains(core)) {
                format!("is dedicated to the chain \"{}\"", other.chain)
            } else {
                continue;
            };
            return Err(wrong(&format!("cpu_cores[{at}]"), core.to_string(), rule));
        }
        let taken: BTreeSet<_> = others().flat_map(|of| &of.cores).chain(wanted).collect();
        if there.iter().all(|core| taken.contains(core)) {
            let rule = "must leave a core to everything else".to_owned();
            return Err(wrong("cpu_cores", format!("{wanted:?}"), rule));
        }
        let number = all.iter().map(|of| of.number + 1).max().unwrap_or_default();
        all.push(Reserved {
            number,
            chain: chain.to_owned(),
            cores: wanted.iter().copied().collect(),
        });
        Ok(Reservation {
            number,
            all: self.all.clone(),
        })
    }
}

/// The cores that can be dedicated here.
fn there(cpuset: Option<&Capability>) -> Result<BTreeSet<u32>, ActivateError> {
    let list = cpuset.and_then(|found| found.version.as_deref());
    list.and_then(cores::parse).ok_or_else(|| {
        let reason = cpuset.and_then(|found| found.reason.as_deref());
        let reason = reason.unwrap_or("the host process has not looked for them");
        let rule = format!("cannot be dedicated: this host has no cpusets ({reason})");
        wrong("cpu", "\"dedicated\"".to_owned(), rule)
    })
}

fn wrong(field: &str, value: String, rule: String) -> ActivateError {
    ActivateError::Cores(InvalidField {
        field: field.to_owned(),
        value,
        rule,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_belongs_to_one_chain_and_one_is_left() {
        let all = Reservations::default();
        let there = BTreeSet::from([0, 1, 2, 3]);
        let take = |chain: &str, wanted: &[u32]| {
            all.take(chain, &wanted.to_vec(), &there)
                .map_err(|error| match error {
                    ActivateError::Cores(wrong) => (wrong.field, wrong.rule),
                    other => panic!("{other}"),
                })
        };
        let first = take("a", &[1, 2]).expect("they are free");
        let again = take("a", &[2]).expect("its own, of another version");
        let (field, rule) = take("b", &[3, 2]).expect_err("one is not free");
        assert!(
            field == "cpu_cores[1]" && rule.contains("chain \"a\""),
            "{rule}"
        );
        let (field, rule) = take("b", &[4]).expect_err("there is none");
        assert!(
            field == "cpu_cores[0]" && rule.ends_with("this host has 0-3"),
            "{rule}"
        );
        let (field, _) = take("b", &[3, 0]).expect_err("none would be left");
        assert_eq!(field, "cpu_cores");
        drop(first);
        let other = take("b", &[1]).expect("it is free again");
        take("b", &[1, 2]).expect_err("that one is not");
        drop((again, other));
        take("b", &[1, 2, 3]).expect("all are free");
    }

    #[test]
    fn a_host_without_cpusets_says_why() {
        let none = Capability::from(hearth_host::Capability::unavailable("cpuset", "so".into()));
        let Err(ActivateError::Cores(wrong)) = there(Some(&none)) else {
            panic!("refused");
        };
        assert!(
            wrong.field == "cpu" && wrong.rule.contains("(so)"),
            "{}",
            wrong.rule
        );
    }
}
