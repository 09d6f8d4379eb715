//! The worker's errors as exceptions.

use hearth_worker::chain::CallError;
use hearth_worker::channel::ChannelError as Broken;
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(
    hearth_runtime,
    ChannelError,
    PyException,
    "The channel to the server broke: the instance is lost."
);

create_exception!(
    hearth_runtime,
    ChainError,
    PyException,
    "Another member of the chain could not be reached, or failed: `error_type`, the message, the member's own error as JSON text."
);

pub(super) fn call_failed(error: &CallError) -> PyErr {
    let cause = error
        .cause()
        .map(|text| String::from_utf8_lossy(text).into_owned());
    ChainError::new_err((error.error_type(), error.to_string(), cause))
}

pub(super) fn broken(error: Broken) -> PyErr {
    ChannelError::new_err(error.to_string())
}
