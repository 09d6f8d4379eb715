//! Metrics of functions' ports, as the kernel counts them.

use std::fmt::Error;

use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

use crate::ingress::{Dropped, NodeTraffic, PortTraffic};

/// What is counted, of functions and of the node.
#[derive(Debug, Default)]
pub(super) struct IngressTraffic {
    pub functions: Vec<(String, PortTraffic, Dropped, PortTraffic)>,
    pub node: Option<NodeTraffic>,
}

/// Writes all of it; nothing where nothing is counted.
pub(super) fn encode(
    traffic: &IngressTraffic,
    encoder: &mut DescriptorEncoder<'_>,
) -> Result<(), Error> {
    let Some(node) = &traffic.node else {
        return Ok(());
    };
    type Read = fn(&PortTraffic) -> u64;
    let both: [(&str, &str, Read); 2] = [
        (
            "hearth_ingress_packets",
            "Packets at functions' ports, dropped ones included, by function and direction",
            |traffic| traffic.packets,
        ),
        (
            "hearth_ingress_bytes",
            "Bytes of the frames at functions' ports, by function and direction",
            |traffic| traffic.bytes,
        ),
    ];
    for (name, help, read) in both {
        let mut counter = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (function, received, _, sent) in &traffic.functions {
            for (direction, traffic) in [("in", received), ("out", sent)] {
                counter
                    .encode_family(&[("function", &**function), ("direction", direction)])?
                    .encode_counter::<NoLabelSet, _, u64>(&read(traffic), None)?;
            }
        }
    }
    let received: [(&str, &str, Read); 2] = [
        (
            "hearth_ingress_starts",
            "Connections and datagrams that were let through to functions",
            |traffic| traffic.starts,
        ),
        (
            "hearth_ingress_af_xdp",
            "Datagrams for functions that AF_XDP took past the kernel's stack",
            |traffic| traffic.af_xdp,
        ),
    ];
    for (name, help, read) in received {
        let mut counter = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (function, received, ..) in &traffic.functions {
            counter
                .encode_family(&[("function", &**function)])?
                .encode_counter::<NoLabelSet, _, u64>(&read(received), None)?;
        }
    }
    let mut drops = encoder.encode_descriptor(
        "hearth_ingress_dropped_packets",
        "Packets for functions that were dropped in the kernel, by function and reason",
        None,
        MetricType::Counter,
    )?;
    for (function, _, dropped, _) in &traffic.functions {
        for (reason, count) in [
            ("malformed", dropped.malformed),
            ("denied", dropped.denied),
            ("source_limit", dropped.source_limit),
            ("total_limit", dropped.total_limit),
        ] {
            drops
                .encode_family(&[("function", &**function), ("reason", reason)])?
                .encode_counter::<NoLabelSet, _, u64>(&count, None)?;
        }
    }
    of_node(node, encoder)
}

fn of_node(node: &NodeTraffic, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
    let mut packets = encoder.encode_descriptor(
        "hearth_ingress_node_packets",
        "Packets at the interfaces of HEARTH_XDP_INTERFACE, by what they are",
        None,
        MetricType::Counter,
    )?;
    for (kind, count) in [
        ("function", node.for_functions),
        ("other_port", node.for_others),
        ("not_ip", node.not_ip),
        ("not_tcp_udp", node.not_tcp_udp),
        ("fragment", node.fragments),
        ("malformed", node.malformed),
    ] {
        packets
            .encode_family(&[("kind", kind)])?
            .encode_counter::<NoLabelSet, _, u64>(&count, None)?;
    }
    encoder
        .encode_descriptor(
            "hearth_ingress_node_bytes",
            "Bytes of these packets",
            None,
            MetricType::Counter,
        )?
        .encode_counter::<NoLabelSet, _, u64>(&node.bytes, None)?;
    let mut lost = encoder.encode_descriptor(
        "hearth_ingress_lost_datagrams",
        "Datagrams that AF_XDP took and no function got, by reason",
        None,
        MetricType::Counter,
    )?;
    for (reason, count) in [
        ("waiting", node.lost_waiting),
        ("checksum", node.lost_checksum),
        ("socket", node.lost_socket),
    ] {
        lost.encode_family(&[("reason", reason)])?
            .encode_counter::<NoLabelSet, _, u64>(&count, None)?;
    }
    Ok(())
}
