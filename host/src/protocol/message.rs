//! The layout of all messages: a kind, one byte, and what that kind has, one field after the other; then zeroes, up to the one
//! size that all messages of its type have. Every message has one encoding.

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

/// What one process says to another.
pub trait Message: Fields {
    /// Size of every message of this type.
    const BYTES: usize;

    /// How many descriptors come with it.
    fn descriptors(&self) -> usize {
        0
    }

    /// As bytes. Names have [`NAME_MAX`] bytes at most.
    #[must_use]
    fn encode(&self) -> Vec<u8> {
        padded(self)
    }

    /// From bytes.
    ///
    /// # Errors
    /// [`Malformed`], for everything that [`Self::encode`] does not write.
    fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        if bytes.len() != Self::BYTES {
            return Err(Malformed::Size(bytes.len()));
        }
        let mut rest = bytes;
        let message = Self::read(&mut rest)?;
        match rest.iter().all(|byte| *byte == 0) {
            true => Ok(message),
            false => Err(Malformed::Rest),
        }
    }
}

/// A message, with the zeroes that it ends with.
pub(super) fn padded<T: Message>(message: &T) -> Vec<u8> {
    let mut bytes = message.to_bytes();
    debug_assert!(bytes.len() <= T::BYTES, "{} bytes", bytes.len());
    bytes.resize(T::BYTES, 0);
    bytes
}

/// Cuts a text that is too long for a message: nothing that matters is that long.
pub(crate) fn cut(text: &mut String, most: usize) {
    text.truncate(text.floor_char_boundary(most));
}
