//! What the kernel does for ports of functions and chains: it steers, counts and limits.
//!
//! The programs are loaded and attached before there is a server ([`Handover`]); the server has the maps' descriptors and the
//! listeners that receive the connections to all ports. [`crate::ports`] knows whose a port is. `server/docs/ingress.md`
//! describes a packet's way.
//!
//! - [`handover`], [`report`]: what comes from the program that prepares.
//! - [`datagrams`]: what AF_XDP takes. [`addresses`]: to where it may go.
//! - [`functions`]: ports and limits in the maps.
//! - [`lists`]: whose packets are dropped, or exempt from limits.
//! - [`sproxy`]: the program that carries chains' descriptors.
//! - [`numbers`]: who has which number in the maps. [`traffic`], [`counters`]: what is counted.

mod addresses;
mod counters;
mod datagrams;
mod functions;
mod handover;
mod lists;
mod numbers;
mod report;
mod sproxy;
mod traffic;

use std::collections::HashMap;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};

use hearth_ebpf::Maps;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use counters::Samples;
pub use counters::{IngressSource, NodeTraffic};
use datagrams::Datagrams;
pub use datagrams::{PortDatagrams, XdpDatagram};
pub use handover::{Handover, HandoverError, QueueSocket, hold};
pub use lists::{ListError, ListVerdict, ListedPrefix};
use numbers::Numbers;
pub use report::{IngressInterface, IngressMap, IngressProgram, IngressReport};
pub use sproxy::{Place, Sproxy, SproxyError};
pub use traffic::{Dropped, PortTraffic};

use crate::model::{Port, PortLimits, PortOwner, Protocol};

/// By which part of its address a source is told from others: of IPv4 all of it, of IPv6 what a site has.
const SOURCES: (u8, u8) = (32, 64);

/// How the connections or datagrams of a port come to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum PortWay {
    /// The kernel steers them to one listener for all ports.
    Steered,
    /// AF_XDP takes them past the kernel's stack; what comes by other interfaces, in fragments or is too large, a socket gets.
    AfXdp,
    /// By a socket of the port's own.
    Socket,
}

/// The ingress. Cheap to clone.
#[derive(Clone)]
pub struct Ingress(Arc<Inner>);

struct Inner {
    report: IngressReport,
    /// None where nothing is loaded.
    kernel: Option<Mutex<Kernel>>,
    /// None where there is no AF_XDP.
    datagrams: Option<Arc<Datagrams>>,
    /// None where it is not loaded.
    sproxy: Option<Sproxy>,
    samples: Samples,
    /// The lists, as they are stored. Locked while they are written.
    listed: tokio::sync::Mutex<Vec<ListedPrefix>>,
}

struct Kernel {
    maps: Maps,
    numbers: Numbers,
    /// Of those that have some.
    limits: HashMap<PortOwner, PortLimits>,
    /// What was dropped for owners whose numbers others have now.
    dropped_before: Dropped,
    /// The host's addresses, as the maps have them.
    addresses: Vec<IpAddr>,
}

impl Ingress {
    /// One without anything, for this reason.
    pub fn without(reason: &str) -> Self {
        let report = IngressReport {
            steering_missing: Some(reason.to_owned()),
            sk_msg_missing: Some(reason.to_owned()),
            ..IngressReport::default()
        };
        Self(Arc::new(Inner {
            report,
            kernel: None,
            datagrams: None,
            sproxy: None,
            samples: Samples::default(),
            listed: tokio::sync::Mutex::default(),
        }))
    }

    /// Takes over what was prepared: with it come the listeners for connections to ports. The ports are at `address`.
    /// Needs a runtime.
    ///
    /// # Errors
    /// [`HandoverError`].
    pub fn take_over(
        socket: &OwnedFd,
        address: IpAddr,
    ) -> Result<(Self, Vec<OwnedFd>), HandoverError> {
        let Handover {
            report,
            listeners,
            maps,
            sproxy,
            sockets,
        } = Handover::receive(socket)?;
        let sproxy = sproxy.map(Sproxy::new).transpose()?;
        let Some(maps) = maps else {
            let nothing = Inner {
                report,
                kernel: None,
                datagrams: None,
                sproxy,
                samples: Samples::default(),
                listed: tokio::sync::Mutex::default(),
            };
            return Ok((Self(Arc::new(nothing)), listeners));
        };
        let mut maps = Maps::new(maps)?;
        let last = maps.functions.last();
        let counts = !report.interfaces.is_empty();
        if counts {
            let largest = sockets.first().map(|one| one.opened.layout);
            let largest = largest.map_or(0, |layout| layout.largest_packet());
            maps.set(SOURCES, largest, true)?;
        }
        let datagrams = match sockets.is_empty() {
            true => None,
            false => Some(Datagrams::start(sockets, last)?),
        };
        let kernel = Kernel {
            maps,
            numbers: Numbers::new(last),
            limits: HashMap::new(),
            dropped_before: Dropped::default(),
            addresses: Vec::new(),
        };
        let inner = Arc::new(Inner {
            report,
            kernel: Some(Mutex::new(kernel)),
            datagrams,
            sproxy,
            samples: Samples::default(),
            listed: tokio::sync::Mutex::default(),
        });
        if counts {
            inner.look_at_addresses(address);
            tokio::spawn(watch_addresses(Arc::downgrade(&inner), address));
        }
        Ok((Self(inner), listeners))
    }

