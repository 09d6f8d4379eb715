//! How a chain's members share the processors with others.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Spec;
use super::check::refuse;
use crate::model::InvalidField;

/// Largest constant of a member: a second of processor time for each request.
pub const MAX_CPU_US: u32 = 1_000_000;

/// Cores that can be dedicated are numbered below this.
pub const MAX_CORES: u32 = 128;

/// How much of the processors a chain's members may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, ToSchema)]
#[schema(as = ChainCpu)]
#[serde(rename_all = "lowercase")]
pub enum Cpu {
    /// What their functions may.
    #[default]
    Shared,
    /// In proportion to the chain's requests of late, by the constants in `cpu_us`, and never none.
    Proportional,
    /// What their functions may, on the cores in `cpu_cores`, which no other function uses.
    Dedicated,
}

impl Cpu {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Shared, Self::Proportional, Self::Dedicated];

    /// As the API calls it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::Proportional => "proportional",
            Self::Dedicated => "dedicated",
        }
    }
}

/// Processor time that each member takes for one request to the chain, in µs, by the members' names.
pub type CpuUs = BTreeMap<String, u32>;

/// Numbers of processor cores.
pub type CpuCores = Vec<u32>;

impl Spec {
    /// The cores that its members have for themselves; none where they share them.
    #[must_use]
    pub fn dedicated_cores(&self) -> BTreeSet<u32> {
        match self.cpu {
            Cpu::Dedicated => self.cpu_cores.iter().copied().collect(),
            Cpu::Shared | Cpu::Proportional => BTreeSet::new(),
        }
    }

    /// Whether they can be had is the host's to say.
    fn check_cores(&self) -> Result<(), InvalidField> {
        let mut seen = BTreeSet::new();
        for (core, at) in self.cpu_cores.iter().zip(0..) {
            let field = format!("cpu_cores[{at}]");
            if *core >= MAX_CORES {
                let rule = format!("must be the number of a core, at most {}", MAX_CORES - 1);
                return Err(refuse(&field, *core, rule));
            }
            if !seen.insert(core) {
                return Err(refuse(&field, *core, "must be given once"));
            }
        }
        if self.cpu == Cpu::Dedicated && seen.is_empty() {
            let rule = "must have a core at least, because cpu is \"dedicated\"";
            return Err(refuse("cpu_cores", serde_json::json!([]), rule));
        }
        Ok(())
    }

    pub(super) fn check_cpu(&self) -> Result<(), InvalidField> {
        self.check_cores()?;
        for (member, us) in &self.cpu_us {
            let field = format!("cpu_us.{member}");
            if !self.members.contains_key(member) {
                return Err(refuse(&field, *us, "must be one of the chain's members"));
            }
            if !(1..=MAX_CPU_US).contains(us) {
                let rule = format!("must be a whole number of µs from 1 to {MAX_CPU_US}");
                return Err(refuse(&field, *us, rule));
            }
        }
        let missing = self
            .members
            .keys()
            .find(|member| !self.cpu_us.contains_key(*member));
        match missing {
            Some(member) if self.cpu == Cpu::Proportional => {
                let rule = "must have a constant for each member, because cpu is \"proportional\"; \
                            hearth lab fit measures them";
                Err(refuse(
                    &format!("cpu_us.{member}"),
                    serde_json::Value::Null,
                    rule,
                ))
            }
            _ => Ok(()),
        }
    }
}
