//! The configuration of a suite: trees that the agent has.

use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::spec::JobError;
use crate::duet::run::WIDTH;
use crate::statistics::Bootstrap;
use crate::suite::{Method, Settings, SuiteError, Tool};

/// A suite's settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    kind: String,
    /// What the benchmarks are written for.
    pub tool: Tool,
    /// The first version's directory, below the agent's trees.
    pub first: String,
    /// The second version's; empty for the first (A/A).
    #[serde(default)]
    pub second: String,
    /// Packages, directories or files; all without any.
    #[serde(default)]
    pub paths: Vec<String>,
    /// Only benchmarks with this text in their name.
    #[serde(default)]
    pub only: Option<String>,
    /// Calls of each benchmark.
    #[serde(default = "calls")]
    pub calls: usize,
    /// Repeats of each call.
    #[serde(default = "repeats")]
    pub repeats: usize,
    /// Whether the first version runs twice in each repeat.
    #[serde(default = "control")]
    pub control: bool,
    /// Calls at a time; half of the server's processors without it.
    #[serde(default)]
    pub parallel: Option<usize>,
    /// Seconds that the tool measures for.
    #[serde(default = "time_s")]
    pub time_s: f64,
    /// Seconds after which an execution is interrupted.
    #[serde(default = "limit_s")]
    pub limit_s: f64,
    /// Memory of an instance in MB.
    #[serde(default = "memory_mb")]
    pub memory_mb: u32,
    /// Whether Go's packages that need a C compiler are compiled, with the agent's.
    #[serde(default)]
    pub cgo: bool,
    /// Confidence of the intervals.
    #[serde(default = "confidence")]
    pub confidence: f64,
    /// The fewest trials are told after which an interval was no wider than this share.
    #[serde(default = "width")]
    pub width: f64,
    /// Seed of the order and the bootstrap.
    #[serde(default = "seed")]
    pub seed: u64,
}

fn calls() -> usize {
    15
}

fn repeats() -> usize {
    3
}

fn control() -> bool {
    true
}

fn time_s() -> f64 {
    1.0
}

fn limit_s() -> f64 {
    20.0
}

fn memory_mb() -> u32 {
    2048
}

fn width() -> f64 {
    WIDTH
}

fn confidence() -> f64 {
    0.99
}

fn seed() -> u64 {
    1
}

impl Suite {
    pub(super) fn is_aa(&self) -> bool {
        self.second.is_empty() || self.second == self.first
    }

    /// Whether it can be carried out by an agent that has the trees.
    ///
    /// # Errors
    /// A field that makes no sense.
    pub fn check(&self) -> Result<(), JobError> {
        let settings = self.settings(Path::new("/"), "")?;
        settings.check().map_err(|error| match error {
            SuiteError::Duet(error) => JobError::Duet(error),
            SuiteError::Setting(field, rule) => JobError::Field(field, rule),
            error => JobError::Field("suite", error.to_string()),
        })
    }

    /// How it is run with trees in a directory of the agent's.
    ///
    /// # Errors
    /// A tree that is not below it.
    pub fn settings(&self, trees: &Path, prefix: &str) -> Result<Settings, JobError> {
        let second = match self.is_aa() {
            true => None,
            false => Some(below(trees, "second", &self.second)?),
        };
        Ok(Settings {
            tool: self.tool,
            first: below(trees, "first", &self.first)?,
            second,
            paths: self.paths.clone(),
            only: self.only.clone(),
            method: Method {
                calls: self.calls,
                repeats: self.repeats,
                with_control: self.control,
                seed: self.seed,
                bootstrap: Bootstrap {
                    confidence: self.confidence,
                    seed: self.seed,
                    ..Bootstrap::default()
                },
                width: self.width,
            },
            parallel: self.parallel,
            limit: Duration::try_from_secs_f64(self.limit_s).unwrap_or_default(),
            time_s: self.time_s,
            memory_mb: self.memory_mb,
            cgo: self.cgo,
            program: None,
            function: format!("{prefix}-suite"),
        })
    }
}

/// A directory below another one, by a name that cannot lead elsewhere.
fn below(trees: &Path, field: &'static str, name: &str) -> Result<PathBuf, JobError> {
    let path = Path::new(name);
    let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_));
    if name.is_empty() || !path.components().all(is_plain) {
        let rule = "a directory below the agent's trees, such as before".to_owned();
        return Err(JobError::Field(field, rule));
    }
    Ok(trees.join(path))
}
