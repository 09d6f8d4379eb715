//! Errors of a function, in AWS Lambda's shape.

use std::any::type_name;
use std::fmt::{self, Display};

use serde::Serialize;

/// Longest message, in bytes: an error is stored with its invocation.
const MESSAGE_BYTES: usize = 16 * 1024;
/// Longest type, in bytes.
const TYPE_BYTES: usize = 256;

/// Why an invocation failed. `?` makes one of whatever implements [`std::error::Error`]: its type's name and what it says. What does
/// not, such as `Box<dyn Error>`, needs [`Self::new`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Error {
    error_type: String,
    error_message: String,
    stack_trace: Vec<String>,
}

impl Error {
    /// An error of this type that says this.
    #[must_use]
    pub fn new(error_type: &str, message: impl Display) -> Self {
        Self {
            error_type: clipped(error_type.to_owned(), TYPE_BYTES),
            error_message: clipped(message.to_string(), MESSAGE_BYTES),
            stack_trace: Vec::new(),
        }
    }

    /// The same, with the place where it happened.
    pub(crate) fn at(mut self, place: Option<String>) -> Self {
        self.stack_trace.extend(place);
        self
    }

    /// The text that travels.
    pub(crate) fn to_json(&self) -> Vec<u8> {
        // Strings have no reason to fail.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

impl<E: std::error::Error> From<E> for Error {
    fn from(error: E) -> Self {
        Self::new(short_name(type_name::<E>()), error)
    }
}

impl Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.error_type, self.error_message)
    }
}

/// `ParseIntError` of `core::num::error::ParseIntError`; parameters are left out.
fn short_name(name: &str) -> &str {
    let name = name.split('<').next().unwrap_or_default();
    name.rsplit("::").next().unwrap_or(name)
}

fn clipped(mut text: String, limit: usize) -> String {
    if text.len() > limit {
        text.truncate(text.floor_char_boundary(limit));
        text.push_str(" … (cut)");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_the_name_of_its_type() {
        let error: Error = "x".parse::<u8>().expect_err("no number").into();
        let text = String::from_utf8(error.to_json()).expect("text");
        assert_eq!(
            text,
            r#"{"errorType":"ParseIntError","errorMessage":"invalid digit found in string","stackTrace":[]}"#
        );
        assert_eq!(short_name("a::B<c::D>"), "B");
        let long = Error::new("T", "ä".repeat(MESSAGE_BYTES));
        assert!(long.error_message.len() < MESSAGE_BYTES + 20);
    }
}
