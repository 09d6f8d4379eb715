//! Loads and attaches the ingress, as root and before there is a server.

use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;

use anyhow::Context;
use hearth::ingress::{Handover, IngressReport, hold};
use hearth_ebpf::{AttachError, Capacity, Ingress, Maps, Wanted};

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
        Err(error) if interfaces.is_empty() => return nothing(&error.to_string()),
        Err(error) => return Err(error).context(setting(interfaces)),
    };
    for interface in interfaces {
        let attached = ingress.attach(interface, Wanted::Best);
        attached.with_context(|| setting(interfaces))?;
    }
    let listeners = listen().context("a listener for functions' ports")?;
    let steered = steer(&mut ingress, &listeners, address);
    let report = IngressReport {
        interfaces: ingress.attachments().map(Into::into).collect(),
        programs: ingress.programs().iter().map(Into::into).collect(),
        maps: ingress.maps()?.iter().map(Into::into).collect(),
        steering_missing: steered.err(),
    };
    let handover = Handover {
        report,
        listeners: listeners.into_iter().map(Into::into).collect(),
        maps: Some(ingress.descriptors()?),
    };
    Ok(Prepared {
        for_server: handover.pass_on()?,
        attached: hold(&ingress.into_links())?,
    })
}

/// Nothing is loaded, for this reason.
fn nothing(reason: &str) -> anyhow::Result<Prepared> {
    let handover = Handover {
        report: IngressReport {
            steering_missing: Some(reason.to_owned()),
            ..IngressReport::default()
        },
        listeners: Vec::new(),
        maps: None,
    };
    Ok(Prepared {
        for_server: handover.pass_on()?,
        attached: hold(&[])?,
    })
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
