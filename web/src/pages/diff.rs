//! What differs between two states of a function: its files line by line, its settings one by one.

use crate::format;
use crate::pages::fields::NUMBER_FIELDS;

/// Everything that differs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiffView {
    /// Files by path.
    pub files: Vec<FileDiff>,
    /// Files that differ and are not among `files`, because there are too many.
    pub files_left_out: u64,
    /// Settings that differ.
    pub settings: Vec<SettingRow>,
}

impl DiffView {
    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.settings.is_empty()
    }

    /// `2 files, 1 setting`.
    pub fn in_words(&self) -> String {
        let files = self.files.len() as u64 + self.files_left_out;
        let settings = self.settings.len() as u64;
        match (files, settings) {
            (0, 0) => "nothing".to_owned(),
            (files, 0) => format::plural(files, "file"),
            (0, settings) => format::plural(settings, "setting"),
            (files, settings) => format!(
                "{}, {}",
                format::plural(files, "file"),
                format::plural(settings, "setting")
            ),
        }
    }

    pub(super) fn left_out(&self) -> String {
        format::plural(self.files_left_out, "more file")
    }
}

/// A setting that differs; values of secrets are words about them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingRow {
    /// The API's name for it.
    pub name: String,
    /// What it was.
    pub before: String,
    /// What it is.
    pub after: String,
}

impl SettingRow {
    /// What the settings page calls it.
    pub(super) fn label(&self) -> &str {
        let number = NUMBER_FIELDS.iter().find(|field| field.name == self.name);
        match (self.name.as_str(), number) {
            (_, Some(field)) => field.label,
            ("handler", _) => "Handler",
            ("runtime", _) => "Runtime",
            ("keep_warm", _) => "Keep warm",
            ("body", _) => "Request bodies",
            ("start", _) => "Start",
            ("network", _) => "Network",
            ("public", _) => "Public",
            ("secrets", _) => "Secrets",
            ("env", _) => "Environment",
            (name, _) => name,
        }
    }
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileChange {
    /// It is new.
    Added,
    /// It is gone.
    Removed,
    /// Its content is another.
    Changed,
    /// It has another name, and perhaps another content.
    Renamed,
}

impl FileChange {
    /// The word for it.
    pub fn label(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Removed => "removed",
            Self::Changed => "changed",
            Self::Renamed => "renamed",
        }
    }

    pub(super) fn tone(self) -> &'static str {
        match self {
            Self::Added => "tone-good",
            Self::Removed => "tone-bad",
            Self::Changed | Self::Renamed => "tone-busy",
        }
    }
}

/// One file that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDiff {
    /// Where it is, or was.
    pub path: String,
    /// Where it was before it was renamed.
    pub renamed_from: Option<String>,
    /// What happened to it.
    pub change: FileChange,
    /// Lines that are new.
    pub added: u64,
    /// Lines that are gone.
    pub removed: u64,
    /// Stretches of lines around what differs; none of files that are no text.
    pub hunks: Vec<Hunk>,
    /// Why there are no lines, or not all of them.
    pub note: String,
}

impl FileDiff {
    pub(super) fn summary(&self) -> String {
        match (self.added, self.removed) {
            (0, 0) => String::new(),
            (added, 0) => format!("+{}", format::count(added)),
            (0, removed) => format!("−{}", format::count(removed)),
            (added, removed) => {
                format!("+{} −{}", format::count(added), format::count(removed))
            }
        }
    }
}

/// Lines that belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// `Lines 10 to 20`.
    pub place: String,
    /// The lines in order.
    pub lines: Vec<DiffLine>,
}

/// On which side a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// On both.
    Both,
    /// Only before.
    Before,
    /// Only after.
    After,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffLine {
    /// On which side it is.
    pub side: Side,
    /// Its number after, or before where it is only there.
    pub number: u64,
    /// Its text, without the line end.
    pub text: String,
}

impl DiffLine {
    pub(super) fn class(&self) -> &'static str {
        match self.side {
            Side::Both => "diff-same",
            Side::Before => "diff-gone",
            Side::After => "diff-new",
        }
    }

    pub(super) fn sign(&self) -> &'static str {
        match self.side {
            Side::Both => " ",
            Side::Before => "−",
            Side::After => "+",
        }
    }

    /// For who does not see the colour.
    pub(super) fn spoken(&self) -> &'static str {
        match self.side {
            Side::Both => "",
            Side::Before => "removed: ",
            Side::After => "added: ",
        }
    }
}
