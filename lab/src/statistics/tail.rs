//! Median and tail, and their ratios as STeLLAR (IISWC 2021) defines them.

use serde::{Deserialize, Serialize};

use super::quantile::{linear, sort};

/// Above this ratio of tail to median STeLLAR calls a function's variability a problem.
pub const TMR_PROBLEM: f64 = 10.0;

/// What a set of latencies comes to. All in the unit of the samples; quantiles are interpolated.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Tail {
    /// Number of samples.
    pub count: usize,
    /// The 50th percentile.
    pub median: f64,
    /// The 90th.
    pub p90: f64,
    /// The 99th, which STeLLAR calls the tail.
    pub p99: f64,
    /// The 99.9th. With fewer than 1,000 samples it is an interpolation towards the largest.
    pub p999: f64,
    /// The largest.
    pub max: f64,
    /// Tail-to-median ratio: `p99 / median`.
    pub tmr: f64,
}

impl Tail {
    /// From samples, which it sorts. None without samples.
    pub fn of(samples: &mut [f64]) -> Option<Self> {
        sort(samples);
        let median = linear(samples, 0.5)?;
        let p99 = linear(samples, 0.99)?;
        Some(Self {
            count: samples.len(),
            median,
            p90: linear(samples, 0.9)?,
            p99,
            p999: linear(samples, 0.999)?,
            max: linear(samples, 1.0)?,
            tmr: p99 / median,
        })
    }

    /// MR and TR: this factor's median and tail over the median of warm invocations.
    pub fn over(&self, warm: &Self) -> Ratios {
        Ratios {
            mr: self.median / warm.median,
            tr: self.p99 / warm.median,
        }
    }
}

/// How a factor compares with warm invocations.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Ratios {
    /// Median ratio: the factor's median over the warm median.
    pub mr: f64,
    /// Tail ratio: the factor's 99th percentile over the warm median.
    pub tr: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_those_of_the_paper() {
        // 1 to 1,000: p50 = 500.5, p99 = 990.01 by linear interpolation, as NumPy has it.
        let mut samples: Vec<f64> = (1..=1_000).rev().map(f64::from).collect();
        let warm = Tail::of(&mut samples).expect("samples");
        assert_eq!((warm.count, warm.median, warm.max), (1_000, 500.5, 1_000.0));
        assert!((warm.p99 - 990.01).abs() < 1e-9, "{warm:?}");
        assert!((warm.tmr - 990.01 / 500.5).abs() < 1e-12);
        let mut samples: Vec<f64> = (1..=1_000).map(|n| f64::from(n) * 3.0).collect();
        let ratios = Tail::of(&mut samples).expect("samples").over(&warm);
        assert!((ratios.mr - 3.0).abs() < 1e-12);
        assert!((ratios.tr - 3.0 * 990.01 / 500.5).abs() < 1e-12);
        assert_eq!(Tail::of(&mut []), None);
    }
}
