//! Samples of one measurement, and their statistics.

use std::time::Duration;

use hearth::model::samples_needed;

use super::Metrics;

/// Share of the samples that is dropped at the beginning: caches, branch predictors and pools are warm after it.
const WARM_UP_SHARE: usize = 10;

/// Durations in ns, in the order in which they were measured.
#[derive(Debug, Clone)]
pub struct Samples {
    nanos: Vec<f64>,
    /// What was repeated for one sample; its value is the mean.
    batch: usize,
}

impl Default for Samples {
    fn default() -> Self {
        Self::batches(1)
    }
}

impl Samples {
    /// Samples of which each is the mean of `batch` repetitions: for what is shorter than reading the clock takes.
    pub fn batches(batch: usize) -> Self {
        Self {
            nanos: Vec::new(),
            batch,
        }
    }

    /// Adds one; for a batch the time of all of it.
    pub fn push(&mut self, duration: Duration) {
        self.nanos
            .push(duration.as_nanos() as f64 / self.batch as f64);
    }

    /// Adds those of another thread or process, measured at the same time.
    pub fn extend(&mut self, other: &Self) {
        self.nanos.extend_from_slice(&other.nanos);
    }

    /// Drops the first tenth.
    pub fn without_warm_up(mut self) -> Self {
        let warm_up = self.nanos.len() / WARM_UP_SHARE;
        self.nanos.drain(..warm_up);
        self
    }

    /// How many samples there are.
    pub fn len(&self) -> usize {
        self.nanos.len()
    }

    /// The longest, if there is one.
    pub fn longest(&self) -> Option<Duration> {
        let longest = self.nanos.iter().copied().reduce(f64::max)?;
        Some(Duration::from_nanos(longest as u64))
    }

    /// How many repetitions they stand for.
    pub fn iterations(&self) -> usize {
        self.nanos.len() * self.batch
    }

    /// One percentile in ns, as [`Self::metrics`] has them: nearest rank, none of too few samples.
    pub fn percentile(&self, per_mille: u64) -> Option<f64> {
        let mut sorted = self.nanos.clone();
        sorted.sort_by(f64::total_cmp);
        percentile_of(&sorted, per_mille)
    }

    /// Nearest-rank percentiles and moments, to a tenth of a ns. None for a percentile with too few samples.
    pub fn metrics(&self) -> Metrics {
        let mut sorted = self.nanos.clone();
        sorted.sort_by(f64::total_cmp);
        let count = sorted.len().max(1) as f64;
        let mean = sorted.iter().sum::<f64>() / count;
        let variance = sorted
            .iter()
            .map(|sample| (sample - mean).powi(2))
            .sum::<f64>()
            / count;
        Metrics {
            min_ns: rank(&sorted, 0.0),
            max_ns: rank(&sorted, 1.0),
            mean_ns: tenth(mean),
            median_ns: rank(&sorted, 0.5),
            p95_ns: percentile_of(&sorted, 950),
            p99_ns: percentile_of(&sorted, 990),
            std_dev_ns: tenth(variance.sqrt()),
        }
    }
}

/// The sample at a share of a sorted list, by nearest rank.
fn rank(sorted: &[f64], share: f64) -> f64 {
    let index = (share * sorted.len() as f64).ceil() as usize;
    let index = index.clamp(1, sorted.len().max(1)) - 1;
    tenth(sorted.get(index).copied().unwrap_or(0.0))
}

fn percentile_of(sorted: &[f64], per_mille: u64) -> Option<f64> {
    let enough = sorted.len() as u64 >= samples_needed(per_mille);
    enough.then(|| rank(sorted, per_mille as f64 / 1000.0))
}

fn tenth(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}
