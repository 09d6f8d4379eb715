//! Counts by time and latency.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::buckets::{BOUNDS, Buckets};
use crate::model::{HeatColumn, HeatMap};

/// Columns of buckets by their first second since 1970, with their width in seconds.
#[derive(Debug, Clone, Default)]
pub(super) struct Heat(BTreeMap<i64, (i64, Buckets)>);

impl Heat {
    /// Adds the invocations that finished in a column.
    pub(super) fn add(&mut self, from: i64, seconds: i64, buckets: &Buckets) {
        let column = self
            .0
            .entry(from)
            .or_insert_with(|| (seconds, Buckets::default()));
        column.1.add(buckets);
    }

    /// As the API shows it.
    pub(super) fn map(&self) -> HeatMap {
        let columns = self
            .0
            .iter()
            .map(|(from, (seconds, buckets))| HeatColumn {
                from: Timestamp::from_second(*from).unwrap_or_default(),
                seconds: u32::try_from(*seconds).unwrap_or(u32::MAX),
                counts: buckets.indexed(),
            })
            .collect();
        HeatMap {
            bounds_us: BOUNDS.to_vec(),
            columns,
        }
    }
}

/// Width of a column, in seconds, for a window in seconds.
pub(super) fn column_seconds(window_s: u64) -> i64 {
    match window_s {
        0..=300 => super::slots::SLOT_S,
        301..=7_200 => 60,
        7_201..=129_600 => 900,
        _ => 3_600,
    }
}
