//! Loads and attaches the ingress, as root and before there is a server.

use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;

use anyhow::Context;
use hearth::ingress::{Handover, IngressInterface, IngressReport, QueueSocket, hold};
use hearth_ebpf::interfaces::Interface;
use hearth_ebpf::records::SOCKETS;
use hearth_ebpf::sproxy::{self, Sproxy};
use hearth_ebpf::xsk::{self, Layout};
use hearth_ebpf::{AttachError, Capacity, Ingress, Maps, Wanted};

/// AF_XDP sockets of one interface; each has 4 MiB. Datagrams of further queues take the kernel's stack.
const QUEUES_MAX: u32 = 16;

/// What there is of it.
pub(crate) struct Prepared {
    /// For the server: a socket in which a [`Handover`] waits.
    pub(crate) for_server: OwnedFd,
    /// For the host process, which keeps it: a socket in which the links wait, so that the programs are attached as long as it
    /// lives.
    pub(crate) attached: OwnedFd,
}

/// Loads what is needed, and attaches to these interfaces. Connections to functions' ports are steered on this address. Without
/// interfaces that is all, and on a host that cannot do it each port gets a socket of its own.
pub(crate) fn prepare(interfaces: &[String], address: IpAddr) -> anyhow::Result<Prepared> {
    let loaded = match interfaces {
        [] => Ingress::load_to_steer(Capacity {
            // No packet is counted by its source.
            sources: 1,
            prefixes: 1,
            ..Capacity::default()
        }),
        _ => Ingress::load(Capacity::default()),
    };
    let mut ingress = match loaded {
        Ok(ingress) => ingress,
        Err(error) if interfaces.is_empty() => return nothing(error.to_string()),
        Err(error) => return Err(error).context(setting(interfaces)),
    };
    for interface in interfaces {
        let attached = ingress.attach(interface, Wanted::Best);
        attached.with_context(|| setting(interfaces))?;
    }
    let listeners = listen().context("a listener for functions' ports")?;
    let steered = steer(&mut ingress, &listeners, address);
    let mut sockets = Vec::new();
    let mut interfaces: Vec<IngressInterface> = Vec::new();
    for attachment in ingress.attachments() {
        let mut interface = IngressInterface::from(attachment);
        match open_sockets(&ingress, &attachment.interface, &mut sockets) {
            Ok(queues) => interface.af_xdp_queues = queues,
            Err(error) => interface.not_af_xdp = Some(format!("{error:#}")),
        }
        interfaces.push(interface);
    }
    let mut report = IngressReport {
        interfaces,
        programs: ingress.programs().iter().map(Into::into).collect(),
        maps: ingress.maps()?.iter().map(Into::into).collect(),
        steering_missing: steered.err(),
        sk_msg_missing: None,
    };
    let sproxy = load_sproxy(&mut report);
    let handover = Handover {
        report,
        listeners: listeners.into_iter().map(Into::into).collect(),
        maps: Some(ingress.descriptors()?),
        sproxy,
        sockets,
    };
    Ok(Prepared {
        for_server: handover.pass_on()?,
        attached: hold(&ingress.into_links())?,
    })
}

/// Loads the program that carries chains' descriptors, or notes why that is not possible.
fn load_sproxy(report: &mut IngressReport) -> Option<sproxy::Descriptors> {
    let loaded = Sproxy::load().map_err(|error| error.to_string());
    let loaded = loaded.and_then(|sproxy| {
        report.programs.push(sproxy.program().into());
        sproxy.descriptors().map_err(|error| error.to_string())
    });
    loaded
        .map_err(|reason| report.sk_msg_missing = Some(reason))
        .ok()
}

/// Nothing is loaded that connections are steered by, for this reason.
fn nothing(reason: String) -> anyhow::Result<Prepared> {
    let mut report = IngressReport {
        steering_missing: Some(reason),
        ..IngressReport::default()
    };
    let sproxy = load_sproxy(&mut report);
    let handover = Handover {
        report,
        listeners: Vec::new(),
        maps: None,
        sproxy,
        sockets: Vec::new(),
    };
    Ok(Prepared {
        for_server: handover.pass_on()?,
        attached: hold(&[])?,
    })
}

/// Opens an AF_XDP socket at each receive queue of an interface, as far as there is room for them, and puts it where the
/// program finds it. Says how many there are.
fn open_sockets(
    ingress: &Ingress,
    interface: &Interface,
    sockets: &mut Vec<QueueSocket>,
) -> anyhow::Result<u32> {
    let mut maps = Maps::new(ingress.descriptors()?)?;
    let mut queues = 0;
    while queues < interface.receive_queues.min(QUEUES_MAX) && sockets.len() < SOCKETS as usize {
        let opened = match xsk::open(interface.index, queues, Layout::default()) {
            Ok(opened) => opened,
            Err(error) if queues == 0 => return Err(error.into()),
            // Of the queues that it has, not all are in use.
            Err(_) => break,
        };
        let slot = u32::try_from(sockets.len())?;
        maps.set_socket(slot, interface.index, queues, &opened.socket)?;
        sockets.push(QueueSocket {
            mtu: interface.mtu,
            opened,
        });
        queues += 1;
    }
    anyhow::ensure!(queues > 0, "there are {SOCKETS} AF_XDP sockets already");
    Ok(queues)
}

fn setting(interfaces: &[String]) -> String {
    format!("HEARTH_XDP_INTERFACE={}", interfaces.join(","))
}

/// The sockets that receive the connections to all ports of functions. Their own ports, which the
/// kernel chooses, are on the loopback and are no function's.
fn listen() -> io::Result<Vec<TcpListener>> {
    let ipv4 = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let mut listeners = vec![ipv4];
    // A host may be without IPv6.
    listeners.extend(TcpListener::bind(SocketAddr::from((Ipv6Addr::LOCALHOST, 0))).ok());
    for listener in &listeners {
        listener.set_nonblocking(true)?;
    }
    Ok(listeners)
}

/// Or why connections cannot be steered.
fn steer(ingress: &mut Ingress, listeners: &[TcpListener], address: IpAddr) -> Result<(), String> {
    let (Some(ipv4), Some(ipv6)) = (listeners.first(), listeners.last()) else {
        return Err("nothing listens".to_owned());
    };
    let mut maps = ingress
        .descriptors()
        .map_err(|error| error.to_string())
        .and_then(|maps| Maps::new(maps).map_err(|error| error.to_string()))?;
    maps.listeners
        .set(ipv4, ipv6)
        .and_then(|()| maps.steer_to(address))
        .map_err(|error| error.to_string())?;
    let own = File::open("/proc/self/ns/net").map_err(|error| error.to_string())?;
    ingress
        .steer(&own)
        .map_err(|error: AttachError| error.to_string())
}
