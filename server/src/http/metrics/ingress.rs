//! Metrics of ports, as the kernel counts them. A label says whose they are: `function` or `chain`.

use std::fmt::Error;

use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

use crate::ingress::{Dropped, NodeTraffic, PortTraffic};
use crate::model::PortOwner;

/// What is counted, of functions, chains and the node.
#[derive(Debug, Default)]
pub(super) struct IngressTraffic {
    pub owners: Vec<(PortOwner, PortTraffic, Dropped, PortTraffic)>,
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
            "Packets at ports of functions and chains, dropped ones included, by function or chain and direction",
            |traffic| traffic.packets,
        ),
        (
            "hearth_ingress_bytes",
            "Bytes of the frames at ports of functions and chains, by function or chain and direction",
            |traffic| traffic.bytes,
        ),
    ];
    for (name, help, read) in both {
        let mut counter = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (owner, received, _, sent) in &traffic.owners {
            for (direction, traffic) in [("in", received), ("out", sent)] {
                counter
                    .encode_family(&[of(owner), ("direction", direction)])?
                    .encode_counter::<NoLabelSet, _, u64>(&read(traffic), None)?;
            }
        }
    }
    let received: [(&str, &str, Read); 2] = [
        (
            "hearth_ingress_starts",
            "Connections and datagrams that were let through, by function or chain",
            |traffic| traffic.starts,
        ),
        (
            "hearth_ingress_af_xdp",
            "Datagrams that AF_XDP took past the kernel's stack, by function or chain",
            |traffic| traffic.af_xdp,
        ),
    ];
    for (name, help, read) in received {
        let mut counter = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (owner, received, ..) in &traffic.owners {
            counter
                .encode_family(&[of(owner)])?
                .encode_counter::<NoLabelSet, _, u64>(&read(received), None)?;
        }
    }
    let mut drops = encoder.encode_descriptor(
        "hearth_ingress_dropped_packets",
        "Packets that were dropped in the kernel, by function or chain and reason",
        None,
        MetricType::Counter,
    )?;
    for (owner, _, dropped, _) in &traffic.owners {
        for (reason, count) in [
            ("malformed", dropped.malformed),
            ("denied", dropped.denied),
            ("source_limit", dropped.source_limit),
            ("total_limit", dropped.total_limit),
        ] {
            drops
                .encode_family(&[of(owner), ("reason", reason)])?
                .encode_counter::<NoLabelSet, _, u64>(&count, None)?;
        }
    }
    of_node(node, encoder)
}

/// The label that says whose ports they are.
fn of(owner: &PortOwner) -> (&'static str, &str) {
    (owner.kind(), owner.name())
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
