//! What the host process works on.

use std::path::PathBuf;

use hearth_init::criu::CriuProgram;

use crate::cgroup::Directories;
use crate::network::Network;
use crate::prepare::{Prepared, Probed};
use crate::settings::Settings;
use crate::{Capability, SandboxError};

/// What the host process works on.
pub struct Host {
    pub(crate) settings: Settings,
    pub(super) init: String,
    pub(super) dir: PathBuf,
    /// The cgroup of all sandboxes.
    pub(super) top: Directories,
    pub(super) criu: Option<CriuProgram>,
    /// By which sandboxes have a network.
    pub(super) network: Option<Network>,
    pub(super) capabilities: Vec<Capability>,
}

impl Host {
    /// Takes what was prepared, and adds the network, which is the process's own.
    #[must_use]
    pub fn new(prepared: Prepared) -> Self {
        let mut capabilities = prepared.capabilities;
        let network = Network::open(&prepared.settings.network);
        capabilities.push(match &network {
            Ok(_) => Capability::available("network_outbound", None),
            Err(reason) => Capability::unavailable("network_outbound", reason.clone()),
        });
        Self {
            settings: prepared.settings,
            init: prepared.init,
            dir: prepared.dir,
            top: prepared.cgroups,
            criu: prepared.criu,
            network: network.ok(),
            capabilities,
        }
    }

    /// Prepares, and takes that.
    ///
    /// # Errors
    /// As [`Prepared::new`].
    pub fn open(settings: Settings, probed: Probed) -> Result<Self, SandboxError> {
        Prepared::new(settings, probed).map(Self::new)
    }
}
