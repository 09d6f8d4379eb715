//! The version of a deployment: it changes in place if the next version differs only in its network policy.

use std::sync::atomic::Ordering;

use super::Deployment;
use crate::model::{FunctionSpec, Network};

impl Deployment {
    /// The version's number.
    pub fn version(&self) -> u32 {
        self.version.load(Ordering::Relaxed)
    }

    /// Becomes another version of its function that differs only in its network policy: the kernel gets the new policy,
    /// and nothing else changes.
    pub fn become_version(&self, version: u32, network: &Network) {
        self.version.store(version, Ordering::Relaxed);
        self.network.function().apply(network);
    }

    /// What its image depends on: whether it has a network, but not the policy, which only the kernel has.
    pub(super) fn image_spec(&self) -> FunctionSpec {
        FunctionSpec {
            network: match self.network.now().is_open() {
                true => Network::internet(),
                false => Network::None,
            },
            ..self.spec.clone()
        }
    }
}
