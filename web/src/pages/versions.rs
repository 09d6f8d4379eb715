//! `/functions/{name}/versions`: all versions, their changes, and rolling back.

use askama::Template;

use crate::chrome::{Badge, Chrome};
use crate::format;
use crate::pages::diff::{DiffView, SettingRow};
use crate::pages::{Command, DeployProblem, FunctionHead, Moment, StartRow, Tab};

/// One version.
#[derive(Debug, Clone)]
pub struct VersionRow {
    /// Its number.
    pub version: u32,
    /// Whether it is the active version.
    pub active: bool,
    /// When it was made.
    pub created: Moment,
    /// Who made it, where that is known.
    pub author: Option<String>,
    /// SHA-256 of the code, hex.
    pub code_sha256: String,
    /// Bytes of the unpacked code.
    pub code_bytes: u64,
    /// Number of the version before it; none of the first.
    pub before: Option<u32>,
    /// Whether the code is another one than the version before it had.
    pub code: bool,
    /// Settings that are others.
    pub settings: Vec<SettingRow>,
    /// What its author should know of it.
    pub notes: Vec<String>,
    /// What the function's gate said of it.
    pub gate: Option<GateRow>,
    /// How its instances start.
    pub starts: StartRow,
}

/// What a gate said of a version.
#[derive(Debug, Clone)]
pub struct GateRow {
    /// Whether it passed.
    pub badge: Badge,
    /// The version that it was compared with.
    pub against: u32,
    /// The experiment that compared them.
    pub experiment: i64,
    /// The figures, or why there are none; may be empty.
    pub reason: String,
}

impl VersionRow {
    fn short_hash(&self) -> &str {
        self.code_sha256.get(..12).unwrap_or(&self.code_sha256)
    }
    fn size(&self) -> String {
        format::bytes(self.code_bytes)
    }
}

/// `versions.html`.
#[derive(Debug, Clone, Template)]
#[template(path = "versions.html")]
pub struct VersionsPage {
    /// The frame.
    pub chrome: Chrome,
    /// The head.
    pub head: FunctionHead,
    /// Newest first.
    pub versions: Vec<VersionRow>,
    /// Commands that do the same.
    pub commands: Vec<Command>,
}

impl VersionsPage {
    const TAB: Tab = Tab::Versions;

    /// What a click on a version's button does: older ones are gone back to.
    fn verb(&self, version: &u32) -> &'static str {
        if *version < self.head.version {
            "Roll back"
        } else {
            "Activate"
        }
    }

    /// The two newest are compared unless others are chosen.
    fn newest(&self) -> u32 {
        self.versions.first().map_or(1, |row| row.version)
    }

    fn second(&self) -> u32 {
        self.versions
            .get(1)
            .map_or(self.newest(), |row| row.version)
    }
}

/// `version_diff.html`: two versions side by side.
#[derive(Debug, Clone, Template)]
#[template(path = "version_diff.html")]
pub struct VersionDiffPage {
    /// The frame.
    pub chrome: Chrome,
    /// The head.
    pub head: FunctionHead,
    /// The one before.
    pub before: u32,
    /// The one after.
    pub after: u32,
    /// All numbers there are, newest first.
    pub numbers: Vec<u32>,
    /// What differs.
    pub diff: DiffView,
}

impl VersionDiffPage {
    const TAB: Tab = Tab::Versions;
}

/// `version_activate.html`: asks, for browsers without scripts.
#[derive(Debug, Clone, Template)]
#[template(path = "version_activate.html")]
pub struct VersionActivatePage {
    /// The frame.
    pub chrome: Chrome,
    /// The head.
    pub head: FunctionHead,
    /// The version that shall answer.
    pub version: u32,
    /// Changes by somebody else since the first confirmation.
    pub problem: Option<DeployProblem>,
}

impl VersionActivatePage {
    const TAB: Tab = Tab::Versions;
}
