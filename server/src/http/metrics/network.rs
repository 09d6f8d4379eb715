//! Metrics of functions' networks.

use std::fmt::Error;

use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

use crate::engine::NetworkTraffic;
use crate::network::{Labelled, NetworkTotals};

/// Writes those of every function.
pub(super) fn encode(
    functions: &[NetworkTraffic],
    encoder: &mut DescriptorEncoder<'_>,
) -> Result<(), Error> {
    let mut bytes = encoder.encode_descriptor(
        "hearth_network_bytes",
        "Bytes between functions and the network, by function and direction",
        None,
        MetricType::Counter,
    )?;
    for of in functions {
        for (direction, count) in [("in", of.totals.bytes_in), ("out", of.totals.bytes_out)] {
            let labels = [("function", &*of.function), ("direction", direction)];
            bytes
                .encode_family(&labels)?
                .encode_counter::<NoLabelSet, _, u64>(&count, None)?;
        }
    }
    type Read = fn(&NetworkTotals) -> u64;
    let counters: [(&str, &str, Read); 4] = [
        (
            "hearth_network_connections",
            "Connections and UDP exchanges that functions have begun",
            |totals| totals.connections,
        ),
        (
            "hearth_network_refused_packets",
            "Packets of functions that were refused",
            |totals| totals.refused_packets,
        ),
        (
            "hearth_network_names",
            "Names that functions have asked for",
            |totals| totals.names_asked,
        ),
        (
            "hearth_network_refused_names",
            "Names that functions were refused",
            |totals| totals.names_refused,
        ),
    ];
    for (name, help, read) in counters {
        let mut counter = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for of in functions {
            counter
                .encode_family(&[("function", &*of.function)])?
                .encode_counter::<NoLabelSet, _, u64>(&read(&of.totals), None)?;
        }
    }
    encode_destinations(functions, encoder)
}

/// The same by destination: the first few of each function, and "other".
fn encode_destinations(
    functions: &[NetworkTraffic],
    encoder: &mut DescriptorEncoder<'_>,
) -> Result<(), Error> {
    let all = || {
        functions.iter().flat_map(|of| {
            let labelled = of.by_destination.iter();
            labelled.map(|(destination, seen)| (&*of.function, &**destination, seen))
        })
    };
    let mut bytes = encoder.encode_descriptor(
        "hearth_network_destination_bytes",
        "Bytes of connections that are over, by function, destination and direction",
        None,
        MetricType::Counter,
    )?;
    for (function, destination, seen) in all() {
        for (direction, count) in [("in", seen.bytes_in), ("out", seen.bytes_out)] {
            let labels = [
                ("function", function),
                ("destination", destination),
                ("direction", direction),
            ];
            bytes
                .encode_family(&labels)?
                .encode_counter::<NoLabelSet, _, u64>(&count, None)?;
        }
    }
    type Read = fn(&Labelled) -> u64;
    let counters: [(&str, &str, Read); 2] = [
        (
            "hearth_network_destination_connections",
            "Connections and UDP exchanges that functions have begun, by destination",
            |seen| seen.connections,
        ),
        (
            "hearth_network_destination_refused",
            "Refused packets and names that were reported, by destination",
            |seen| seen.refused,
        ),
    ];
    for (name, help, read) in counters {
        let mut counter = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (function, destination, seen) in all() {
            counter
                .encode_family(&[("function", function), ("destination", destination)])?
                .encode_counter::<NoLabelSet, _, u64>(&read(seen), None)?;
        }
    }
    Ok(())
}
