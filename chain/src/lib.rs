//! What a chain of functions shares.
#![deny(unsafe_code)]

pub mod accounts;
pub mod descriptor;
pub mod error;
pub mod free_list;
pub mod id;
pub mod ring;
pub mod sync;

pub use id::{Instance, Member, Owner};
