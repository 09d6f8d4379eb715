//! The scheduler: leases an idle instance, else starts one, else queues, else refuses.
//!
//! [`pool`] and [`policy`] decide, [`deployment`] and [`starting`] do; [`housekeeping`] and [`keeper`] let go of what is
//! not worth keeping. A warm lease is one lock and one pop on the caller's own task: no message is sent and nobody is
//! woken. `server/docs/ladder.md` tells what is decided how.

mod becoming;
mod boot;
mod decisions;
mod deployment;
mod environment;
mod gate;
mod housekeeping;
mod keeper;
mod lease;
pub mod policy;
pub mod pool;
mod snapshot;
mod standby;
mod starting;
mod traffic;

pub use boot::{BootFailure, Cause, TemplateStatus};
pub use deployment::{Deployment, Resources};
pub use gate::Gate;
pub use housekeeping::TICK;
pub use keeper::{Held, Keeper};
pub use lease::{Lease, LeaseError};
pub use traffic::Traffic;

/// Processors that this process may use.
#[must_use]
pub fn cores() -> u32 {
    std::thread::available_parallelism()
        .map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(u32::MAX))
}
