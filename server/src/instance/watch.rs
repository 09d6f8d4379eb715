//! Watches one instance and reports how its process ended.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::template::{EXIT_NEWS_DEADLINE, Template};
use super::{Death, Vitals, Way};
use crate::host_error::HostError;
use crate::sandbox::InstanceCgroup;
use crate::watched::Watched;

/// The watch over one instance's process.
pub(super) struct Watch {
    /// Kept open: the worker would take its closing for the server's end.
    pub socket: Arc<Watched>,
    /// The process.
    pub end: Watched,
    pub vitals: Arc<Vitals>,
    /// What its template knows it as.
    pub inner_pid: u32,
}

impl Watch {
    /// Until it ends. `refused` receives the error if it cannot be moved into its cgroup.
    pub(super) async fn run(
        self,
        template: Arc<Template>,
        way: Way,
        instance_cgroup: Arc<InstanceCgroup>,
        refused: oneshot::Receiver<HostError>,
    ) {
        // The template reports how a fork ended; PID 1 reports how the template ended.
        let reported = (way == Way::Fork).then(|| template.exit_of(self.inner_pid));
        let status = async {
            match reported {
                Some(reported) => reported.await.ok(),
                None => template.end_of_itself().await,
            }
        };
        let unlimited = tokio::select! {
            // An error means the end of the tokio runtime.
            _ = self.end.readable() => None,
            Ok(error) = refused => Some(error),
        };
        if let Some(error) = unlimited {
            tracing::error!(pid = self.vitals.pid, %error, "an instance was ended");
            self.vitals.record(Death::Unlimited(error));
            instance_cgroup.kill();
            return;
        }
        let status = tokio::time::timeout(EXIT_NEWS_DEADLINE, status).await;
        let ran_out = instance_cgroup.oom_killed()
            || match way {
                Way::Become => template.ran_out_of_memory(),
                Way::Fork => {
                    let killed = matches!(status, Ok(Some(status)) if status.is_kill());
                    killed && template.take_oom_kill()
                }
            };
        let death = if ran_out {
            Death::OutOfMemory
        } else {
            Death::Crashed(match status {
                Ok(Some(status)) => status.to_string(),
                _ => "it exited without a status report".into(),
            })
        };
        self.vitals.record(death);
        // Whatever it left in its cgroup goes with it.
        instance_cgroup.kill();
        drop(self.socket);
    }
}
