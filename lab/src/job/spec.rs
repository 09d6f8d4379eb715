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
mod tests;
