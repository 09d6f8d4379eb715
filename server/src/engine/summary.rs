//! Summaries of all functions for lists, without the parts of a view that are costly to copy.

use super::Engine;
use super::registry::Function;
use crate::model::{FunctionState, InstanceCounts, Runtime};
use crate::scheduler::TemplateStatus;
use crate::scheduler::pool::Counts;

/// Summary of a function.
#[derive(Debug, Clone)]
pub struct Summary {
    /// Row id, for the history.
    pub id: i64,
    /// Its name.
    pub name: String,
    /// Its language runtime.
    pub runtime: Runtime,
    /// The function that it is a copy of.
    pub copy_of: Option<String>,
    /// Whether it can answer.
    pub state: FunctionState,
    /// Why it cannot.
    pub state_reason: Option<String>,
    /// Live instances by state.
    pub instances: InstanceCounts,
    /// Requests waiting for an instance.
    pub queued: u32,
    /// Most instances at one time.
    pub max_concurrency: u32,
}

impl Engine {
    /// Summaries of all functions, by name.
    pub fn summaries(&self) -> Vec<Summary> {
        let functions = self.inner.registry.all();
        functions.iter().map(|function| summary(function)).collect()
    }
}

fn summary(function: &Function) -> Summary {
    let stored = function.stored();
    let deployment = function.active();
    let counts = deployment.counts();
    let (state, state_reason) = state(deployment.template_status());
    let spec = &stored.active.spec;
    Summary {
        id: function.id(),
        name: spec.name.clone(),
        runtime: spec.runtime,
        copy_of: spec.copy_of.as_ref().map(|copy| copy.function.clone()),
        state,
        state_reason,
        instances: instances(counts),
        queued: counts.queued,
        max_concurrency: spec.max_concurrency,
    }
}

/// What the API shows of a pool's counts.
pub(super) fn instances(counts: Counts) -> InstanceCounts {
    InstanceCounts {
        idle: counts.idle,
        busy: counts.busy,
        starting: counts.starting,
    }
}

/// What the API calls a template's state, and why it is a bad one.
pub(super) fn state(status: TemplateStatus) -> (FunctionState, Option<String>) {
    match status {
        TemplateStatus::Up => (FunctionState::Ready, None),
        TemplateStatus::Booting => (FunctionState::Starting, None),
        TemplateStatus::Failed(reason) => (FunctionState::Failed, Some(reason)),
        TemplateStatus::Asleep => (FunctionState::Asleep, None),
    }
}
