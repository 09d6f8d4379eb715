//! Ports of functions: who has which, and what the kernel steers, counts and limits.
//!
//! The programs are loaded and attached before there is a server ([`Handover`]); the server has the maps' descriptors and the
//! listeners that receive the connections to all ports. `server/docs/ingress.md` describes a packet's way.
//!
//! - [`handover`], [`report`]: what comes from the program that prepares.
//! - [`traffic`]: what is counted.
//! - [`claims`]: who has which port. [`taken`]: who else on the host has one.

mod claims;
mod handover;
mod report;
mod taken;
mod traffic;

use std::os::fd::OwnedFd;
use std::sync::Arc;

use hearth_ebpf::limits::Limits;
use hearth_ebpf::packet::TCP;
use hearth_ebpf::{MapError, Maps};
use parking_lot::{Mutex, RwLock};

use claims::Ports;
pub use claims::{PortClaim, PortRefused};
pub use handover::{Handover, HandoverError, hold};
pub use report::{IngressInterface, IngressMap, IngressProgram, IngressReport};
pub use traffic::{Dropped, PortTraffic};

use crate::model::PortTrigger;

/// The ingress. Cheap to clone.
#[derive(Clone)]
pub struct Ingress(Arc<Inner>);

struct Inner {
    report: IngressReport,
    /// None where nothing is loaded.
    maps: Option<Mutex<Maps>>,
    /// Looked at for each connection to a port.
    ports: RwLock<Ports>,
}

impl Ingress {
    /// One without anything, for this reason.
    pub fn without(reason: &str) -> Self {
        let report = IngressReport {
            steering_missing: Some(reason.to_owned()),
            ..IngressReport::default()
        };
        Self::with(report, None)
    }

    /// Takes over what was prepared: with it come the listeners for connections to ports.
    ///
    /// # Errors
    /// [`HandoverError`].
    pub fn take_over(socket: &OwnedFd) -> Result<(Self, Vec<OwnedFd>), HandoverError> {
        let Handover {
            report,
            listeners,
            maps,
        } = Handover::receive(socket)?;
        let maps = maps.map(Maps::new).transpose()?;
        Ok((Self::with(report, maps), listeners))
    }

    fn with(report: IngressReport, maps: Option<Maps>) -> Self {
        let functions = maps.as_ref().map_or(0, |maps| maps.functions.last());
        Self(Arc::new(Inner {
            report,
            maps: maps.map(Mutex::new),
            ports: RwLock::new(Ports::new(functions)),
        }))
    }

    /// What is loaded and attached.
    pub fn report(&self) -> &IngressReport {
        &self.0.report
    }

    /// What it can do here, and why not: `xdp`, `port_steering`.
    pub fn capabilities(&self) -> [(&'static str, Option<String>); 2] {
        let report = &self.0.report;
        let no_interface = "HEARTH_XDP_INTERFACE names no interface".to_owned();
        let xdp = report.interfaces.is_empty().then_some(no_interface);
        [
            ("xdp", xdp),
            ("port_steering", report.steering_missing.clone()),
        ]
    }

    /// The function that has a TCP port. Cheap.
    pub fn owner(&self, port: u16) -> Option<Arc<str>> {
        self.0.ports.read().owner(port)
    }

    /// Claims ports for a function; those that it has already stay its own. They are given back when the claim is dropped
    /// before it was [settled](Self::settle).
    ///
    /// # Errors
    /// [`PortRefused`]: nothing is claimed then.
    pub fn claim(
        &self,
        function: &str,
        triggers: &[PortTrigger],
    ) -> Result<PortClaim, PortRefused> {
        if let (Some(reason), Some(_)) = (&self.0.report.steering_missing, triggers.first()) {
            return Err(PortRefused::NotHere(reason.clone()));
        }
        let claimed = self
            .0
            .ports
            .write()
            .claim(function, triggers, taken::by_whom)?;
        Ok(PortClaim::new(self.clone(), function, claimed))
    }

    /// Makes these, and no others, a function's ports: they have been claimed. Each port changes in one step.
    ///
    /// # Errors
    /// What the kernel said. Ports that could not be changed are as they were.
    pub fn settle(&self, claim: PortClaim, triggers: &[PortTrigger]) -> Result<(), MapError> {
        let function = claim.keep();
        self.set(&function, triggers)
    }

    /// Takes all ports of a function back.
    pub fn remove(&self, function: &str) {
        if let Err(error) = self.set(function, &[]) {
            tracing::warn!(function, %error, "cannot take the function's ports back");
        }
    }

    fn set(&self, function: &str, triggers: &[PortTrigger]) -> Result<(), MapError> {
        let Some(maps) = &self.0.maps else {
            return Ok(());
        };
        let mut maps = maps.lock();
        let mut ports = self.0.ports.write();
        let change = ports.settle(function, triggers);
        let Some(index) = change.index else {
            return Err(MapError::Full);
        };
        if change.is_new {
            let limits = Limits {
                tracks_sources: true,
                ..Limits::default()
            };
            maps.functions.add(index, limits)?;
        }
        for port in change.given {
            maps.ports.give_tcp(port, index, true)?;
        }
        for port in change.taken {
            maps.ports.take(TCP, port)?;
        }
        Ok(())
    }

    fn release(&self, function: &str, ports: &[u16]) {
        self.0.ports.write().release(function, ports);
    }

    /// What a function received and sent at its ports, since it has some; none if it has none, or nothing is counted
    /// because the ingress is attached to no interface.
    pub fn traffic(&self, function: &str) -> Option<(PortTraffic, Dropped, PortTraffic)> {
        if self.0.report.interfaces.is_empty() {
            return None;
        }
        let index = self.0.ports.read().index(function)?;
        let maps = self.0.maps.as_ref()?.lock();
        let [received, sent] = maps.functions.traffic(index).ok()?;
        Some(((&received).into(), (&received).into(), (&sent).into()))
    }
}
