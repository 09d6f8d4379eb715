//! The outbound network of functions: translates policies for the kernel, resolves names, records what was refused.
//! `server/docs/network.md` explains the design.
//!
//! ```text
//! Node ──── Function ──── Version ──── Sandbox ──── sandbox::Outbound (the host process, the kernel)
//! servers,  what was      its policy   addresses that names resolved to,
//! refusals  observed                   its resolver
//! ```
//! - [`function`]: policies of functions and their versions. [`attached`]: one sandbox. [`permits`]: the names of addresses.
//!   [`kernel`]: a policy as the kernel gets it.
//! - [`resolver`]: DNS queries. [`ledger`]: what was observed.

mod attached;
mod function;
mod kernel;
mod ledger;
mod node;
mod permits;
pub mod resolver;

pub use attached::Attached;
pub use function::{FunctionNetwork, VersionNetwork, WayOut};
pub use ledger::{DestinationView, NetworkTotals, Outcome};
pub use node::Node;
