//! `/api/v1/chains`: one file per verb and resource.
//!
//! A token that is limited to some functions reaches no chain: a chain has several.

pub mod activate;
pub mod create;
pub mod delete;
mod docs;
pub mod get;
pub mod ingress;
pub mod invoke;
pub mod list;
pub mod patch;
pub mod put;
pub mod receipt;
pub mod versions;
pub mod workloads;

pub use invoke::{has_route, no_chain};
