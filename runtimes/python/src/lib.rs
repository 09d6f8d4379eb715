//! The native half of a Python worker, the module `hearth_runtime`: the template's control socket and forks
//! ([`template`]), an instance's end of the shared-memory channel ([`channel`]), and where objects lie in memory (`arena`). Installed beside `bootstrap.py` as
//! `hearth_runtime.abi3.so`; the Python half is the package `hearth_worker`. What is not Python's own is the crate
//! `hearth-worker`.
#![deny(unsafe_code)]

pub mod channel;
pub mod template;

#[allow(unsafe_code)]
mod arena;
#[allow(unsafe_code)]
mod sys;

use pyo3::prelude::*;

/// The module as Python sees it.
#[pymodule]
mod hearth_runtime {
    use pyo3::pyfunction;

    #[pymodule_export]
    use super::channel::{Channel, ChannelError};
    #[pymodule_export]
    use super::template::Template;

    /// Has objects of the interpreter lie where their memory can be large pages: those that are made from now on.
    #[pyfunction]
    fn lay_out_arenas() {
        super::arena::install();
    }
}
