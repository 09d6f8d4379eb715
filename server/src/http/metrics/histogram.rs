//! The latency of functions as histograms with fixed bounds.

use std::fmt::Error;

use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

use crate::history::{LiveHistogram, Totals};

/// Upper bounds of the latency buckets in µs. Fixed, whatever was measured: `le` must not change between scrapes.
const BOUNDS_US: [u64; 17] = [
    100,
    250,
    500,
    1_000,
    2_500,
    5_000,
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    10_000_000,
    60_000_000,
    900_000_000,
];

/// Encodes them.
pub(super) fn encode(totals: &[Totals], encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
    let mut latency = encoder.encode_descriptor(
        "hearth_invocation_duration_seconds",
        "Time from admission to the end of the response",
        None,
        MetricType::Histogram,
    )?;
    for total in totals {
        let buckets = buckets(&total.histogram);
        latency
            .encode_family(&[("function", total.function.as_str())])?
            .encode_histogram::<NoLabelSet>(
                total.total_us as f64 / 1e6,
                buckets.iter().map(|(_, count)| count).sum(),
                &buckets,
                None,
            )?;
    }
    Ok(())
}

/// The live histogram in the fixed bounds, in seconds, not cumulative. A live bucket goes where its upper bound lies.
fn buckets(live: &LiveHistogram) -> Vec<(f64, u64)> {
    let mut counts = [0u64; BOUNDS_US.len() + 1];
    for (upper, count) in &live.buckets {
        counts[BOUNDS_US.partition_point(|bound| bound < upper)] += count;
    }
    BOUNDS_US
        .iter()
        .map(|bound| *bound as f64 / 1e6)
        .chain([f64::INFINITY])
        .zip(counts)
        .collect()
}
