//! Cores that instances have for themselves, and those that are left to all others.

use std::collections::{BTreeSet, HashMap};
use std::io;

use super::Supervisor;
use super::instances::number;
use crate::cgroup::Version;
use crate::protocol::request::Target;
use crate::protocol::{Key, LeafNumber, Reply, Sequence};
use crate::{Capability, SandboxError, cores};

/// The capability that lists the cores.
const CPUSET: &str = "cpuset";

/// Who has which cores.
#[derive(Debug, Default)]
pub(super) struct Cores {
    /// All that there are; none where there are no cpusets.
    all: BTreeSet<u32>,
    /// Those of instances, which may have the same: a chain's have.
    of: HashMap<(Key, LeafNumber), BTreeSet<u32>>,
}

impl Cores {
    /// By what was found out.
    pub(super) fn new(capabilities: &[Capability]) -> Self {
        let cpuset = capabilities.iter().find(|found| found.name == CPUSET);
        let list = cpuset.and_then(|found| found.version.as_deref());
        Self {
            all: list.and_then(cores::parse).unwrap_or_default(),
            of: HashMap::new(),
        }
    }

    /// Those that nobody has.
    fn shared(&self) -> BTreeSet<u32> {
        let mut shared = self.all.clone();
        for of in self.of.values() {
            shared.retain(|core| !of.contains(core));
        }
        shared
    }

    /// Whether an instance may have these: there are such cores, and others are left.
    fn check(&self, wanted: &BTreeSet<u32>) -> Result<(), SandboxError> {
        if self.all.is_empty() {
            return Err(SandboxError::step("cpuset", "this host has no cpusets"));
        }
        if wanted.is_empty() || !wanted.is_subset(&self.all) {
            return Err(SandboxError::specification("there are no such cores"));
        }
        if self.shared().is_subset(wanted) {
            return Err(SandboxError::specification("no core would be left"));
        }
        Ok(())
    }
}

impl Supervisor {
    /// Says which cores there are, and joins the processes that share them.
    pub(super) fn find_cores(&mut self) {
        let capabilities = &mut self.host.capabilities;
        self.cores = Cores::new(capabilities);
        if let Err(error) = self.host.top.enter_shared_cores() {
            self.cores = Cores::default();
            capabilities.retain(|found| found.name != CPUSET);
            capabilities.push(Capability::unavailable(CPUSET, error.to_string()));
        }
    }

    /// Gives an instance cores that no other sandbox's processes may use from then on.
    pub(super) fn dedicate(
        &mut self,
        sequence: Sequence,
        target: Target,
        mask: u128,
    ) -> Result<(), SandboxError> {
        let failed = |error: io::Error| SandboxError::step("cpuset", error);
        let wanted = cores::of_mask(mask);
        self.cores.check(&wanted)?;
        self.end_boosts(target.key);
        let Some(live) = self.live.get(&target.key) else {
            return Err(SandboxError::Gone);
        };
        if !live.is_running() || !live.leaves.contains(&target.leaf) {
            return Err(SandboxError::Gone);
        }
        let own = live
            .group
            .own_cores(target.leaf, live.uid, number(target.pid));
        let place = (target.key, target.leaf);
        self.cores.of.insert(place, wanted.clone());
        // Whoever had the core before is off it first.
        if let Err(error) = self.spread() {
            self.return_cores(place);
            return Err(failed(error));
        }
        match (self.host.top.version, own) {
            (Version::V1, Some(own)) => self.attach.ask(sequence, move |()| {
                own.take(&wanted).map_err(failed)?;
                Ok(Reply::Done(sequence))
            }),
            _ => {
                self.say(Reply::Done(sequence));
                Ok(())
            }
        }
    }

    /// Gives an instance's cores back to all, if it has any. For when its processes are gone.
    pub(super) fn return_cores(&mut self, place: (Key, LeafNumber)) {
        if self.cores.of.remove(&place).is_some() {
            self.spread_or_warn();
        }
    }

    /// The same for all of a sandbox.
    pub(super) fn return_all_cores(&mut self, key: Key) {
        let before = self.cores.of.len();
        self.cores.of.retain(|(of, _), _| *of != key);
        if self.cores.of.len() != before {
            self.spread_or_warn();
        }
    }

    fn spread_or_warn(&self) {
        if let Err(error) = self.spread() {
            tracing::warn!(%error, "cores that an instance had cannot be given to the others");
        }
    }

    /// Says to the kernel who may use which cores.
    fn spread(&self) -> io::Result<()> {
        let shared = self.cores.shared();
        self.host.top.share_cores(&shared)?;
        match self.host.top.version {
            Version::V1 => Ok(()),
            Version::V2 => self
                .live
                .keys()
                .try_for_each(|key| self.spread_in(*key, &shared)),
        }
    }

    /// v2: the cores of each leaf of a sandbox.
    fn spread_in(&self, key: Key, shared: &BTreeSet<u32>) -> io::Result<()> {
        let Some(live) = self.live.get(&key).filter(|live| !live.removing) else {
            return Ok(());
        };
        let set = |leaf, cores| match live.group.set_cores(&leaf, cores) {
            // It is being removed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        };
        set(live.group.template(), shared)?;
        live.leaves.iter().try_for_each(|leaf| {
            let own = self.cores.of.get(&(key, *leaf));
            set(live.leaf(*leaf), own.unwrap_or(shared))
        })
    }

    /// v2: keeps what is new in a sandbox off cores that others have.
    pub(super) fn keep_off(&self, key: Key) -> io::Result<()> {
        match self.host.top.version {
            Version::V2 if !self.cores.of.is_empty() => self.spread_in(key, &self.cores.shared()),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_there_and_one_is_left() {
        let found = |cores: &str| vec![Capability::available("cpuset", Some(cores.to_owned()))];
        let mut cores = Cores::new(&found("0-2"));
        let check = |cores: &Cores, wanted: &[u32]| {
            let wanted = wanted.iter().copied().collect();
            cores.check(&wanted).is_ok()
        };
        assert!(check(&cores, &[0, 2]) && check(&cores, &[1]));
        assert!(!check(&cores, &[]) && !check(&cores, &[3]) && !check(&cores, &[0, 1, 2]));
        cores.of.insert((1, 1), BTreeSet::from([1]));
        cores.of.insert((1, 2), BTreeSet::from([1]));
        assert_eq!(cores.shared(), BTreeSet::from([0, 2]));
        assert!(check(&cores, &[1, 2]) && !check(&cores, &[0, 2]));
        let none = Cores::new(&[Capability::unavailable("cpuset", String::new())]);
        assert!(!check(&none, &[0]));
    }
}
