//! Experiments of the lab.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// How far an experiment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExperimentState {
    /// It waits for an agent.
    Queued,
    /// An agent runs it.
    Running,
    /// It ran.
    Succeeded,
    /// It ran, and shows what should not be: a version that differs from itself.
    FellShort,
    /// It did not come to its end.
    Failed,
    /// It was cancelled.
    Cancelled,
}

impl ExperimentState {
    /// Whether it is over.
    pub fn is_over(self) -> bool {
        !matches!(self, Self::Queued | Self::Running)
    }
}

/// An experiment.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ExperimentView {
    /// Its number.
    pub id: i64,
    /// `stellar`, `tail`, `overhead`, `duet`, `replay` or `suite`.
    pub kind: String,
    /// What it answers.
    pub title: String,
    /// How far it is.
    pub state: ExperimentState,
    /// Whether it is to be cancelled.
    pub cancelling: bool,
    /// Why it did not come to its end.
    pub error: Option<String>,
    /// What is being done, how much of it, and what was measured so far; null unless it runs.
    #[schema(value_type = Option<Object>)]
    pub progress: Option<Value>,
    /// What came of it, in short; null before its end.
    #[schema(value_type = Option<Object>)]
    pub result: Option<Value>,
    /// Who created it.
    pub created_by: String,
    /// When.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// When an agent took it.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub ended_at: Option<Timestamp>,
}

/// A file of an experiment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ExperimentFile {
    /// Its path: `GET /api/v1/experiments/{id}/files/{path}`.
    pub path: String,
    /// Its size.
    pub bytes: u64,
}

/// An experiment with its configuration and files.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ExperimentDetail {
    /// The experiment.
    #[serde(flatten)]
    pub view: ExperimentView,
    /// The configuration as it was sent.
    #[schema(value_type = Object)]
    pub config: Value,
    /// Its files.
    pub files: Vec<ExperimentFile>,
}

/// What an agent gets to run.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct AssignedExperiment {
    /// Its number.
    pub id: i64,
    /// The configuration.
    #[schema(value_type = Object)]
    pub config: Value,
    /// Begins the names of all functions that the agent deploys for it. What is left of them when the agent is gone is removed.
    pub prefix: String,
}

/// How an experiment ended.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExperimentEnd {
    /// One that is over.
    pub state: ExperimentState,
    /// Why it did not come to its end.
    #[serde(default)]
    pub error: Option<String>,
    /// What came of it, in short.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub result: Option<Value>,
}
