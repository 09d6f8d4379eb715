//! The scheduler: leases an idle instance, else starts one, else queues, else refuses.
//!
//! [`pool`] decides, [`deployment`] does. A warm lease is one lock and one pop on the caller's own task: no message is
//! sent and nobody is woken.

mod boot;
mod deployment;
mod lease;
pub mod pool;
mod snapshot;

pub use boot::{BootFailure, TemplateStatus};
pub use deployment::{Deployment, Resources};
pub use lease::{Lease, LeaseError};
