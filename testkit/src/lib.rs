//! What the tests of several crates share. Nothing here is part of Hearth.
//!
//! [`worker`]: the server's side of a template and its instances, outside of any sandbox.

pub mod worker;
