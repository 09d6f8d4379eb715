//! The configuration of an experiment: STeLLAR's, or one of the lab's own, which has a `kind`.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::duet::Duet;
use super::load::Load;
use super::overhead::Overhead;
use super::replay::Replay;
use super::suite::Suite;
use super::what_if::WhatIf;
use crate::duet::Subject;
use crate::duet::run::DuetError;
use crate::platform::client::Client;
use crate::run::storage;
use crate::stellar::{Experiment, ExperimentError};
use crate::store::Source;
use crate::table::Factor;
use crate::table::factors::{self, FACTORS, PAPER_SAMPLES, SAMPLES_MIN};

/// An experiment to be run.
#[derive(Debug, Clone, PartialEq)]
pub enum Job {
    /// STeLLAR's format.
    Stellar(Experiment),
    /// Requests to a function, a chain or an address.
    Load(Load),
    /// The tail table.
    Tail(Tail),
    /// What each layer has of an invocation's time.
    Overhead(Overhead),
    /// Two functions or versions compared.
    Duet(Duet),
    /// Recorded requests, sent once more to both.
    Replay(Replay),
    /// Two source trees, compared by their microbenchmarks.
    Suite(Suite),
    /// A function's calls with other settings of the scheduler, simulated.
    WhatIf(WhatIf),
}

/// The tail table's settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tail {
    kind: String,
    /// Samples of each factor without bursts.
    pub samples: usize,
    /// The factors; all but large bursts without one. Warm is always among them.
    pub factors: Vec<String>,
}

impl Default for Tail {
    fn default() -> Self {
        Self {
            kind: "tail".to_owned(),
            samples: 200,
            factors: Vec::new(),
        }
    }
}

/// Why a configuration is refused.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// It is no JSON, or a field has another type.
    #[error("not an experiment: {0}")]
    Json(#[from] serde_json::Error),
    /// There is no such kind.
    #[error(
        "kind: {0:?} is none of load, tail, overhead, duet, replay, suite, whatif; an experiment of STeLLAR's has no kind"
    )]
    Kind(String),
    /// STeLLAR's format is not kept.
    #[error(transparent)]
    Stellar(#[from] ExperimentError),
    /// A field makes no sense.
    #[error("{0}: {1}")]
    Field(&'static str, String),
    /// The same of a duet.
    #[error(transparent)]
    Duet(#[from] DuetError),
}

impl JobError {
    /// The setting that makes no sense, and the rule; none if it is not about one.
    pub fn setting(&self) -> Option<(&'static str, &str)> {
        match self {
            Self::Field(name, rule) | Self::Duet(DuetError::Setting(name, rule)) => {
                Some((name, rule))
            }
            _ => None,
        }
    }
}

impl Job {
    /// Reads a configuration and checks it.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn read(text: &[u8]) -> Result<Self, JobError> {
        let value: Value = serde_json::from_slice(text)?;
        let job = match value["kind"].clone() {
            Value::Null => Self::Stellar(Experiment::read(text, false)?),
            Value::String(kind) if kind == "load" => Self::Load(serde_json::from_value(value)?),
            Value::String(kind) if kind == "tail" => Self::Tail(serde_json::from_value(value)?),
            Value::String(kind) if kind == "overhead" => {
                Self::Overhead(serde_json::from_value(value)?)
            }
            Value::String(kind) if kind == "duet" => Self::Duet(serde_json::from_value(value)?),
            Value::String(kind) if kind == "replay" => Self::Replay(serde_json::from_value(value)?),
            Value::String(kind) if kind == "suite" => Self::Suite(serde_json::from_value(value)?),
            Value::String(kind) if kind == "whatif" => Self::WhatIf(serde_json::from_value(value)?),
            other => {
                return Err(JobError::Kind(
                    other
                        .as_str()
                        .map_or_else(|| other.to_string(), str::to_owned),
                ));
            }
        };
        match &job {
            Self::Stellar(_) => {}
            Self::Load(load) => load.check()?,
            Self::Tail(tail) => drop(tail.experiment()?),
            Self::Overhead(overhead) => drop(overhead.settings("")?),
            Self::Duet(duet) => drop(duet.settings(Vec::new())?),
            Self::Replay(replay) => replay.check()?,
            Self::Suite(suite) => suite.check()?,
            Self::WhatIf(what_if) => what_if.check()?,
        }
        Ok(job)
    }

    /// `stellar`, `load`, `tail`, `overhead`, `duet`, `replay`, `suite` or `whatif`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Stellar(_) => "stellar",
            Self::Load(_) => "load",
            Self::Tail(_) => "tail",
            Self::Overhead(_) => "overhead",
            Self::Duet(_) => "duet",
            Self::Replay(_) => "replay",
            Self::Suite(_) => "suite",
            Self::WhatIf(_) => "whatif",
        }
    }

    /// The functions that it is about, each with the field that names it; nothing for those that bring their own.
    ///
    /// # Errors
    /// A field that names no function.
    pub fn subjects(&self) -> Result<Vec<(&'static str, Subject)>, JobError> {
        Ok(match self {
            Self::Stellar(_) | Self::Tail(_) | Self::Overhead(_) | Self::Suite(_) => Vec::new(),
            Self::Load(load) => Vec::from_iter(load.subject()?.map(|one| ("function", one))),
            Self::Duet(duet) => duet.subjects()?.into(),
            Self::Replay(replay) => replay.subjects()?.into(),
            Self::WhatIf(what_if) => vec![("function", what_if.subject()?)],
        })
    }

    /// What it answers, in a line.
    pub fn title(&self) -> String {
        match self {
            Self::Stellar(experiment) => {
                let titles = experiment
                    .sub_experiments
                    .iter()
                    .map(|one| one.title.as_str());
                let titles: Vec<&str> = titles.take(4).collect();
                let left = experiment.sub_experiments.len() - titles.len();
                let more = if left > 0 {
                    format!(" and {left} more")
                } else {
                    String::new()
                };
                format!("{}{more}", titles.join(", "))
            }
            Self::Load(load) => load.title(),
            Self::Tail(_) => "Tail latency of this server by factor".to_owned(),
            Self::WhatIf(what_if) => format!("Which settings keep {} warm?", what_if.function),
            Self::Overhead(_) => "Where a small invocation's time goes".to_owned(),
            Self::Duet(duet) if duet.is_aa() => format!("Does {} differ from itself?", duet.first),
            Self::Duet(duet) if duet.threshold.is_some() => {
                format!("May {} replace {}?", duet.second, duet.first)
            }
            Self::Replay(replay) if replay.is_aa() => {
                format!("Does {} differ from itself, replayed?", replay.first)
            }
            Self::Replay(replay) => {
                format!(
                    "Is {} faster than {}, replayed?",
                    replay.second_in_words(),
                    replay.first
                )
            }
            Self::Duet(duet) => format!("Is {} faster than {}?", duet.second, duet.first),
            Self::Suite(suite) if suite.is_aa() => {
                format!("Do benchmarks of {} differ from themselves?", suite.first)
            }
            Self::Suite(suite) => {
                format!(
                    "Is {} faster than {}, by its benchmarks?",
                    suite.second, suite.first
                )
            }
        }
    }
}

