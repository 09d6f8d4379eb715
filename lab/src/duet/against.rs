//! A duet beside an earlier one.

use serde::{Deserialize, Serialize};

use super::report::Report;
use crate::statistics::Comparison;
use crate::statistics::duet::Agreement;

/// How an experiment relates to an earlier one, by the benchmarks that both have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Against {
    /// Benchmarks that both have.
    pub benchmarks: usize,
    /// Both found a change in the same direction, or both none.
    pub agree: usize,
    /// Only one found a change.
    pub possible_changes: usize,
    /// This one's median lies in the earlier one's interval.
    pub covered: usize,
    /// The earlier one's median lies in this one's interval.
    pub covers: usize,
    /// Each one's median lies in the other's interval.
    pub covered_both: usize,
}

impl Against {
    /// One more benchmark.
    pub fn add(&mut self, one: Agreement) {
        self.benchmarks += 1;
        self.agree += usize::from(one.agree);
        self.possible_changes += usize::from(one.possible_change);
        self.covered += usize::from(one.covered);
        self.covers += usize::from(one.covers);
        self.covered_both += usize::from(one.covered && one.covers);
    }
}

/// What [`Against`] needs of an earlier report.
#[derive(Debug, Clone, Deserialize)]
pub struct Earlier {
    benchmarks: Vec<EarlierBenchmark>,
}

#[derive(Debug, Clone, Deserialize)]
struct EarlierBenchmark {
    name: String,
    comparison: Option<Comparison>,
}

impl Report {
    /// Sets it beside an earlier one.
    pub fn set_against(&mut self, earlier: &Earlier) {
        let mut sum = Against::default();
        for one in &self.benchmarks {
            let same = earlier.benchmarks.iter().find(|two| two.name == one.name);
            let comparison = same.and_then(|two| two.comparison);
            let (Some(now), Some(then)) = (one.comparison, comparison) else {
                continue;
            };
            sum.add(now.change.agreement(&then.change));
        }
        self.against = Some(sum);
    }
}
