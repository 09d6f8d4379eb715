//! JSON between the ring and Python's objects, without the text as a `str` between them.
//!
//! Python's own module `json` decides what is right: what it would do otherwise than these two is left to it. That is
//! whatever is rare: subclasses, keys that are no strings, integers beyond 64 bits, deep nesting, and every error.

mod read;
mod write;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

pub use read::read;
pub use write::write;

/// The value is Python's own module's to read or to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotPlain;

/// The object that a JSON text stands for; ValueError when `json` must read it.
#[pyfunction]
pub fn read_json<'py>(py: Python<'py>, text: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    read(py, text).map_err(|NotPlain| PyValueError::new_err("not plain JSON"))
}

/// The JSON text of a value, as bytes; None when `json` must write it.
#[pyfunction]
pub fn write_json<'py>(value: &Bound<'py, PyAny>) -> Option<Bound<'py, PyBytes>> {
    let mut text = Vec::new();
    write(value, &mut text).ok()?;
    Some(PyBytes::new(value.py(), &text))
}
