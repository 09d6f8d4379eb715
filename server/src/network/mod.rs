//! What functions reach over the network: their policies, told to the kernel; the names they ask for, resolved; what was
//! refused, shown. `server/docs/network.md` explains it.
//!
//! ```text
//! Node ──── Function ──── Version ──── Sandbox ──── sandbox::Outbound (the host process, the kernel)
//! servers,  what was      its policy   addresses that names resolved to,
//! refusals  seen                       its resolver
//! ```
//! - [`function`]: policies of functions and their versions. [`attached`]: one sandbox. [`permits`]: which name an address is
//!   of. [`kernel`]: a policy in the kernel's words.
//! - [`resolver`]: questions for names. [`broker`]: requests with secrets. [`ledger`]: what was seen.

mod attached;
mod broker;
mod function;
mod kernel;
mod ledger;
mod node;
mod permits;
pub mod resolver;

pub use attached::Attached;
pub use broker::{Broker, Trust};
pub use function::{FunctionNetwork, VersionNetwork, WayOut};
pub use ledger::{DestinationView, NetworkTotals, Outcome};
pub use node::Node;
