//! Ingress as pages show it: the node's, and a function's or chain's ports.

use hearth_web::format;
use hearth_web::pages::{
    IngressKernel, IngressLists, IngressSources, IngressTraffic, InterfaceRow, ListedRow, MapRow,
    Moment, OwnPorts, PortRow, ProgramRow, SourceRow,
};
use jiff::Timestamp;

use crate::catalog::ChainIngressView;
use crate::engine::{Engine, IngressView, PortView, PortsView};
use crate::ingress::{
    Dropped, Ingress, IngressInterface, IngressProgram, IngressReport, IngressSource, ListVerdict,
    ListedPrefix, PortWay,
};
use crate::model::{PortTrigger, Protocol, StreamMode};

/// Top sources that are shown.
const TOP: usize = 20;

/// Packets at the node's interfaces; none where there are no interfaces.
pub(super) fn traffic(ingress: &Ingress) -> Option<IngressTraffic> {
    let node = ingress.node_traffic()?;
    let dropped = ingress.all_dropped().unwrap_or_default();
    let mut reasons = reasons(dropped);
    reasons.extend([
        (
            "Function or chain too slow",
            format::count(node.lost_waiting),
        ),
        ("Wrong checksum", format::count(node.lost_checksum)),
        ("Socket full", format::count(node.lost_socket)),
    ]);
    Some(IngressTraffic {
        figures: vec![
            ("Packets", format::count(node.packets)),
            ("Bytes", format::bytes(node.bytes)),
            (
                "For functions and chains",
                format::count(node.for_functions),
            ),
            ("Dropped", format::count(dropped.all())),
        ],
        dropped: reasons,
        passed: vec![
            ("For other ports", format::count(node.for_others)),
            ("Not TCP or UDP", format::count(node.not_tcp_udp)),
            ("Not IP", format::count(node.not_ip)),
            ("Later fragments", format::count(node.fragments)),
            ("Malformed", format::count(node.malformed)),
            ("Datagrams not by AF_XDP", format::count(node.not_by_af_xdp)),
            ("Source not tracked", format::count(node.untracked)),
        ],
    })
}

fn reasons(dropped: Dropped) -> Vec<(&'static str, String)> {
    vec![
        ("Limit per source", format::count(dropped.source_limit)),
        ("Total limit", format::count(dropped.total_limit)),
        ("Deny list", format::count(dropped.denied)),
        ("Malformed", format::count(dropped.malformed)),
    ]
}

/// Who sends.
pub(super) fn sources(ingress: &Ingress) -> IngressSources {
    let mut all = ingress.sources(None);
    let limited = all.iter().filter(|source| source.limited);
    let limited = limited.map(source_row).collect();
    all.sort_by(|one, other| other.per_second.total_cmp(&one.per_second));
    IngressSources {
        limited,
        top: all.iter().take(TOP).map(source_row).collect(),
    }
}

fn source_row(source: &IngressSource) -> SourceRow {
    SourceRow {
        // Sources of IPv6 are networks.
        source: match source.source.is_ipv4() {
            true => source.source.to_string(),
            false => format!("{}/64", source.source),
        },
        is_chain: source.chain.is_some(),
        owner: source
            .chain
            .as_ref()
            .or(source.function.as_ref())
            .cloned()
            .unwrap_or_default(),
        per_second: format::rate(source.per_second),
        admitted: format::count(source.admitted),
        refused: format::count(source.refused),
        limited: source.limited,
    }
}

/// What is listed.
pub(super) fn lists(listed: Vec<ListedPrefix>, csrf: String) -> IngressLists {
    let now = Timestamp::now();
    let moment = |at| Moment { at, now };
    let rows = listed.into_iter().map(|entry| ListedRow {
        prefix: entry.prefix.to_string(),
        denied: entry.verdict == ListVerdict::Deny,
        expires: entry.expires_at.map(moment),
        note: entry.note,
        created: moment(entry.created_at),
    });
    IngressLists {
        csrf,
        rows: rows.collect(),
    }
}

