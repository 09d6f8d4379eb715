//! The scheduler: leases an idle instance, else starts one, else queues, else refuses.
//!
//! [`pool`] and [`policy`] decide, [`deployment`] and [`starting`] do; [`housekeeping`] and [`evictor`] let go of what is
//! not worth keeping. A warm lease is one lock and one pop on the caller's own task: no message is sent and nobody is
//! woken. `server/docs/starts.md` tells what is decided how. [`simulation`] runs recorded calls through the same pool.

mod becoming;
mod boot;
mod boot_failure;
mod decisions;
mod deployment;
mod environment;
pub mod evictor;
mod gate;
mod held;
mod housekeeping;
mod image_key;
mod lease;
pub mod policy;
pub mod pool;
mod prewarmed;
mod resources;
pub mod simulation;
mod snapshot;
mod starting;
mod traffic;
mod versions;

pub use boot::TemplateStatus;
pub use boot_failure::{BootFailure, Cause};
pub use deployment::Deployment;
pub use evictor::MemoryStatus;
pub use gate::StartGate;
pub use housekeeping::{TICK, TURNS};
pub use lease::{Lease, LeaseError};
pub use resources::Resources;
pub use traffic::Traffic;
