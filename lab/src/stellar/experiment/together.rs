//! What sub-experiments take from the host that run at the same time.

use super::check::Refused;
use super::{Experiment, PARALLELISM_MAX, SubExperiment};
use crate::load::plan::CONNECTIONS_MAX;
use crate::platform::chain::INSTANCES_MAX as CHAIN_INSTANCES_MAX;

/// Most instances of all chains at a time.
const CHAINS_INSTANCES_MAX: usize = 480;

/// Most bytes of payloads that functions are asked to make at once: they have them in memory all together.
const PAYLOADS_MAX: usize = 1 << 30;

impl Experiment {
    /// Whether the host has room for all of them.
    pub(super) fn check_together(&self, has_endpoint: bool) -> Result<(), Refused> {
        let at_once = |take: &dyn Fn(&SubExperiment) -> usize| {
            let taken = self.sub_experiments.iter().map(take);
            if self.sequential {
                taken.max().unwrap_or(0)
            } else {
                taken.fold(0, usize::saturating_add)
            }
        };
        let advice = if self.sequential {
            ""
        } else {
            " in all sub-experiments together, which run at once without Sequential"
        };
        let refuse = |field, most: String| Err((field, format!("at most {most}{advice}")));
        if at_once(&SubExperiment::largest_burst) > CONNECTIONS_MAX {
            return refuse(
                "BurstSizes",
                format!("{CONNECTIONS_MAX} requests at a time"),
            );
        }
        if has_endpoint {
            return Ok(());
        }
        if at_once(&|one| one.parallelism) > PARALLELISM_MAX {
            return refuse("Parallelism", format!("{PARALLELISM_MAX} functions"));
        }
        let instances = |one: &SubExperiment| match one.is_chain() {
            // All of them run from the chain's beginning on.
            true => {
                let members = one.data_transfer_chain_length;
                let each = members.saturating_mul(one.largest_burst());
                one.parallelism * each.min(CHAIN_INSTANCES_MAX)
            }
            false => 0,
        };
        if at_once(&instances) > CHAINS_INSTANCES_MAX {
            let most = format!("{CHAINS_INSTANCES_MAX} instances of chains");
            return refuse("Parallelism", most);
        }
        // Each function of a chain has it, too.
        let payloads = |one: &SubExperiment| {
            let burst = one.payload_length_bytes.saturating_mul(one.largest_burst());
            burst.saturating_mul(one.data_transfer_chain_length)
        };
        if at_once(&payloads) > PAYLOADS_MAX {
            let most = format!("{PAYLOADS_MAX} bytes for all requests of a burst");
            return refuse("PayloadLengthBytes", most);
        }
        Ok(())
    }
}
