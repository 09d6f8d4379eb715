//! The configuration of a replay.

use std::ops::Range;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::spec::JobError;
use crate::duet::Subject;
use crate::duet::report::Stage;
use crate::platform::client::Client;
use crate::replay::azure::{self, Part};
use crate::replay::{Changes, Network, ReplayError, Settings, Traffic, Variant, recorded};
use crate::statistics::Bootstrap;

/// A replay's settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Replay {
    pub(super) kind: String,
    /// The first version: `hello`, `hello@2`. Its function's history is replayed.
    pub first: String,
    /// The second version; empty for the first (A/A, unless it has other settings).
    pub second: String,
    /// Settings of the second that differ from its version's, by their names in the API.
    pub settings: Changes,
    /// What all copies may reach.
    pub network: Network,
    /// Begin of the window; `last_s` before its end without one.
    pub from: Option<Timestamp>,
    /// End of the window; now without one.
    pub to: Option<Timestamp>,
    /// Length of the window in seconds.
    pub last_s: u64,
    /// A trace of Azure's in place of the history.
    pub trace: Option<Trace>,
    /// Factor by which time is scaled, 1 to 100.
    pub speed: f64,
    /// What is measured of each.
    pub stage: Stage,
    /// Confidence of the intervals.
    pub confidence: f64,
    /// Seed of the order, the bootstrap, and the times within a minute of a trace.
    pub seed: u64,
}

/// Part of a trace of Azure's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Trace {
    /// Its lines, the header among them.
    pub text: String,
    /// A function's id; all functions without one.
    pub function: Option<String>,
    /// Seconds from the trace's begin.
    pub from_s: f64,
    /// Seconds from there on; all without.
    pub for_s: Option<f64>,
}

impl Default for Replay {
    fn default() -> Self {
        Self {
            kind: "replay".to_owned(),
            first: String::new(),
            second: String::new(),
            settings: Changes::default(),
            network: Network::default(),
            from: None,
            to: None,
            last_s: 3600,
            trace: None,
            speed: 1.0,
            stage: Stage::Run,
            confidence: 0.99,
            seed: 1,
        }
    }
}

impl Default for Trace {
    fn default() -> Self {
        Self {
            text: String::new(),
            function: None,
            from_s: 0.0,
            for_s: None,
        }
    }
}

/// The seconds of a trace from `from` on, for so long.
///
/// # Errors
/// Negative ones.
pub fn seconds(from: f64, length: Option<f64>) -> Result<Range<f64>, String> {
    let length = length.unwrap_or(f64::INFINITY);
    match from >= 0.0 && length > 0.0 {
        true => Ok(from..from + length),
        false => Err("begins at 0 or later and takes more than 0 s".to_owned()),
    }
}

impl Replay {
    pub(super) fn is_aa(&self) -> bool {
        (self.second.is_empty() || self.second == self.first) && self.settings.is_empty()
    }

    /// What is set beside the first, for people: `hello@2`, `hello with memory_mb=256`.
    pub(super) fn second_in_words(&self) -> String {
        let name = match self.second.is_empty() {
            true => &self.first,
            false => &self.second,
        };
        match self.settings.is_empty() {
            true => name.clone(),
            false => format!("{name} with {}", self.settings),
        }
    }

    /// What is compared, each with the field that names it.
    ///
    /// # Errors
    /// A field that names no function.
    pub fn subjects(&self) -> Result<[(&'static str, Subject); 2], JobError> {
        super::duet::subjects(&self.first, &self.second)
    }

    /// How it is replayed.
    ///
    /// # Errors
    /// A field that makes no sense.
    pub fn settings(&self, prefix: &str) -> Result<Settings, JobError> {
        let [(_, first), (_, second)] = self.subjects()?;
        Ok(Settings {
            first: first.into(),
            second: Variant {
                subject: second,
                changes: self.settings.clone(),
            },
            network: self.network.clone(),
            speed: self.speed,
            stage: self.stage,
            seed: self.seed,
            bootstrap: Bootstrap {
                confidence: self.confidence,
                seed: self.seed,
                ..Bootstrap::default()
            },
            prefix: prefix.to_owned(),
        })
    }

    /// Checks what can be checked without a server.
    ///
    /// # Errors
    /// The first field that makes no sense, the first line of a trace that is broken.
    pub(super) fn check(&self) -> Result<(), JobError> {
        let settings = self.settings("")?;
        let traced = self.trace.as_ref().map(|trace| self.traced(trace));
        let traffic = match traced.transpose()? {
            Some(traffic) => traffic,
            None => {
                self.window(Timestamp::now())?;
                Traffic::default()
            }
        };
        crate::replay::run::check(&settings, &traffic).map_err(|error| match error {
            ReplayError::Setting(field, rule) => JobError::Field(field, rule),
            other => JobError::Field("replay", other.to_string()),
        })
    }

    fn traced(&self, trace: &Trace) -> Result<Traffic, JobError> {
        let refuse = |rule| JobError::Field("trace", rule);
        let part = Part {
            function: trace.function.clone(),
            seconds: seconds(trace.from_s, trace.for_s).map_err(refuse)?,
            seed: self.seed,
        };
        azure::read(trace.text.as_bytes(), &part).map_err(|error| refuse(error.to_string()))
    }

    fn window(&self, now: Timestamp) -> Result<(Timestamp, Timestamp), JobError> {
        let to = self.to.unwrap_or(now);
        let before = to.checked_sub(Duration::from_secs(self.last_s)).ok();
        match self.from.or(before) {
            Some(from) if from < to => Ok((from, to)),
            _ => Err(JobError::Field(
                "from",
                "must be before the end of the window".to_owned(),
            )),
        }
    }

    /// What is replayed.
    ///
    /// # Errors
    /// A broken trace; a history that has too much or nothing, or does not answer.
    pub async fn traffic(&self, client: &Client) -> Result<Traffic, super::run::JobRunError> {
        if let Some(trace) = &self.trace {
            return Ok(self.traced(trace)?);
        }
        let [(_, first), _] = self.subjects()?;
        let (from, to) = self.window(Timestamp::now())?;
        Ok(recorded::read(client, &first.function, from, to).await?)
    }
}
