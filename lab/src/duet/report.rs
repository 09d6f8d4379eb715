//! What a duet comes to.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::against::Relation;
use super::benchmark::Benchmark;
use crate::replay::Replayed;
use crate::run::environment::Environment;
use crate::run::noise::{Control, Noise};
use crate::statistics::{Bootstrap, Verdict};
use crate::suite::Suite;

/// A duet that is over.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Version of the lab.
    pub lab_version: &'static str,
    /// When it began.
    pub began_at: Timestamp,
    /// When it ended.
    pub ended_at: Timestamp,
    /// The first version.
    pub first: String,
    /// The second version; the same as the first in an A/A experiment.
    pub second: String,
    /// What was measured of an invocation. None where a tool has measured.
    pub stage: Option<Stage>,
    /// Calls of each benchmark.
    pub calls: usize,
    /// Repeats of each call.
    pub repeats: usize,
    /// Invocations of each execution, whose mean counts.
    pub invocations: usize,
    /// Seed of the order.
    pub seed: u64,
    /// How intervals were made.
    pub bootstrap: Bootstrap,
    /// One for each event, or microbenchmark.
    pub benchmarks: Vec<Benchmark>,
    /// Beside an earlier experiment.
    pub against: Option<Relation>,
    /// What was replayed, where trials came at recorded times.
    pub replayed: Option<Replayed>,
    /// How a suite of microbenchmarks was run, where it was one.
    pub suite: Option<Suite>,
    /// Functions that could not be removed, and why.
    pub left_behind: Option<String>,
    /// How noisy the machine was.
    pub noise: Option<Noise>,
    /// Share of all processor time that the hypervisor took meanwhile.
    pub steal_share: Option<f64>,
    /// The machine that asked.
    pub environment: Environment,
    /// How narrow an interval was asked for.
    pub width: f64,
    /// What the server says of itself.
    pub node: Value,
}

/// What is measured of an invocation, as the server's `Server-Timing` has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// The handler alone.
    Run,
    /// From admission to the end of the answer.
    Total,
}

impl Stage {
    /// Its name in the header.
    pub fn name(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Total => "total",
        }
    }
}

/// Whether a benchmark of a [summary](Report::summary) has the first version's times from the history. Those of earlier versions, which do
/// not say it, have only the name.
pub fn is_from_history(summary: &Value, benchmark: &Value) -> bool {
    let is_named = summary["replayed"].is_object() && benchmark["title"] == "recorded";
    benchmark["from_history"].as_bool().unwrap_or(is_named)
}

impl Report {
    /// Whether both are the same: what is found then is noise.
    pub fn is_aa(&self) -> bool {
        self.first == self.second
    }

    /// Those in which both versions ran beside each other.
    pub fn duets(&self) -> impl Iterator<Item = &Benchmark> {
        self.benchmarks.iter().filter(|one| !one.from_history)
    }

    /// Benchmarks with enough trials.
    pub fn compared(&self) -> usize {
        self.duets().filter_map(|one| one.comparison).count()
    }

    /// Changes that were found.
    pub fn changes(&self) -> impl Iterator<Item = &Benchmark> {
        self.duets()
            .filter(|one| one.verdict.is_some_and(Verdict::is_change))
    }

    /// Changes between the first version and itself: with one, nothing that was found can be trusted.
    pub fn control_changes(&self) -> usize {
        let controls = self.benchmarks.iter().filter_map(|one| one.control_verdict);
        controls.filter(|verdict| verdict.is_change()).count()
    }

    /// With what tells how noisy the machine was; the yardstick was measured before and after.
    #[must_use]
    pub(crate) fn certified(mut self, yardstick_ns: [f64; 2]) -> Self {
        let verdicts = |of: fn(&Benchmark) -> Option<Verdict>| {
            let verdicts: Vec<Verdict> = self.duets().filter_map(of).collect();
            let changes = verdicts.iter().filter(|verdict| verdict.is_change());
            (!verdicts.is_empty()).then(|| Control {
                compared: verdicts.len(),
                changes: changes.count(),
            })
        };
        let control = match self.is_aa() {
            // Where the first version differs from its control, there is no other verdict.
            true => verdicts(|one| one.verdict.or(one.control_verdict)),
            false => verdicts(|one| one.control_verdict),
        };
        self.noise = Some(Noise {
            control,
            yardstick_ns,
            clock_source: self.environment.clock_source.clone(),
            clock_step_ns: self.environment.clock_step_ns,
            steal_share: self.steal_share,
            fdatasync: None,
        });
        self
    }

    /// In short, as a server keeps it.
    pub fn summary(&self) -> Value {
        let benchmark = |one: &Benchmark| {
            json!({
                "title": one.name,
                "from_history": one.from_history,
                "trials": one.trials.repeats.len(),
                "first_ns": one.first_ns,
                "second_ns": one.second_ns,
                "change": one.comparison.map(|found| found.change),
                "doubtful": one.is_doubtful(),
                "verdict": one.verdict,
                "trials_needed": one.trials_needed,
                "wide": one.is_wide,
                "failed": one.trials.faults(),
                "error": one.trials.error,
            })
        };
        json!({
            "first": self.first,
            "second": self.second,
            "benchmarks": self.benchmarks.iter().map(benchmark).collect::<Vec<Value>>(),
            "width": self.width,
            "control_changes": self.control_changes(),
            "steal_share": self.steal_share,
            "replayed": self.replayed,
            "suite": self.suite,
            "noise": self.noise,
        })
    }

    /// The same, with functions that could not be removed.
    #[must_use]
    pub(crate) fn leaving(self, left_behind: String) -> Self {
        Self {
            left_behind: Some(left_behind),
            ..self
        }
    }
}
