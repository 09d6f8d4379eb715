//! The node's ingress as pages show it. [`super::ports_view`] has the ports of a function or chain.

use hearth_web::format;
use hearth_web::pages::{
    IngressKernel, IngressLists, IngressSources, IngressTraffic, InterfaceRow, ListedRow, MapRow,
    Moment, ProgramRow, SourceRow,
};
use jiff::Timestamp;

use crate::ingress::{
    Dropped, Ingress, IngressInterface, IngressProgram, IngressSource, ListVerdict, ListedPrefix,
};

/// Top sources that are shown.
pub(super) const TOP: usize = 20;

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

pub(super) fn reasons(dropped: Dropped) -> Vec<(&'static str, String)> {
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

pub(super) fn source_row(source: &IngressSource) -> SourceRow {
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
    fn an_interface_says_what_it_lacks() {
        let lacks = interface(&IngressInterface {
            name: "eth0".into(),
            mode: "generic".into(),
            not_native: Some("the driver has no XDP".into()),
            not_counting_sent: None,
            af_xdp_queues: 0,
            not_af_xdp: Some("no sockets".into()),
        })
        .lacks;
        assert_eq!(lacks.len(), 2, "{lacks:?}");
    }
}
