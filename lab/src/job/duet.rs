//! The configuration of a duet.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::spec::JobError;
use crate::duet::events::{EVENTS_MAX, Event, distinguish};
use crate::duet::report::Stage;
use crate::duet::run::WIDTH;
use crate::duet::{self, Subject};
use crate::statistics::Bootstrap;

/// Most recorded events that are replayed.
const RECORDED_MAX: usize = EVENTS_MAX;

/// Largest threshold: ten times as slow again.
pub const THRESHOLD_MAX: f64 = 10.0;

/// A duet's settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Duet {
    kind: String,
    /// The first version: `hello`, `hello@2`.
    pub first: String,
    /// The second version; empty for the first (A/A).
    pub second: String,
    /// Events, each a benchmark; `{}` without any.
    pub events: Vec<Value>,
    /// Their names, in the same order; numbers for those without one.
    pub names: Vec<String>,
    /// Names of the first version's function's saved events, beside them.
    pub saved: Vec<String>,
    /// So many of the newest recorded events beside them.
    pub recorded: usize,
    /// Calls of each benchmark.
    pub calls: usize,
    /// Repeats of each call.
    pub repeats: usize,
    /// Invocations of each execution.
    pub invocations: usize,
    /// What is measured of each.
    pub stage: Stage,
    /// Whether the first version runs twice in each repeat.
    pub control: bool,
    /// Confidence of the intervals.
    pub confidence: f64,
    /// The fewest trials are told after which an interval was no wider than this share.
    pub width: f64,
    /// Share by which the second version may be slower: with it, the duet tells whether the second may replace the first.
    pub threshold: Option<f64>,
    /// Seed of the order and the bootstrap.
    pub seed: u64,
}

impl Default for Duet {
    fn default() -> Self {
        Self {
            kind: "duet".to_owned(),
            first: String::new(),
            second: String::new(),
            events: Vec::new(),
            names: Vec::new(),
            saved: Vec::new(),
            recorded: 0,
            calls: 15,
            repeats: 3,
            invocations: 10,
            stage: Stage::Run,
            control: true,
            confidence: 0.99,
            width: WIDTH,
            threshold: None,
            seed: 1,
        }
    }
}

impl Duet {
    pub(super) fn is_aa(&self) -> bool {
        self.second.is_empty() || self.second == self.first
    }

    /// What is compared, each with the field that names it: the same twice in an A/A experiment.
    ///
    /// # Errors
    /// A field that names no function.
    pub fn subjects(&self) -> Result<[(&'static str, Subject); 2], JobError> {
        subjects(&self.first, &self.second)
    }

    /// How it is run, with saved and recorded events beside its own.
    ///
    /// # Errors
    /// A field that makes no sense.
    pub fn settings(&self, found: Vec<Event>) -> Result<duet::Settings, JobError> {
        let [(_, first), (_, second)] = self.subjects()?;
        if self.recorded > RECORDED_MAX {
            return Err(JobError::Field(
                "recorded",
                format!("at most {RECORDED_MAX}"),
            ));
        }
        if self.events.len() + self.saved.len() > EVENTS_MAX {
            let rule = format!("with events at most {EVENTS_MAX}");
            return Err(JobError::Field("saved", rule));
        }
        for (number, name) in self.saved.iter().enumerate() {
            // Results are found by their names.
            if name.is_empty() || self.saved[..number].contains(name) {
                let rule = format!("{name:?}: names of saved events, each once");
                return Err(JobError::Field("saved", rule));
            }
        }
        if self.names.len() > self.events.len() {
            let rule = "not more than events".to_owned();
            return Err(JobError::Field("names", rule));
        }
        if let Some(threshold) = self.threshold {
            if !(0.0..=THRESHOLD_MAX).contains(&threshold) {
                let rule = format!("0 to {THRESHOLD_MAX}, such as 0.05");
                return Err(JobError::Field("threshold", rule));
            }
            if self.is_aa() || !self.control {
                let rule = "needs a second version and a control".to_owned();
                return Err(JobError::Field("threshold", rule));
            }
        }
        let given = self.events.iter().enumerate().map(|(index, event)| Event {
            name: match self.names.get(index) {
                Some(name) => name.clone(),
                None => format!("event {}", index + 1),
            },
            text: event.to_string(),
        });
        let mut events: Vec<Event> = given.chain(found).collect();
        if events.is_empty() {
            events.push(Event::empty());
        }
        distinguish(&mut events);
        let settings = duet::Settings {
            first,
            second,
            events,
            calls: self.calls,
            repeats: self.repeats,
            invocations: self.invocations,
            stage: self.stage,
            with_control: self.control && !self.is_aa(),
            seed: self.seed,
            bootstrap: Bootstrap {
                confidence: self.confidence,
                seed: self.seed,
                ..Bootstrap::default()
            },
            width: self.width,
        };
        settings.check()?;
        Ok(settings)
    }
}

/// Two subjects, each with the field that names it: the first twice where the second is empty or the same.
pub(super) fn subjects(
    first: &str,
    second: &str,
) -> Result<[(&'static str, Subject); 2], JobError> {
    let subject = |field, text: &str| {
        let parsed: Result<Subject, String> = text.parse();
        let parsed = parsed.map_err(|rule| JobError::Field(field, rule))?;
        Ok::<_, JobError>((field, parsed))
    };
    let one = subject("first", first)?;
    let other = match second.is_empty() || second == first {
        true => one.clone(),
        false => subject("second", second)?,
    };
    Ok([one, other])
}
