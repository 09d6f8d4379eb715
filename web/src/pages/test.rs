//! The test panel of `/functions/{name}`: the event or request to send.

use askama::Template;

use crate::samples::{SAMPLES, Sample};

/// A saved event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SavedEventRow {
    /// Its number.
    pub id: i64,
    /// What it is called.
    pub name: String,
}

impl SavedEventRow {
    fn key(&self) -> String {
        format!("saved-{}", self.id)
    }
}

/// `partials/event_picker.html`: events to choose from, and a name to save the present one under.
#[derive(Debug, Clone, Default, PartialEq, Eq, Template)]
#[template(path = "partials/event_picker.html")]
pub struct EventPicker {
    /// Name of the function.
    pub function: String,
    /// Oldest first.
    pub saved: Vec<SavedEventRow>,
    /// Key of the event in the editor, `saved-7`, `sample-http`; empty when it is none of these.
    pub picked: String,
    /// The name as typed.
    pub name: String,
    /// Whether events may be saved and deleted.
    pub can_write: bool,
    /// Notice of the last action.
    pub said: String,
    /// Why nothing was done.
    pub error: String,
}

impl EventPicker {
    fn samples(&self) -> [Sample; 4] {
        SAMPLES
    }

    fn has_picked(&self, key: &str) -> bool {
        self.picked == key
    }

    fn has_picked_sample(&self, sample: &Sample) -> bool {
        self.picked.strip_prefix("sample-") == Some(sample.key)
    }

    fn picked_saved(&self) -> bool {
        self.picked.starts_with("saved-")
    }
}

/// A call of the function's URL, as typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpForm {
    /// One of [`METHODS`].
    pub method: String,
    /// After `/fn/{name}`, with its slash.
    pub path: String,
    /// Without the question mark.
    pub query: String,
    /// `Name: value`, one a line.
    pub headers: String,
    /// As it is sent.
    pub body: String,
}

/// The methods that are offered.
pub const METHODS: [&str; 7] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];

impl Default for HttpForm {
    fn default() -> Self {
        Self {
            method: "GET".into(),
            path: "/".into(),
            query: String::new(),
            headers: String::new(),
            body: String::new(),
        }
    }
}

impl HttpForm {
    pub(super) fn has_method(&self, method: &str) -> bool {
        self.method == method
    }
}

/// `text` as one word of a POSIX shell.
pub fn shell_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoting_leaves_no_way_out() {
        assert_eq!(shell_quoted("{\"a\": 1}"), "'{\"a\": 1}'");
        assert_eq!(shell_quoted("it's; $(x)"), "'it'\\''s; $(x)'");
    }
}
