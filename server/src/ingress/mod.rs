//! What the kernel does for functions' ports: it steers, counts and limits.
//!
//! The programs are loaded and attached before there is a server ([`Handover`]); the server has the maps' descriptors and the
//! listeners that receive the connections to all ports. [`crate::ports`] knows whose a port is. `server/docs/ingress.md`
//! describes a packet's way.
//!
//! - [`handover`], [`report`]: what comes from the program that prepares.
//! - [`numbers`]: which function has which number in the maps. [`traffic`]: what is counted.

mod handover;
mod numbers;
mod report;
mod traffic;

use std::os::fd::OwnedFd;
use std::sync::Arc;

use hearth_ebpf::limits::Limits;
use hearth_ebpf::packet::{TCP, UDP};
use hearth_ebpf::{MapError, Maps};
use parking_lot::Mutex;

pub use handover::{Handover, HandoverError, hold};
use numbers::Numbers;
pub use report::{IngressInterface, IngressMap, IngressProgram, IngressReport};
pub use traffic::{Dropped, PortTraffic};

use crate::model::{Port, Protocol};

/// The ingress. Cheap to clone.
#[derive(Clone)]
pub struct Ingress(Arc<Inner>);

struct Inner {
    report: IngressReport,
    /// None where nothing is loaded.
    kernel: Option<Mutex<Kernel>>,
}

struct Kernel {
    maps: Maps,
    numbers: Numbers,
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
        let kernel = maps.map(|maps| {
            let numbers = Numbers::new(maps.functions.last());
            Mutex::new(Kernel { maps, numbers })
        });
        Self(Arc::new(Inner { report, kernel }))
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

    /// Whether connections to a port need no socket of its own.
    pub fn steers(&self, port: Port) -> bool {
        port.protocol == Protocol::Tcp && self.0.report.steering_missing.is_none()
    }

    /// Makes these, and no others, a function's ports in the kernel. Each changes in one step, new ones first.
    pub fn settle(&self, function: &str, ports: impl IntoIterator<Item = Port>) {
        let Some(kernel) = &self.0.kernel else {
            return;
        };
        let ports = ports.into_iter().collect();
        if let Err(error) = self.change(&mut kernel.lock(), function, ports) {
            tracing::error!(function, %error, "cannot change a function's ports in the kernel");
        }
    }

    fn change(
        &self,
        kernel: &mut Kernel,
        function: &str,
        ports: Vec<Port>,
    ) -> Result<(), MapError> {
        let Kernel { maps, numbers } = kernel;
        let Some(change) = numbers.settle(function, ports) else {
            return Err(MapError::Full);
        };
        let number = change.number;
        if change.is_new {
            let limits = Limits {
                tracks_sources: true,
                ..Limits::default()
            };
            maps.functions.add(number, limits)?;
        }
        for port in change.given {
            match port.protocol {
                Protocol::Tcp => maps
                    .ports
                    .give_tcp(port.number, number, self.steers(port))?,
                Protocol::Udp => maps.ports.give_udp(port.number, number, false)?,
            }
        }
        for port in change.taken {
            let protocol = match port.protocol {
                Protocol::Tcp => TCP,
                Protocol::Udp => UDP,
            };
            maps.ports.take(protocol, port.number)?;
        }
        Ok(())
    }

    /// What a function received and sent at its ports, since it has some; none if it has none, or nothing is counted
    /// because the ingress is attached to no interface.
    pub fn traffic(&self, function: &str) -> Option<(PortTraffic, Dropped, PortTraffic)> {
        if self.0.report.interfaces.is_empty() {
            return None;
        }
        let kernel = self.0.kernel.as_ref()?.lock();
        let number = kernel.numbers.of(function)?;
        let [received, sent] = kernel.maps.functions.traffic(number).ok()?;
        Some(((&received).into(), (&received).into(), (&sent).into()))
    }
}