/// What runs in the kernel.
pub(super) fn kernel(ingress: &Ingress) -> IngressKernel {
    let report = ingress.report();
    let maps = ingress.maps().into_iter().map(|map| MapRow {
        what: contents(&map.name),
        name: map.name,
        id: map.id,
        capacity: map.capacity,
        used: map.used,
    });
    IngressKernel {
        interfaces: report.interfaces.iter().map(interface).collect(),
        programs: report.programs.iter().map(program).collect(),
        maps: maps.collect(),
        steering_missing: report.steering_missing.clone().unwrap_or_default(),
    }
}

fn interface(interface: &IngressInterface) -> InterfaceRow {
    let lacks = [
        ("Native mode", &interface.not_native),
        ("AF_XDP", &interface.not_af_xdp),
        ("Counting what is sent", &interface.not_counting_sent),
    ];
    let lacks = lacks.into_iter().filter_map(|(what, why)| {
        let why = why.as_ref()?;
        Some((what, why.clone()))
    });
    InterfaceRow {
        name: interface.name.clone(),
        mode: interface.mode.clone(),
        queues: interface.af_xdp_queues,
        lacks: lacks.collect(),
    }
}

fn program(program: &IngressProgram) -> ProgramRow {
    ProgramRow {
        name: program.name.clone(),
        what: match program.name.as_str() {
            "ingress" => "Counts, limits and redirects what interfaces receive (XDP)",
            "egress" => "Counts what functions and chains send (TC)",
            "steer" => "Steers connections to the listener (SK_LOOKUP)",
            _ => "",
        },
        id: program.id,
        instructions: program.verified_instructions,
        error: program.error.clone().unwrap_or_default(),
    }
}

fn contents(map: &str) -> &'static str {
    match map {
        "ports" => "Ports of functions and chains",
        "functions" => "Limits of each function and chain",
        "totals" => "Token bucket of each function and chain",
        "traffic" => "Counters of each function and chain, by direction",
        "node" => "Counters of the node",
        "sources" => "Sources with their token buckets",
        "listed4" => "Deny and allow lists, IPv4",
        "listed6" => "Deny and allow lists, IPv6",
        "addresses" => "Addresses of the host",
        "settings" => "Settings",
        "queues" => "Receive queues with AF_XDP",
        "sockets" => "AF_XDP sockets",
        "listeners" => "Listening sockets",
        _ => "",
    }
}

/// A function's ports.
pub(super) fn function_ports(engine: &Engine, name: &str, view: &IngressView) -> OwnPorts {
    let rows = view
        .triggers
        .iter()
        .map(|trigger| (trigger.clone(), String::new()));
    OwnPorts {
        name: name.to_owned(),
        ..ports(engine, rows, &view.seen)
    }
}

/// A chain's ports.
pub(super) fn chain_ports(engine: &Engine, name: &str, view: &ChainIngressView) -> OwnPorts {
    let rows = view.triggers.iter().map(|trigger| {
        let topics: Vec<_> = trigger.topics().iter().map(ToString::to_string).collect();
        let route = match trigger.route() {
            Some(route) => route.to_owned(),
            None if trigger.has_paths() => "The only one, or the path's first segment".to_owned(),
            None if topics.is_empty() => "The only one".to_owned(),
            None => topics.join(", "),
        };
        (trigger.plain(), route)
    });
    OwnPorts {
        name: name.to_owned(),
        is_chain: true,
        ..ports(engine, rows, &view.seen)
    }
}

