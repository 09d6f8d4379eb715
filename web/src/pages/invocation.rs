//! `/functions/{name}/invocations/{id}`: one invocation.

use askama::Template;

use crate::chrome::{Badge, Chrome};
use crate::format;
use crate::pages::{ErrorView, LogRow, Moment};
use crate::stage_bar::StageBar;

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
    /// The rung, when it got an instance.
    pub rung: Option<&'static str>,
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
}

impl InvocationDetails {
    fn request(&self) -> String {
        format::bytes(self.request_bytes)
    }
    fn response(&self) -> String {
        format::bytes(self.response_bytes)
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
}
