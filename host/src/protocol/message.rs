//! The layout of all messages: a kind, one byte, and what that kind has, one field after the other; then zeroes, up to the one
//! size that there is. Every message has one encoding.

use hearth_init::fields::{FieldError, Fields};

/// Longest name in a message: that of an image, which holds a function's name, a version and 16 digits.
pub const NAME_MAX: usize = 127;

/// Bytes that are no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Messages have one size only.
    #[error("it has {0} bytes")]
    Size(usize),
    /// No message has such fields.
    #[error("{0}")]
    Fields(#[from] FieldError),
    /// Something is set behind its fields.
    #[error("it does not end with zeroes")]
    Rest,
    /// Another number of descriptors came with it.
    #[error("it has {0} descriptors")]
    Descriptors(usize),
}

/// Writes a message, for which `N` bytes must be enough.
pub(super) fn encode<const N: usize>(message: &impl Fields) -> [u8; N] {
    let fields = message.to_bytes();
    debug_assert!(fields.len() <= N, "{} bytes", fields.len());
    let length = fields.len().min(N);
    let mut bytes = [0; N];
    bytes[..length].copy_from_slice(&fields[..length]);
    bytes
}

/// Reads a message of `N` bytes.
pub(super) fn decode<const N: usize, T: Fields>(bytes: &[u8]) -> Result<T, Malformed> {
    if bytes.len() != N {
        return Err(Malformed::Size(bytes.len()));
    }
    let mut rest = bytes;
    let message = T::read(&mut rest)?;
    match rest.iter().all(|byte| *byte == 0) {
        true => Ok(message),
        false => Err(Malformed::Rest),
    }
}