    /// What is loaded and attached.
    pub fn report(&self) -> &IngressReport {
        &self.0.report
    }

    /// What carries chains' descriptors, or why nothing does.
    ///
    /// # Errors
    /// The reason.
    pub fn sproxy(&self) -> Result<&Sproxy, &str> {
        let missing = self.0.report.sk_msg_missing.as_deref();
        let missing = missing.unwrap_or("it was not prepared");
        self.0.sproxy.as_ref().ok_or(missing)
    }

    /// What it can do here, and why not: `xdp`, `port_steering`, `sk_msg`.
    pub fn capabilities(&self) -> [(&'static str, Option<String>); 3] {
        let report = &self.0.report;
        let no_interface = "HEARTH_XDP_INTERFACE names no interface".to_owned();
        let xdp = report.interfaces.is_empty().then_some(no_interface);
        [
            ("xdp", xdp),
            ("port_steering", report.steering_missing.clone()),
            ("sk_msg", self.sproxy().err().map(str::to_owned)),
        ]
    }

    /// Whether connections to a port need no socket of its own.
    pub fn steers(&self, port: Port) -> bool {
        port.protocol == Protocol::Tcp && self.0.report.steering_missing.is_none()
    }

    /// How the connections or datagrams of a port come to the server.
    pub fn way(&self, port: Port) -> PortWay {
        match port.protocol {
            Protocol::Tcp if self.steers(port) => PortWay::Steered,
            Protocol::Udp if self.0.datagrams.is_some() => PortWay::AfXdp,
            Protocol::Tcp | Protocol::Udp => PortWay::Socket,
        }
    }

    /// The datagrams of a port that AF_XDP takes, from now on; none where there is no AF_XDP. Others come by the port's
    /// socket.
    pub fn datagrams(&self, port: Port) -> Option<PortDatagrams> {
        let datagrams = self.0.datagrams.as_ref()?;
        (port.protocol == Protocol::Udp).then(|| datagrams.of_port(port.number))
    }

    /// What an owner received and sent at its ports, since it has some; none if it has none, or nothing is counted
    /// because the ingress is attached to no interface.
    pub fn traffic(&self, owner: &PortOwner) -> Option<(PortTraffic, Dropped, PortTraffic)> {
        if self.0.report.interfaces.is_empty() {
            return None;
        }
        let kernel = self.0.kernel.as_ref()?.lock();
        let number = kernel.numbers.of(owner)?;
        let [received, mut sent] = kernel.maps.functions.traffic(number).ok()?;
        if let Some(datagrams) = &self.0.datagrams {
            let [packets, bytes] = datagrams.sent(number);
            sent.packets += packets;
            sent.bytes += bytes;
        }
        Some(((&received).into(), (&received).into(), (&sent).into()))
    }
}

impl Inner {
    /// Tells the kernel which addresses are the host's, where that has changed.
    fn look_at_addresses(&self, address: IpAddr) {
        let Some(kernel) = &self.kernel else {
            return;
        };
        let found = addresses::of_host(address);
        let mut kernel = kernel.lock();
        if kernel.addresses == found {
            return;
        }
        if let Err(error) = kernel.maps.addresses.replace(&found) {
            tracing::error!(%error, "cannot tell the kernel all addresses of the host");
        }
        // Also if it failed: again only when there is something new.
        kernel.addresses = found;
    }
}

/// As long as there is an ingress.
async fn watch_addresses(inner: Weak<Inner>, address: IpAddr) {
    loop {
        tokio::time::sleep(addresses::EVERY).await;
        match inner.upgrade() {
            Some(inner) => inner.look_at_addresses(address),
            None => return,
        }
    }
}
