//! The outbound network of functions: translates policies for the kernel, resolves names, records what was refused.
//! `server/docs/network.md` explains the design.
//!
//! ```text
//! Node ──── Function ──── Version ──── Sandbox ──── sandbox::Outbound (the gateway, the kernel)
//! servers,  what was      its policy   addresses that names resolved to,
//! reports   seen                       its resolver
//! ```
//! - [`function`]: policies of functions and their versions. [`attached`]: one sandbox. [`permits`]: which name an address is
//!   of. [`kernel`]: a policy in the kernel's words.
//! - [`resolver`]: questions for names. [`broker`]: requests with secrets. [`ledger`]: what was seen: what was refused,
//!   [`reached`] and, for metrics, [`labels`].

mod attached;
pub mod broker;
mod function;
mod kernel;
mod labels;
mod ledger;
mod node;
mod permits;
mod reached;
pub mod resolver;

pub use attached::Attached;
pub use broker::{Broker, Trust};
pub use function::{FunctionNetwork, VersionNetwork, WayOut};
pub use labels::Labelled;
pub use ledger::{DestinationView, NetworkTotals, Outcome};
pub use node::Node;
pub use reached::ReachedView;
