//! Which version a deployment is of: another one of its function, once that differs only in what it may reach.

use std::sync::atomic::Ordering;

use super::Deployment;
use crate::model::{FunctionSpec, Network};

impl Deployment {
    /// The version's number.
    pub fn version(&self) -> u32 {
        self.version.load(Ordering::Relaxed)
    }

    /// Goes on as another version of its function, which differs in what it may reach over the network: the kernel gets
    /// the new policy, and nothing else changes.
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
