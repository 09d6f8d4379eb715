//! A function's or chain's ports, and its subscriptions to brokers, as pages show them.

use hearth_web::format;
use hearth_web::pages::{BrokerRow, Moment, OwnPorts, PortRow};
use jiff::Timestamp;

use super::ingress_view::{TOP, reasons, source_row};
use crate::catalog::ChainIngressView;
use crate::engine::{BrokerView, Engine, IngressView, PortView, PortsView};
use crate::ingress::{IngressReport, PortWay};
use crate::model::{PortTrigger, Protocol, StreamMode};

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
    let (at_brokers, at_ports): (Vec<_>, Vec<_>) =
        triggers.partition(|(trigger, _)| trigger.broker().is_some());
    let rows = at_ports.into_iter().zip(&seen.ports);
    let brokers = at_brokers.iter().zip(&seen.brokers);
    OwnPorts {
        rows: rows
            .map(|((trigger, route), port)| row(trigger, route, port, report))
            .collect(),
        brokers: brokers
            .map(|((trigger, _), broker)| broker_row(trigger, broker))
            .collect(),
        figures,
        dropped: seen.dropped.map(reasons).unwrap_or_default(),
        limits: seen.limits.to_string(),
        limits_enforced: seen.limits_enforced,
        sources: seen.sources.iter().take(TOP).map(source_row).collect(),
        ..OwnPorts::default()
    }
}

fn broker_row(trigger: &PortTrigger, broker: &BrokerView) -> BrokerRow {
    let now = Timestamp::now();
    let moment = |at| Moment { at, now };
    let topics: Vec<_> = trigger.topics().iter().map(ToString::to_string).collect();
    let error = broker.last_error.clone().zip(broker.last_error_at);
    BrokerRow {
        broker: broker.broker.clone(),
        topics: topics.join(", "),
        messages: format!(
            "{}, {} in flight; answers: {} sent, {} dropped",
            broker.messages, broker.in_flight, broker.answers, broker.answers_dropped
        ),
        connected: broker.connected,
        version: broker.version.clone().unwrap_or_default(),
        since: broker.since.map(moment),
        error: error.map(|(error, at)| (error, moment(at))),
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
    use crate::ingress::IngressInterface;

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
    }
}