impl Tail {
    /// What is measured here, and what is left out and why.
    ///
    /// # Errors
    /// As [`Self::experiment`].
    pub async fn measurable(
        &self,
        client: &Client,
        store: &Source,
        prefix: &str,
    ) -> Result<(Experiment, Option<String>), JobError> {
        let all = self.experiment()?;
        if !self.factors.is_empty() {
            return Ok((all, None));
        }
        let (factors, left_out) = measurable(self.chosen()?, client, store, prefix).await;
        Ok((factors::experiment(&factors, self.samples)?, left_out))
    }

    fn chosen(&self) -> Result<Vec<&'static Factor>, JobError> {
        chosen(&self.factors, false).map_err(|rule| JobError::Field("factors", rule))
    }

    /// What is measured.
    ///
    /// # Errors
    /// A number of samples out of bounds, an unknown factor.
    pub fn experiment(&self) -> Result<Experiment, JobError> {
        if !(SAMPLES_MIN..=PAPER_SAMPLES).contains(&self.samples) {
            let rule = format!(
                "{} is not within {SAMPLES_MIN} and {PAPER_SAMPLES}",
                self.samples
            );
            return Err(JobError::Field("samples", rule));
        }
        Ok(factors::experiment(&self.chosen()?, self.samples)?)
    }
}

