//! `/functions/{name}/code`: a new version, and the ones before it.

use askama::Template;

use crate::chrome::Chrome;
use crate::format;
use crate::pages::{DeployProblem, FieldErrors, FunctionHead, Moment, Tab};

/// The upload form, as typed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CodeUpload {
    /// `inline` or `file`.
    pub code_source: String,
    /// The editor's text.
    pub code: String,
}

impl CodeUpload {
    /// The fields that have a place for a message.
    pub const FIELDS: &'static [&'static str] = &["code"];
}

/// One version.
#[derive(Debug, Clone)]
pub struct VersionRow {
    /// Its number.
    pub version: u32,
    /// Whether it answers.
    pub active: bool,
    /// When it was made.
    pub created: Moment,
    /// SHA-256 of the code, hex.
    pub code_sha256: String,
    /// Bytes of the unpacked code.
    pub code_bytes: u64,
    /// `module.function`.
    pub handler: String,
    /// MiB.
    pub memory_mb: u32,
    /// Milliseconds.
    pub timeout_ms: u32,
}

impl VersionRow {
    fn short_hash(&self) -> &str {
        self.code_sha256.get(..12).unwrap_or(&self.code_sha256)
    }
    fn timeout(&self) -> String {
        format::duration_us(u64::from(self.timeout_ms) * 1000)
    }
    fn size(&self) -> String {
        format::bytes(self.code_bytes)
    }
}

/// `code.html`.
#[derive(Debug, Clone, Template)]
#[template(path = "code.html")]
pub struct CodePage {
    /// The frame.
    pub chrome: Chrome,
    /// The head.
    pub head: FunctionHead,
    /// The handler the code must hold.
    pub handler: String,
    /// The form.
    pub form: CodeUpload,
    /// Newest first.
    pub versions: Vec<VersionRow>,
    /// Messages at fields.
    pub errors: FieldErrors,
    /// What else went wrong.
    pub problem: Option<DeployProblem>,
}

impl CodePage {
    const TAB: Tab = Tab::Code;
}
