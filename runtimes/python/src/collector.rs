//! Times Python's garbage collections.

use std::sync::atomic::{AtomicU64, Ordering};

use hearth_abi::counters::paused;
use hearth_abi::monotonic_ns;
use pyo3::prelude::*;
use pyo3::types::PyString;

/// When the collection that runs began; 0 while none does.
static BEGAN: AtomicU64 = AtomicU64::new(0);

/// Python calls this before ("start") and after ("stop") each collection, as an entry of `gc.callbacks`.
#[pyfunction]
pub fn collector_runs(phase: &Bound<'_, PyString>, _info: &Bound<'_, PyAny>) -> PyResult<()> {
    if phase.to_str()? == "start" {
        BEGAN.store(monotonic_ns(), Ordering::Relaxed);
        return Ok(());
    }
    let began = BEGAN.swap(0, Ordering::Relaxed);
    if began != 0 {
        paused(monotonic_ns().saturating_sub(began));
    }
    Ok(())
}
