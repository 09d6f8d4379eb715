//! The way out of sandboxes that have one: an interface each, rules, addresses that names resolved to, counters.
//!
//! ```text
//! sandbox ── eth0 ═ s<n> ── gateway ── up ═ hearth<n> ── the host's own network namespace
//! ```
//! The gateway is a network namespace that this process's threads alone have, and no file: everything in it ends with the
//! process, however that ends. In the host's own namespace there are one interface, which ends with its other end, and one
//! table, which ends with the socket that made it. `server/docs/network.md` explains the design.
//!
//! - [`gateway`]: the namespace, and what is done in it. [`sandbox`]: what is done in a sandbox's.
//! - [`rules`]: what may pass. [`ranges`]: what never may. [`address`]: who has which address.
//! - [`connections`]: connections that are under way. [`refusals`]: how refused packets are reported.
//! - [`nft`], [`link`]: the kernel's interfaces, over [`netlink`].
//!
//! On two threads: one for everything that somebody waits for, and one for removals, for which the kernel takes long.

mod address;
mod connections;
mod gateway;
mod link;
mod netlink;
mod nft;
mod ranges;
mod refusals;
mod rules;
mod sandbox;
mod sys;

use std::os::fd::OwnedFd;
use std::sync::mpsc;

pub(crate) use self::gateway::Gateway;
use crate::helpers::{Helper, Reporter};
use crate::settings::NetworkSettings;

/// What a sandbox got.
#[derive(Debug)]
pub(crate) struct Attached {
    /// Number of its interface in the gateway.
    pub(crate) interface: u32,
    /// Its UDP socket and its TCP listener for names.
    pub(crate) resolver: [OwnedFd; 2],
}

/// The thread, and what it has for the server.
pub(crate) struct Network {
    pub(crate) gateway: Helper<Gateway>,
    /// Where the kernel reports what it refused.
    pub(crate) refusals: Option<OwnedFd>,
}

impl Network {
    /// Makes the gateway. Changes nothing in the host's own network namespace.
    ///
    /// # Errors
    /// What this host lacks.
    pub(crate) fn open(settings: &NetworkSettings, reporter: Reporter) -> Result<Self, String> {
        let (settings, for_remover) = (settings.clone(), reporter.clone());
        let (sender, refusals) = mpsc::channel();
        let gateway = Helper::start("hearth-network", reporter, move || {
            let gateway = Gateway::open(&settings, for_remover)?;
            let refusals = refusals::open(rules::GROUP).map_err(|error| error.to_string())?;
            // Its receiver waits for it.
            let _ = sender.send(refusals);
            Ok(gateway)
        })?;
        Ok(Self {
            gateway,
            refusals: refusals.recv().ok(),
        })
    }
}
