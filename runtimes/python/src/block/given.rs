//! What a handler gives back for a payload.

use std::slice;

use hearth_worker::chain::{Area, Content};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyInt;

/// See the module.
pub(crate) enum Given {
    /// So many bytes that are in the block.
    InPlace(usize),
    /// Another object's bytes.
    Buffer(PyBuffer<u8>),
    /// A copy of bytes that lie elsewhere in the block.
    Copy(Vec<u8>),
}

impl Given {
    /// Reads an argument: None is `present` bytes of the block, a number that many, and a buffer itself.
    pub(crate) fn read(
        argument: &Bound<'_, PyAny>,
        present: usize,
        block: Option<Area>,
    ) -> PyResult<Self> {
        if argument.is_none() {
            return Ok(Self::InPlace(present));
        }
        if argument.is_exact_instance_of::<PyInt>() {
            let wrong = |_| PyValueError::new_err("a length must not be negative");
            return argument.extract().map(Self::InPlace).map_err(wrong);
        }
        let buffer = PyBuffer::<u8>::get(argument).map_err(|_| {
            let kind = argument.get_type();
            let message = format!("a payload in place is None, a length, or bytes; this is {kind}");
            PyTypeError::new_err(message)
        })?;
        if !buffer.is_c_contiguous() {
            return Err(PyTypeError::new_err("a payload's bytes must be contiguous"));
        }
        let Some(block) = block else {
            return Ok(Self::Buffer(buffer));
        };
        let (begin, len) = (buffer.buf_ptr().addr(), buffer.len_bytes());
        let all = block.at.addr()..block.at.addr() + block.capacity;
        match all.contains(&begin) {
            true if begin == all.start => Ok(Self::InPlace(len)),
            true => Ok(Self::Copy(bytes(&buffer).to_vec())),
            false => Ok(Self::Buffer(buffer)),
        }
    }

    /// For the worker's library.
    pub(crate) fn content(&self) -> Content<'_> {
        match self {
            Self::InPlace(len) => Content::InPlace(*len),
            Self::Buffer(buffer) => Content::Bytes(bytes(buffer)),
            Self::Copy(bytes) => Content::Bytes(bytes),
        }
    }
}

/// A buffer's bytes. Another thread of the function's may change them meanwhile: then they are read in part before that, and in
/// part after it.
fn bytes(buffer: &PyBuffer<u8>) -> &[u8] {
    if buffer.len_bytes() == 0 {
        return &[];
    }
    // SAFETY: the buffer is contiguous (checked by `read`) and stays where it is as long as `buffer`.
    unsafe { slice::from_raw_parts(buffer.buf_ptr().cast(), buffer.len_bytes()) }
}
