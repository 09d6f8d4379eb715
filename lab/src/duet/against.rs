//! A duet beside an earlier one.

use serde::{Deserialize, Serialize};

use super::report::Report;
use crate::statistics::Comparison;
use crate::statistics::duet::Agreement;

/// How an experiment relates to an earlier one, by the benchmarks that both have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Against {
    /// Benchmarks that both have.
    pub benchmarks: usize,
    /// Both found a change in the same direction, or both none.
    pub agree: usize,
    /// Only one found a change.
    pub possible_changes: usize,
    /// This one's median lies in the earlier one's interval.
    pub covered: usize,
    /// Each one's median lies in the other's interval.
    pub covered_both: usize,
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
        let mut sum = Against {
            benchmarks: 0,
            agree: 0,
            possible_changes: 0,
            covered: 0,
            covered_both: 0,
        };
        for one in &self.benchmarks {
            let same = earlier.benchmarks.iter().find(|two| two.name == one.name);
            let comparison = same.and_then(|two| two.comparison);
            let (Some(now), Some(then)) = (one.comparison, comparison) else {
                continue;
            };
            let Agreement {
                agree,
                possible_change,
                covered,
                covered_both,
            } = now.agreement(&then);
            sum.benchmarks += 1;
            sum.agree += usize::from(agree);
            sum.possible_changes += usize::from(possible_change);
            sum.covered += usize::from(covered);
            sum.covered_both += usize::from(covered_both);
        }
        self.against = Some(sum);
    }
}
