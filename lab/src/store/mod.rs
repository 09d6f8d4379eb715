//! An object store for storage transfers, which speaks as much of S3 as they need: PUT, GET, HEAD and DELETE of
//! `/{bucket}/{key}`, for whoever has its token.
//!
//! ```text
//! lab ──▶ store: a process in a network namespace of its own
//!           eth0 198.18.104.2 ═ hearth-lab0 198.18.104.1 ── the host ── gateway ── sandboxes
//! ```
//! In a namespace of its own, because functions reach none of the host's addresses, whatever their policy. It ends with the process,
//! and its interfaces and objects with it, also if both are killed.
//!
//! - [`process`]: the store as a process that a run starts, or one that is there already. [`attached`]: that process. [`link`]: its way out. [`access`]: what
//!   functions need to use it, or S3.
//! - [`serve`]: connections and requests. [`request`]: what a request asks for, and refusals.
//! - [`objects`]: what is stored. [`files`]: how many may be open.

pub mod access;
pub mod attached;
mod files;
mod link;
mod objects;
pub mod process;
mod request;
pub mod serve;

pub use access::Access;
pub use process::{Program, Running, Source, StoreError};
pub use serve::Store;

/// The only bucket.
pub const BUCKET: &str = "stellar";

/// The port of a store that a run starts.
const PORT: u16 = 9000;

/// Largest object, in bytes: the largest transfer of STeLLAR's paper.
pub const OBJECT_MAX: u64 = 1 << 30;
