//! `/functions/{name}/code`: the files of the active version, their editor, and the changes of a new version.

use askama::Template;

use crate::chrome::Chrome;
use crate::format;
use crate::pages::diff::DiffView;
use crate::pages::{Command, DeployProblem, FieldErrors, FunctionHead, Tab};

/// The form's fields that have a place for a message.
pub const CODE_FIELDS: &[&str] = &["code", "path"];

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEntry {
    /// Its own name.
    pub name: String,
    /// Its path in the code.
    pub path: String,
    /// Its size; none of a directory.
    pub bytes: Option<u64>,
    /// What is in the directory, where it is shown opened.
    pub inside: Option<FileList>,
    /// Whether the editor shows it.
    pub opened: bool,
}

impl FileEntry {
    fn size(&self) -> String {
        self.bytes.map(format::bytes).unwrap_or_default()
    }
}

/// `partials/code_files.html`: one directory.
#[derive(Debug, Clone, PartialEq, Eq, Template)]
#[template(path = "partials/code_files.html")]
pub struct FileList {
    /// Name of the function.
    pub function: String,
    /// The version the files are of.
    pub version: u32,
    /// Directories first, by name.
    pub entries: Vec<FileEntry>,
    /// Entries that are not listed, because there are too many.
    pub left_out: u64,
}

impl FileList {
    fn more(&self) -> String {
        format::plural(self.left_out, "more entry").replace("entrys", "entries")
    }
}

/// What the editor can do with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// Show and change it.
    Text,
    /// Keep it: it is no text.
    Binary,
    /// Keep it: it is too large to be edited here.
    Large,
}

impl FileKind {
    /// The word in the file's JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Binary => "binary",
            Self::Large => "large",
        }
    }
}

/// The file in the editor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenFile {
    /// Its path in the version; empty for a new file.
    pub opened: String,
    /// Its path as typed.
    pub path: String,
    /// What can be done with it.
    pub kind: FileKind,
    /// Its text, as typed.
    pub text: String,
    /// Its size.
    pub bytes: u64,
}

impl OpenFile {
    fn size(&self) -> String {
        format::bytes(self.bytes)
    }
    fn is_text(&self) -> bool {
        self.kind == FileKind::Text
    }
    fn why_not(&self) -> &'static str {
        match self.kind {
            FileKind::Text => "",
            FileKind::Binary => "This file is not text. It is kept as is.",
            FileKind::Large => "This file is too large to edit here. It is kept as is.",
        }
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
    /// The version whose files these are.
    pub version: u32,
    /// The root directory.
    pub files: FileList,
    /// The file in the editor.
    pub file: OpenFile,
    /// Whether a file is uploaded instead.
    pub upload: bool,
    /// Commands that do the same.
    pub commands: Vec<Command>,
    /// Messages at fields.
    pub errors: FieldErrors,
    /// What else went wrong.
    pub problem: Option<DeployProblem>,
}

impl CodePage {
    const TAB: Tab = Tab::Code;
}

/// `partials/code_review.html`: what a new version would change, and the button that deploys it.
#[derive(Debug, Clone, Template)]
#[template(path = "partials/code_review.html")]
pub struct CodeReviewPartial {
    /// What differs from the active version.
    pub diff: DiffView,
    /// The version it is compared with.
    pub version: u32,
}

/// `code_review.html`: the same on a page of its own, for browsers without scripts.
#[derive(Debug, Clone, Template)]
#[template(path = "code_review.html")]
pub struct CodeReviewPage {
    /// The frame.
    pub chrome: Chrome,
    /// The head.
    pub head: FunctionHead,
    /// What differs from the active version.
    pub diff: DiffView,
    /// The version it is compared with.
    pub version: u32,
    /// The edits as JSON, to be sent again.
    pub edits: String,
}

impl CodeReviewPage {
    const TAB: Tab = Tab::Code;
}
