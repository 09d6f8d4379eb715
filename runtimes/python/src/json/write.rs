//! From objects to JSON text.

use std::io::Write;

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use super::NotPlain;

/// Deepest nesting that is written here. Python's own limit is several hundred, and it distinguishes cycles from depth.
const DEEPEST: usize = 100;

/// Bytes looked at together for one that a string must escape.
const STRIDE: usize = 32;

/// Appends what `json.dumps` writes of this value with `ensure_ascii=False`, `allow_nan=False` and the separators `,`
/// and `:`. `into` is as it was when that fails.
///
/// # Errors
/// The value is for `json.dumps` to write: not only None and bool, int, float, str, list, tuple and dict themselves are
/// in it; or it has keys that are no str, a lone surrogate, NaN, infinity, an integer beyond 64 bits, or is nested deeper
/// than 100.
pub fn write(value: &Bound<'_, PyAny>, into: &mut Vec<u8>) -> Result<(), NotPlain> {
    let before = into.len();
    write_value(value, into, DEEPEST).inspect_err(|_| into.truncate(before))
}

fn write_value(value: &Bound<'_, PyAny>, into: &mut Vec<u8>, depth: usize) -> Result<(), NotPlain> {
    // Exact types alone: a subclass may have methods of its own, which `json` would call.
    if let Ok(text) = value.cast_exact::<PyString>() {
        write_text(text, into)
    } else if let Ok(object) = value.cast_exact::<PyDict>() {
        let depth = depth.checked_sub(1).ok_or(NotPlain)?;
        write_object(object, into, depth)
    } else if let Ok(list) = value.cast_exact::<PyList>() {
        let depth = depth.checked_sub(1).ok_or(NotPlain)?;
        write_array(list.iter(), into, depth)
    } else if let Ok(number) = value.cast_exact::<PyInt>() {
        let number: i64 = number.extract().map_err(|_| NotPlain)?;
        // Writing to a vector does not fail.
        write!(into, "{number}").map_err(|_| NotPlain)
    } else if value.is_none() {
        into.extend_from_slice(b"null");
        Ok(())
    } else if let Ok(flag) = value.cast_exact::<PyBool>() {
        into.extend_from_slice(if flag.is_true() { b"true" } else { b"false" });
        Ok(())
    } else if let Ok(number) = value.cast_exact::<PyFloat>() {
        if !number.value().is_finite() {
            return Err(NotPlain);
        }
        // `json` writes it as Python does, `1e+16`.
        let text = number.repr().map_err(|_| NotPlain)?;
        into.extend_from_slice(text.to_str().map_err(|_| NotPlain)?.as_bytes());
        Ok(())
    } else if let Ok(list) = value.cast_exact::<PyTuple>() {
        let depth = depth.checked_sub(1).ok_or(NotPlain)?;
        write_array(list.iter(), into, depth)
    } else {
        Err(NotPlain)
    }
}

fn write_object(
    object: &Bound<'_, PyDict>,
    into: &mut Vec<u8>,
    depth: usize,
) -> Result<(), NotPlain> {
    into.push(b'{');
    let mut first = true;
    for (key, value) in object.iter() {
        if !std::mem::take(&mut first) {
            into.push(b',');
        }
        write_text(key.cast_exact::<PyString>().map_err(|_| NotPlain)?, into)?;
        into.push(b':');
        write_value(&value, into, depth)?;
    }
    into.push(b'}');
    Ok(())
}

fn write_array<'py>(
    items: impl Iterator<Item = Bound<'py, PyAny>>,
    into: &mut Vec<u8>,
    depth: usize,
) -> Result<(), NotPlain> {
    into.push(b'[');
    let mut first = true;
    for item in items {
        if !std::mem::take(&mut first) {
            into.push(b',');
        }
        write_value(&item, into, depth)?;
    }
    into.push(b']');
    Ok(())
}

fn write_text(text: &Bound<'_, PyString>, into: &mut Vec<u8>) -> Result<(), NotPlain> {
    // A lone surrogate has no UTF-8.
    let text = text.to_str().map_err(|_| NotPlain)?;
    into.reserve(text.len() + 2);
    into.push(b'"');
    for piece in text.as_bytes().chunks(STRIDE) {
        // Without an exit in the middle the compiler looks at the bytes side by side.
        if piece
            .iter()
            .fold(false, |any, &byte| any | is_escaped(byte))
        {
            piece.iter().for_each(|&byte| write_byte(byte, into));
        } else {
            into.extend_from_slice(piece);
        }
    }
    into.push(b'"');
    Ok(())
}

const fn is_escaped(byte: u8) -> bool {
    byte < b' ' || byte == b'"' || byte == b'\\'
}

fn write_byte(byte: u8, into: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let short = match byte {
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0c => b'f',
        0..b' ' => {
            into.extend_from_slice(b"\\u00");
            into.extend([
                DIGITS[usize::from(byte >> 4)],
                DIGITS[usize::from(byte & 15)],
            ]);
            return;
        }
        _ => return into.push(byte),
    };
    into.extend([b'\\', short]);
}