fn ports(
    engine: &Engine,
    triggers: impl Iterator<Item = (PortTrigger, String)>,
    seen: &PortsView,
) -> OwnPorts {
    let report = engine.ingress().report();
    let mut figures = Vec::new();
    if let (Some(received), Some(sent)) = (seen.received, seen.sent) {
        figures.extend([
            ("Packets received", format::count(received.packets)),
            ("Bytes received", format::bytes(received.bytes)),
            ("Packets sent", format::count(sent.packets)),
            ("Bytes sent", format::bytes(sent.bytes)),
            ("Accepted", format::count(received.starts)),
        ]);
        if seen.ports.iter().any(|port| port.protocol == Protocol::Udp) {
            figures.push(("Datagrams by AF_XDP", format::count(received.af_xdp)));
        }
    }
    let rows = triggers.zip(&seen.ports);
    OwnPorts {
        rows: rows
            .map(|((trigger, route), port)| row(trigger, route, port, report))
            .collect(),
        figures,
        dropped: seen.dropped.map(reasons).unwrap_or_default(),
        limits: seen.limits.to_string(),
        limits_enforced: seen.limits_enforced,
        sources: seen.sources.iter().take(TOP).map(source_row).collect(),
        ..OwnPorts::default()
    }
}

fn row(trigger: PortTrigger, route: String, port: &PortView, report: &IngressReport) -> PortRow {
    let counts = port.messages.map(|counts| format!(": {counts}"));
    let counts = counts.unwrap_or_default();
    PortRow {
        port: format!("{} {}", port.protocol.as_str(), port.port),
        receives: match trigger {
            PortTrigger::Tcp { mode, .. } => match mode {
                StreamMode::Http => "HTTP requests".to_owned(),
                StreamMode::Raw => "Byte streams".to_owned(),
            },
            PortTrigger::Udp { batch, .. } if batch.max > 1 => {
                format!("Datagrams, up to {} at once", batch.max)
            }
            PortTrigger::Udp { .. } => "Datagrams".to_owned(),
            PortTrigger::Coap { .. } => format!("CoAP requests{counts}"),
            PortTrigger::Mqtt { .. } => format!("MQTT messages{counts}"),
        },
        route,
        by: match port.by {
            PortWay::Steered => "SK_LOOKUP, one listener for all ports",
            PortWay::AfXdp => "AF_XDP",
            PortWay::Socket => "A socket of its own",
        },
        why: match port.by {
            PortWay::Socket => why_socket(port.protocol, report),
            PortWay::Steered | PortWay::AfXdp => String::new(),
        },
        failed: port.failed.clone().unwrap_or_default(),
    }
}

/// Why a port has a socket of its own.
fn why_socket(protocol: Protocol, report: &IngressReport) -> String {
    let reason = match protocol {
        Protocol::Tcp => report.steering_missing.clone(),
        Protocol::Udp if report.interfaces.is_empty() => {
            Some("AF_XDP needs an interface in HEARTH_XDP_INTERFACE".to_owned())
        }
        Protocol::Udp => {
            let mut reasons = report.interfaces.iter();
            reasons.find_map(|interface| interface.not_af_xdp.clone())
        }
    };
    reason.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_of_ipv6_is_its_network() {
        let row = |source: &str| {
            source_row(&IngressSource {
                source: source.parse().expect("an address"),
                function: Some("f".into()),
                chain: None,
                admitted: 1_000,
                refused: 0,
                per_second: 2.5,
                limited: false,
            })
        };
        assert_eq!(row("192.0.2.7").source, "192.0.2.7");
        assert_eq!(row("2001:db8::").source, "2001:db8::/64");
        assert_eq!(row("192.0.2.7").per_second, "2.5");
    }

    #[test]
    fn a_socket_of_its_own_has_a_reason() {
        let mut report = IngressReport::default();
        assert!(why_socket(Protocol::Udp, &report).contains("HEARTH_XDP_INTERFACE"));
        report.steering_missing = Some("no eBPF".into());
        assert_eq!(why_socket(Protocol::Tcp, &report), "no eBPF");
        report.interfaces.push(IngressInterface {
            name: "eth0".into(),
            mode: "generic".into(),
            not_native: Some("the driver has no XDP".into()),
            not_counting_sent: None,
            af_xdp_queues: 0,
            not_af_xdp: Some("no sockets".into()),
        });
        assert_eq!(why_socket(Protocol::Udp, &report), "no sockets");
        let lacks = interface(&report.interfaces[0]).lacks;
        assert_eq!(lacks.len(), 2, "{lacks:?}");
    }
}
