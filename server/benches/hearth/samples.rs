//! Samples of one measurement, and what is said of them.

use std::time::Duration;

use serde::Serialize;

/// What a result file says of a measurement, all in ns.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Metrics {
    /// Shortest.
    pub min_ns: u64,
    /// Longest.
    pub max_ns: u64,
    /// Arithmetic mean.
    pub mean_ns: u64,
    /// 50th percentile.
    pub median_ns: u64,
    /// 95th percentile.
    pub p95_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// Standard deviation.
    pub std_dev_ns: u64,
}

/// Durations in the order in which they were measured.
#[derive(Debug, Default, Clone)]
pub struct Samples(Vec<u64>);

impl Samples {
    /// Adds one.
    pub fn push(&mut self, duration: Duration) {
        self.0
            .push(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Adds those of another thread.
    pub fn extend(&mut self, other: &Self) {
        self.0.extend_from_slice(&other.0);
    }

    /// Drops the first tenth: caches, branch predictors and pools are warm after it.
    pub fn without_warm_up(mut self) -> Self {
        let warm_up = self.0.len() / 10;
        self.0.drain(..warm_up);
        self
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Nearest-rank percentiles and moments.
    pub fn metrics(&self) -> Metrics {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let rank = |share: f64| {
            let index = (share * sorted.len() as f64).ceil() as usize;
            sorted
                .get(index.clamp(1, sorted.len().max(1)) - 1)
                .copied()
                .unwrap_or(0)
        };
        let count = sorted.len().max(1) as f64;
        let mean = sorted.iter().map(|&sample| sample as f64).sum::<f64>() / count;
        let variance = sorted
            .iter()
            .map(|&sample| (sample as f64 - mean).powi(2))
            .sum::<f64>()
            / count;
        Metrics {
            min_ns: sorted.first().copied().unwrap_or(0),
            max_ns: sorted.last().copied().unwrap_or(0),
            mean_ns: mean as u64,
            median_ns: rank(0.5),
            p95_ns: rank(0.95),
            p99_ns: rank(0.99),
            std_dev_ns: variance.sqrt() as u64,
        }
    }
}
