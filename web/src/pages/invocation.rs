//! `/functions/{name}/invocations/{id}`: one invocation.

use askama::Template;

use crate::chrome::{Badge, Chrome};
use crate::pages::{ErrorView, ExplanationView, LogRow, Moment};
use crate::stage_bar::StageBar;
use crate::{format, json};

/// All that is known of an invocation.
#[derive(Debug, Clone)]
pub struct InvocationDetails {
    /// Its id.
    pub id: String,
    /// Name of the function.
    pub function: String,
    /// The version that ran.
    pub version: u32,
    /// `invoke`, `http` …
    pub trigger: &'static str,
    /// How it ended.
    pub status: Badge,
    /// The start kind, if it got an instance.
    pub start_kind: Option<&'static str>,
    /// When it was admitted.
    pub received: Moment,
    /// When it ended.
    pub finished: Option<Moment>,
    /// Where its time went.
    pub stages: StageBar,
    /// Bytes of the event.
    pub request_bytes: u64,
    /// Bytes of the result.
    pub response_bytes: u64,
    /// How often it was tried.
    pub attempts: u32,
    /// What went wrong.
    pub error: Option<ErrorView>,
    /// What it printed.
    pub logs: Vec<LogRow>,
    /// The event.
    pub event: PayloadView,
    /// The result.
    pub result: PayloadView,
    /// A shell command that fetches all of this.
    pub curl: String,
}

/// An event or a result, as far as it was kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PayloadView {
    /// Its text, laid out when it is whole.
    pub text: Option<String>,
    /// A note: that it was truncated, or why it is missing.
    pub note: String,
}

impl PayloadView {
    /// What is stored: all of it, its beginning, or only its size. `bytes` is the original size.
    pub fn kept(text: Option<&str>, truncated: bool, bytes: u64) -> Self {
        match text {
            Some(text) if truncated => Self {
                text: Some(text.to_owned()),
                note: format!("The beginning of {}.", format::bytes(bytes)),
            },
            Some(text) => Self {
                text: Some(json::pretty(text)),
                note: String::new(),
            },
            None => Self {
                text: None,
                note: format!("{} of binary data.", format::bytes(bytes)),
            },
        }
    }

    /// Why there is nothing.
    pub fn none(note: &str) -> Self {
        Self {
            text: None,
            note: note.to_owned(),
        }
    }
}

impl InvocationDetails {
    fn request(&self) -> String {
        format::bytes(self.request_bytes)
    }
    fn response(&self) -> String {
        format::bytes(self.response_bytes)
    }
    fn base(&self) -> String {
        super::invocations::base(&self.function)
    }
}

/// `invocation.html`.
#[derive(Debug, Clone, Template)]
#[template(path = "invocation.html")]
pub struct InvocationPage {
    /// The frame.
    pub chrome: Chrome,
    /// The invocation.
    pub invocation: InvocationDetails,
    /// Why it took as long as it did.
    pub explanation: ExplanationView,
}
