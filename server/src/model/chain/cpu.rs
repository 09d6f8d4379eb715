//! How a chain's members share the processors with others.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Spec;
use super::check::refuse;
use crate::model::InvalidField;

/// Largest constant of a member: a second of processor time for each request.
pub const MAX_CPU_US: u32 = 1_000_000;

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
}

impl Cpu {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Shared, Self::Proportional];

    /// As the API calls it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::Proportional => "proportional",
        }
    }
}

/// Processor time that each member takes for one request to the chain, in µs, by the members' names.
pub type CpuUs = BTreeMap<String, u32>;

impl Spec {
    pub(super) fn check_cpu(&self) -> Result<(), InvalidField> {
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
