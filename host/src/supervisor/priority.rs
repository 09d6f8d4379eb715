//! The priority of the server's threads, which the server, having no privilege, can lower but not raise.

use hearth_abi::time_slice::SLICE;

use super::Supervisor;
use super::instances::number;
use crate::cgroup::belongs;
use crate::scheduling::{Scheduling, schedule};

/// How far the raised priority lies above the ordinary one where there is no real-time scheduling, in steps of niceness:
/// nine times its weight where others compute, which leaves those a tenth of a core that the server would take whole.
const STEPS: i32 = 10;
/// The highest priority that there is.
const LEAST_NICE: i32 = -20;

impl Supervisor {
    /// Gives a thread the raised priority, or that of this process. The server names the thread: only those of its own user
    /// are touched. The kernel leaves other threads at least a twentieth of each second (`sched_rt_runtime_us`), and the
    /// server's own policy far more.
    pub(super) fn prioritize(&mut self, thread: u32, raised: bool) {
        let Some(server) = self.host.settings.server else {
            return;
        };
        let Some(thread) = number(thread).filter(|thread| belongs(*thread, server.uid)) else {
            return;
        };
        let Ok(ordinary) = rustix::process::getpriority_process(None) else {
            return;
        };
        self.want_boosts(raised);
        // Without the capability, as in some containers, or when the thread has ended, it stays as it is.
        if !raised {
            let _ = schedule(thread, Scheduling::Fair(ordinary, SLICE));
        } else if schedule(thread, Scheduling::RealTime).is_err() {
            let niceness = (ordinary - STEPS).max(LEAST_NICE);
            let _ = schedule(thread, Scheduling::Fair(niceness, SLICE));
        }
    }
}
