//! Ports of chains: claimed and taken over by a change as those of functions are.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Catalog, CatalogError};
use crate::engine::PortsView;
use crate::model::chain::{Spec, Trigger};
use crate::model::{InvalidField, PortOwner};
use crate::ports;

/// A chain's ports and their traffic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChainIngressView {
    /// The ports.
    pub triggers: Vec<Trigger>,
    /// What comes to them.
    #[serde(flatten)]
    pub seen: PortsView,
}

impl Catalog {
    /// A chain's ports.
    ///
    /// # Errors
    /// [`CatalogError::NotFound`].
    pub fn ingress(&self, name: &str) -> Result<ChainIngressView, CatalogError> {
        let stored = self.chain(name)?.stored();
        let spec = &stored.active.spec;
        let engine = &self.inner.engine;
        Ok(ChainIngressView {
            seen: engine.ports_of(&owner(spec), &spec.ports(), spec.port_limits),
            triggers: spec.triggers.clone(),
        })
    }

    /// Rules that this node adds.
    pub(super) fn check(&self, spec: &Spec) -> Result<(), InvalidField> {
        self.inner.engine.check_port_limits(spec.port_limits)
    }

    /// Claims the ports of a version that is about to serve.
    pub(super) async fn claim_ports(&self, spec: &Spec) -> Result<ports::Claim, InvalidField> {
        let engine = &self.inner.engine;
        engine
            .claim_ports_of(&owner(spec), &spec.ports(), spec.port_limits)
            .await
    }

    /// Opens the ports that chains had before the server was started. Requests wait until their members run.
    pub(super) async fn restore_ports(&self) {
        for chain in self.all() {
            let stored = chain.stored();
            let spec = &stored.active.spec;
            let engine = &self.inner.engine;
            engine
                .restore_ports(&owner(spec), &spec.ports(), spec.port_limits)
                .await;
        }
    }
}

fn owner(spec: &Spec) -> PortOwner {
    PortOwner::chain(spec.name.as_str())
}
