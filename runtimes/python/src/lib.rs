//! The native half of a Python worker, the module `hearth_runtime`: the template's control socket and forks
//! ([`template`]), an instance's end of the shared-memory channel ([`channel`]), and the payloads ([`json`], or in place). Installed beside `bootstrap.py` as
//! `hearth_runtime.abi3.so`; the Python half is the package `hearth_worker`. What is not Python's own is the crate
//! `hearth-worker`.
#![deny(unsafe_code)]

#[allow(unsafe_code)]
mod block;
pub mod channel;
mod collector;
pub mod json;
pub mod template;

#[allow(unsafe_code)]
mod sys;

use pyo3::prelude::*;

/// The module as Python sees it.
#[pymodule]
mod hearth_runtime {
    #[pymodule_export]
    use super::block::Block;
    #[pymodule_export]
    use super::channel::{ChainError, Channel, ChannelError};
    #[pymodule_export]
    use super::collector::collector_runs;
    #[pymodule_export]
    use super::json::{read_json, write_json};
    #[pymodule_export]
    use super::template::{Template, compact_memory, threads_left};
}
