//! What came of one event, or microbenchmark, of a duet.

use serde::Serialize;

use super::trials::{Repeat, Trials};
use super::unit::Unit;
use crate::statistics::duet::{compare, trials_until};
use crate::statistics::family::verdicts;
use crate::statistics::quantile::median;
use crate::statistics::signed_rank::signed_rank;
use crate::statistics::{Bootstrap, Comparison, Verdict};

/// An event with which both versions ran.
#[derive(Debug, Clone, Serialize)]
pub struct Benchmark {
    /// The event's name.
    pub name: String,
    /// Whether the first version's times are from the history: it ran at another time and beside other work, so that this is no finding.
    pub from_history: bool,
    /// The first version's median, in ns. None without a trial.
    pub first_ns: Option<f64>,
    /// The second version's median, in ns. None without a trial.
    pub second_ns: Option<f64>,
    /// Both compared. None with too few trials: the benchmark is left out.
    pub comparison: Option<Comparison>,
    /// What is said of it among the others. None where it is left out or from the history, and of all where the first version differs from
    /// itself: what differs from it says nothing then.
    pub verdict: Option<Verdict>,
    /// The first version and itself, where there is a control.
    pub control: Option<Comparison>,
    /// The same for that.
    pub control_verdict: Option<Verdict>,
    /// The fewest trials after which the interval was as narrow as asked for. None if it never was, and where results are of several trials.
    pub trials_needed: Option<usize>,
    /// Whether it never was, with all trials.
    pub is_wide: bool,
    /// All trials.
    pub trials: Trials,
}

impl Benchmark {
    /// The same with the first version's times from the history: without a verdict, because no A/A ran beside them.
    #[must_use]
    pub(crate) fn with_history(self) -> Self {
        Self {
            from_history: true,
            verdict: None,
            ..self
        }
    }

    /// Whether a change was found that may be noise.
    pub fn is_doubtful(&self) -> bool {
        self.verdict.is_some_and(Verdict::is_change)
            && self
                .comparison
                .is_some_and(|found| found.change.is_doubtful())
    }
}

/// Compares all benchmarks, and tells of each after how many trials its interval was no wider than `width`, unless results are of several
/// trials.
pub fn benchmarks(
    all: Vec<(String, Trials)>,
    unit: Unit,
    bootstrap: &Bootstrap,
    width: f64,
    step: usize,
) -> Vec<Benchmark> {
    let mut benchmarks: Vec<Benchmark> = all
        .into_iter()
        .map(|(name, trials)| {
            let pairs = trials.pairs(unit);
            let of = |pick: fn(&Repeat) -> f64| {
                median(&mut trials.repeats.iter().map(pick).collect::<Vec<f64>>())
            };
            // Looked at in twenty places at most, because each makes an interval.
            let step = step.max(pairs.len() / 20);
            let trials_needed = (unit == Unit::Trial)
                .then(|| trials_until(&pairs, width, step, bootstrap))
                .flatten();
            let comparison = compare(&pairs, bootstrap);
            let is_counted = unit == Unit::Trial && comparison.is_some();
            Benchmark {
                name,
                from_history: false,
                first_ns: of(|trial| trial.first_ns),
                second_ns: of(|trial| trial.second_ns),
                comparison,
                verdict: None,
                control: compare(&trials.controls(unit), bootstrap),
                control_verdict: None,
                trials_needed,
                is_wide: is_counted && trials_needed.is_none(),
                trials,
            }
        })
        .collect();
    let confidence = bootstrap.confidence;
    let found = judged(&benchmarks, confidence, |one| {
        Some((one.comparison?, signed_rank(&one.trials.pairs(unit))))
    });
    let controls = judged(&benchmarks, confidence, |one| {
        Some((one.control?, signed_rank(&one.trials.controls(unit))))
    });
    let changes = |verdict: &Verdict| verdict.is_change();
    let is_noisy = controls.iter().flatten().any(changes);
    for ((one, verdict), control) in benchmarks.iter_mut().zip(found).zip(controls) {
        one.verdict = verdict.filter(|_| !is_noisy);
        one.control_verdict = control;
    }
    benchmarks
}

/// The verdicts on those that are not left out, each in its place.
fn judged(
    benchmarks: &[Benchmark],
    confidence: f64,
    of: impl Fn(&Benchmark) -> Option<(Comparison, f64)>,
) -> Vec<Option<Verdict>> {
    let found: Vec<Option<(Comparison, f64)>> = benchmarks.iter().map(of).collect();
    let counted: Vec<(Comparison, f64)> = found.iter().flatten().copied().collect();
    let mut verdicts = verdicts(&counted, confidence).into_iter();
    found
        .iter()
        .map(|one| one.as_ref().and_then(|_| verdicts.next()))
        .collect()
}
