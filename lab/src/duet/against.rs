//! A duet beside an earlier one.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::report::Report;
use crate::statistics::duet::Agreement;
use crate::statistics::{Comparison, Verdict};

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

/// What a report says beside an earlier one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Relation {
    /// How both relate.
    Found(Against),
    /// One of them finds a version to differ from itself: what either says of two versions may be noise.
    Noisy {
        /// Which one, as a clause.
        no_agreement: String,
    },
}

impl fmt::Display for Relation {
    /// A line of text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Found(against) => write!(
                f,
                "of {} benchmarks of the earlier experiment {} agree, {} are possible changes; \
                 one-sided coverage: {} medians in the earlier intervals, {} earlier medians in these; two-sided: {}",
                against.benchmarks,
                against.agree,
                against.possible_changes,
                against.covered,
                against.covers,
                against.covered_both,
            ),
            Self::Noisy { no_agreement } => write!(f, "no agreement: {no_agreement}"),
        }
    }
}

/// What [`Against`] needs of an earlier report. Those of earlier versions lack all but names and comparisons.
#[derive(Debug, Clone, Deserialize)]
pub struct Earlier {
    #[serde(default)]
    first: Option<String>,
    #[serde(default)]
    second: Option<String>,
    benchmarks: Vec<EarlierBenchmark>,
}

#[derive(Debug, Clone, Deserialize)]
struct EarlierBenchmark {
    name: String,
    #[serde(default)]
    from_history: bool,
    comparison: Option<Comparison>,
    #[serde(default)]
    verdict: Option<Verdict>,
    #[serde(default)]
    control_verdict: Option<Verdict>,
}

impl Earlier {
    /// Those in which both versions ran beside each other.
    fn duets(&self) -> impl Iterator<Item = &EarlierBenchmark> {
        self.benchmarks.iter().filter(|one| !one.from_history)
    }

    /// As [`Report::is_noisy`].
    fn is_noisy(&self) -> bool {
        let is_aa = self.first.is_some() && self.first == self.second;
        let is_change = |verdict: Option<Verdict>| verdict.is_some_and(Verdict::is_change);
        self.duets()
            .any(|one| is_change(one.control_verdict) || is_aa && is_change(one.verdict))
    }
}

impl Report {
    /// Whether a version was found to differ from itself: by the control, or by an A/A experiment.
    pub fn is_noisy(&self) -> bool {
        self.control_changes() > 0 || self.is_aa() && self.changes().count() > 0
    }

    /// Sets it beside an earlier one.
    pub fn set_against(&mut self, earlier: &Earlier) {
        let noisy = match (self.is_noisy(), earlier.is_noisy()) {
            (false, false) => None,
            (true, false) => Some("this experiment"),
            (false, true) => Some("the earlier experiment"),
            (true, true) => Some("both experiments"),
        };
        self.against = Some(match noisy {
            Some(which) => Relation::Noisy {
                no_agreement: format!("in {which} the first version differs from itself"),
            },
            None => Relation::Found(self.beside(earlier)),
        });
    }

    fn beside(&self, earlier: &Earlier) -> Against {
        let mut sum = Against::default();
        for one in self.duets() {
            let same = earlier.duets().find(|two| two.name == one.name);
            let comparison = same.and_then(|two| two.comparison);
            let (Some(now), Some(then)) = (one.comparison, comparison) else {
                continue;
            };
            sum.add(now.change.agreement(&then.change));
        }
        sum
    }
}
