//! Outbound networks of sandboxes: one interface each, rules, addresses of resolved names, counters.
//!
//! ```text
//! sandbox ── eth0 ═ s<n> ── gateway ── up ═ hearth<n> ── the host's own network namespace
//! ```
//! The gateway is a network namespace that only this process's threads are in, without a file: it ends with the
//! process, however that ends. The host's own namespace has one interface, which ends with its peer, and one table,
//! which ends with its socket. `server/docs/gateway.md` explains the design.
//!
//! - [`gateway`]: the namespace, and the work done in it. [`sandbox`]: the work done in a sandbox's.
//! - [`rules`]: what passes. [`ranges`]: what never does. [`address`]: addresses by slot.
//! - [`connections`]: tracked connections. [`refusals`]: reports of refused packets.
//! - [`nft`], [`link`]: the kernel's interfaces, over [`netlink`].
//!
//! It has two threads: one for requests, for which somebody waits, and one for removals, which take the kernel long.

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

/// The thread, and what it has for the server.
pub(crate) struct Network {
    pub(crate) gateway: Helper<Gateway>,
    /// Where the kernel reports what it refused.
    pub(crate) refusals: Option<OwnedFd>,
}

impl Network {
    /// Creates the gateway. Changes nothing in the host's own network namespace.
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