/// Of factors that nobody has named, those that can be measured, and what is left out and why: storage transfers, where functions
/// cannot use the object store.
pub async fn measurable(
    factors: Vec<&'static Factor>,
    client: &Client,
    store: &Source,
    prefix: &str,
) -> (Vec<&'static Factor>, Option<String>) {
    let (stored, others): (Vec<&'static Factor>, Vec<_>) =
        factors.iter().copied().partition(|one| one.uses_store());
    if stored.is_empty() {
        return (factors, None);
    }
    match storage::check(client, store, prefix).await {
        Ok(()) => (factors, None),
        Err(error) => {
            let names: Vec<&str> = stored.iter().map(|one| one.name).collect();
            (others, Some(format!("{}: {error}", names.join(", "))))
        }
    }
}

/// The factors of these names and always warm; without names all, large bursts only if `all`.
///
/// # Errors
/// The first name that is none, with those that are.
pub fn chosen(names: &[String], all: bool) -> Result<Vec<&'static Factor>, String> {
    for name in names {
        if Factor::named(name).is_none() {
            let known: Vec<&str> = FACTORS.iter().map(|factor| factor.name).collect();
            return Err(format!("{name:?} is none of {}", known.join(", ")));
        }
    }
    let wanted = |factor: &&Factor| {
        if names.is_empty() {
            return all || !factor.is_large;
        }
        // MR and TR are relative to warm.
        factor.name == FACTORS[0].name || names.iter().any(|name| name == factor.name)
    };
    Ok(FACTORS.iter().filter(wanted).collect())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;

    fn read(value: &Value) -> Result<Job, JobError> {
        Job::read(value.to_string().as_bytes())
    }

    #[test]
    fn configurations_are_stellars_or_have_a_kind() {
        let stellar = json!({"SubExperiments": [
            {"Title": "warm", "Bursts": 1, "BurstSizes": [1], "IATSeconds": 1}
        ]});
        let job = read(&stellar).expect("an experiment");
        assert_eq!((job.kind(), job.title().as_str()), ("stellar", "warm"));
        let load = json!({"kind": "load", "function": "hello", "rate": 100, "duration_s": 1});
        let load = read(&load).expect("a load");
        assert_eq!(
            (load.kind(), load.title().as_str()),
            ("load", "How fast is hello at 100 requests per second?")
        );
        let subjects = load.subjects().expect("a function");
        assert_eq!(subjects[0].1.function, "hello");
        let load = json!({"kind": "load", "chain": "shop", "path": "/cart", "connections": 4});
        let load = read(&load).expect("a load");
        assert_eq!(
            (load.subjects().expect("none").len(), load.title().as_str()),
            (0, "How fast is shop/cart, 4 requests at a time?")
        );
        let job = read(&json!({"kind": "tail", "factors": ["cold"]})).expect("a table");
        assert_eq!(job.kind(), "tail");
        let job = read(&json!({"kind": "overhead", "cold": 5})).expect("a study");
        assert_eq!(
            (job.kind(), job.subjects().expect("none").len()),
            ("overhead", 0)
        );
        let job = read(&json!({"kind": "duet", "first": "a@1", "second": "a@2"})).expect("a duet");
        assert_eq!(job.title(), "Is a@2 faster than a@1?");
        let Job::Duet(duet) = job else {
            panic!("a duet")
        };
        assert_eq!((duet.calls, duet.repeats, duet.control), (15, 3, true));
        let gate = json!({"kind": "duet", "first": "a@1", "second": "a@2", "threshold": 0.05,
            "events": [1, 2], "names": ["small"]});
        let gate = read(&gate).expect("a gate");
        assert_eq!(gate.title(), "May a@2 replace a@1?");
        let Job::Duet(gate) = gate else {
            panic!("a duet")
        };
        let settings = gate.settings(Vec::new()).expect("settings");
        let names: Vec<&str> = settings
            .events
            .iter()
            .map(|one| one.name.as_str())
            .collect();
        assert_eq!(names, ["small", "event 2"]);
        let suite = json!({"kind": "suite", "tool": "go", "first": "old", "second": "new/tree"});
        let suite = read(&suite).expect("a suite");
        assert_eq!(
            (suite.kind(), suite.title().as_str()),
            ("suite", "Is new/tree faster than old, by its benchmarks?")
        );
        let Job::Suite(suite) = suite else {
            panic!("a suite")
        };
        let settings = suite
            .settings(Path::new("/trees"), "lab-e1")
            .expect("settings");
        assert_eq!(
            settings.second.as_deref(),
            Some(Path::new("/trees/new/tree"))
        );
        assert_eq!(
            (settings.function.as_str(), settings.method.calls),
            ("lab-e1-suite", 15)
        );
        let memory = json!({"kind": "replay", "first": "a@1", "settings": {"memory_mb": 256}});
        let memory = read(&memory).expect("a replay");
        assert_eq!(
            memory.title(),
            "Is a@1 with memory_mb=256 faster than a@1, replayed?"
        );
        let aa = read(&json!({"kind": "duet", "first": "a"})).expect("a duet");
        assert_eq!(aa.title(), "Does a differ from itself?");
    }

    #[test]
    fn bad_configurations_are_refused_with_their_field() {
        for (bad, expected) in [
            (json!([]), "SubExperiments"),
            (
                json!({"kind": "x"}),
                "\"x\" is none of load, tail, overhead, duet, replay, suite",
            ),
            (
                json!({"kind": "replay", "first": "a", "speed": 101}),
                "speed: 1 to 100",
            ),
            (
                json!({"kind": "replay", "first": "a", "settings": {"network": "internet"}}),
                "settings: network cannot be set: copies have none",
            ),
            (
                json!({"kind": "replay", "first": "a", "settings": {"memory": 1}}),
                "settings: \"memory\" is none of memory_mb",
            ),
            (
                json!({"kind": "replay", "first": "a", "last_s": 0}),
                "from: must be before",
            ),
            (
                json!({"kind": "replay", "first": "a", "trace": {"text": "app,func\n"}}),
                "trace: line 1: a header",
            ),
            (
                json!({"kind": "replay", "first": "a", "trace": {
                    "text": "app,func,end_timestamp,duration\na,f,1,0\na,f,99999,0\n"
                }}),
                "speed: takes longer than 6 h",
            ),
            (json!({"kind": 7}), "is none of load, tail"),
            (json!({"kind": "load"}), "url: one of url, function and"),
            (
                json!({"kind": "load", "url": "a.b"}),
                "url: must begin with http",
            ),
            (
                json!({"kind": "load", "function": "a", "rate": 1e9}),
                "rate: above 0",
            ),
            (
                json!({"kind": "tail", "samples": 1}),
                "samples: 1 is not within",
            ),
            (
                json!({"kind": "tail", "factors": ["x"]}),
                "factors: \"x\" is none of warm",
            ),
            (json!({"kind": "tail", "sample": 100}), "unknown field"),
            (
                json!({"kind": "overhead", "samples": 9}),
                "samples: 9 is not within 10 and 3000",
            ),
            (
                json!({"kind": "overhead", "cold": 201}),
                "cold: at most 200",
            ),
            (
                json!({"kind": "overhead", "workloads": ["x"]}),
                "workloads: \"x\" is none of empty",
            ),
            (
                json!({"kind": "overhead", "runtimes": ["x"]}),
                "runtimes: \"x\" is none of python3",
            ),
            (json!({"kind": "duet"}), "first: a function"),
            (
                json!({"kind": "duet", "first": "a", "second": "B"}),
                "second: a function",
            ),
            (
                json!({"kind": "duet", "first": "a", "calls": 0}),
                "calls: 0 is not within",
            ),
            (
                json!({"kind": "suite", "tool": "go", "first": "../up"}),
                "first: a directory below the agent's trees",
            ),
            (
                json!({"kind": "suite", "tool": "go", "first": "a", "second": "/etc"}),
                "second: a directory below",
            ),
            (
                json!({"kind": "suite", "tool": "jmh", "first": "a"}),
                "unknown variant `jmh`",
            ),
            (
                json!({"kind": "suite", "tool": "go", "first": "a", "time_s": 30}),
                "time: 30 s is not within",
            ),
            (
                json!({"kind": "suite", "tool": "pyperf", "first": "a", "cgo": true}),
                "cgo: only for go, not for pyperf",
            ),
            (
                json!({"kind": "suite", "tool": "go", "first": "a", "calls": 0}),
                "calls",
            ),
            (
                json!({"kind": "duet", "first": "a", "confidence": 1.0}),
                "confidence",
            ),
            (
                json!({"kind": "duet", "first": "a", "stage": "x"}),
                "unknown variant",
            ),
            (
                json!({"kind": "duet", "first": "a@1", "second": "a@2", "threshold": 11}),
                "threshold: 0 to 10",
            ),
            (
                json!({"kind": "duet", "first": "a", "threshold": 0.05}),
                "threshold: needs a second version",
            ),
            (
                json!({"kind": "duet", "first": "a", "names": ["x"]}),
                "names: not more than events",
            ),
            (
                json!({"kind": "duet", "first": "a", "recorded": 999}),
                "recorded: at most",
            ),
        ] {
            let error = read(&bad).expect_err("it is bad");
            if let Some((setting, rule)) = error.setting() {
                assert_eq!(error.to_string(), format!("{setting}: {rule}"));
            }
            let error = error.to_string();
            assert!(error.contains(expected), "{bad}: {error}");
        }
        assert!(matches!(Job::read(b"{"), Err(JobError::Json(_))));
    }
}
