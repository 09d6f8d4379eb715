//! The priority of the server's threads, which the server, having no privilege, can lower but not raise.

use super::Supervisor;
use super::instances::number;
use crate::cgroup::belongs;

/// How far the raised priority lies above the ordinary one, in steps of niceness: nine times its weight where others
/// compute, which leaves those a tenth of a core that the server would take whole.
const STEPS: i32 = 10;
/// The highest priority that there is.
const LEAST_NICE: i32 = -20;

impl Supervisor {
    /// Gives a thread the raised priority, or that of this process. The server names the thread: only those of its own user
    /// are touched.
    pub(super) fn prioritize(&self, thread: u32, raised: bool) {
        let Some(server) = self.host.settings.server else {
            return;
        };
        let Some(thread) = number(thread).filter(|thread| belongs(*thread, server.uid)) else {
            return;
        };
        let Ok(ordinary) = rustix::process::getpriority_process(None) else {
            return;
        };
        let niceness = match raised {
            true => (ordinary - STEPS).max(LEAST_NICE),
            false => ordinary,
        };
        // Without the capability, as in some containers, or when the thread has ended, it stays as it is.
        let _ = rustix::process::setpriority_process(Some(thread), niceness);
    }
}
