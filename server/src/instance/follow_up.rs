//! What is done for an instance once it has started and its first request, if there is one, is on its way: the watch over it, and its
//! template's preparations for the next start.
//!
//! Done before, each would be a task beside the request's. For every task beside another, tokio wakes a thread: the request would wait
//! for that call and share the processors with the thread.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::template::Template;
use super::watch::Watch;
use super::{FunctionKey, Logs, Way};
use crate::host_error::HostError;
use crate::sandbox::InstanceCgroup;

/// When a start is over, how long before the next one is prepared: the first request goes first.
const AFTER_A_START: Duration = Duration::from_millis(3);

/// See the module.
#[must_use = "without it nobody hears of the instance's end"]
pub struct FollowUp {
    pub(super) template: Arc<Template>,
    pub(super) way: Way,
    /// Not begun.
    pub(super) watch: Watch,
    pub(super) instance_cgroup: Arc<InstanceCgroup>,
    /// Receives the error if the instance cannot be moved into its cgroup.
    pub(super) refused: oneshot::Receiver<HostError>,
    pub(super) function: FunctionKey,
    pub(super) sink: Logs,
}

impl FollowUp {
    /// Has all of it done by tasks of their own.
    pub fn begin(self) {
        tokio::spawn(self.run());
    }

    /// Does all of it, and returns when the next start is prepared. The watch goes on.
    pub async fn run(self) {
        tokio::spawn(self.watch.run(
            self.template.clone(),
            self.way,
            self.instance_cgroup,
            self.refused,
        ));
        if self.way == Way::Fork {
            self.template
                .prepare(&self.function, &self.sink, AFTER_A_START)
                .await;
        }
    }
}
