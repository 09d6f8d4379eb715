//! Metrics of functions' networks.

use std::fmt::Error;
use std::sync::Arc;

use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

use crate::network::NetworkTotals;

/// Writes those of every function.
pub(super) fn encode(
    functions: &[(Arc<str>, NetworkTotals)],
    encoder: &mut DescriptorEncoder<'_>,
) -> Result<(), Error> {
    let mut bytes = encoder.encode_descriptor(
        "hearth_network_bytes",
        "Bytes between functions and the network, by function and direction",
        None,
        MetricType::Counter,
    )?;
    for (function, totals) in functions {
        for (direction, count) in [("in", totals.bytes_in), ("out", totals.bytes_out)] {
            let labels = [("function", &**function), ("direction", direction)];
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
        for (function, totals) in functions {
            counter
                .encode_family(&[("function", &**function)])?
                .encode_counter::<NoLabelSet, _, u64>(&read(totals), None)?;
        }
    }
    Ok(())
}
