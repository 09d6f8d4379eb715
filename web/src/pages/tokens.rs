//! `/tokens`: API tokens.

use askama::Template;

use super::{FieldErrors, Moment};
use crate::chrome::Chrome;

/// The rights to choose from: as the API spells them, and in words.
pub const RIGHTS: [(&str, &str); 4] = [
    ("read", "see functions, history and logs"),
    ("invoke", "invoke functions"),
    ("write", "deploy, change and delete functions"),
    ("admin", "manage users, tokens and retention"),
];

/// How long a token may be valid: days (none for ever), and in words.
pub const EXPIRIES: [(&str, &str); 5] = [
    ("", "Never"),
    ("7", "In 7 days"),
    ("30", "In 30 days"),
    ("90", "In 90 days"),
    ("365", "In a year"),
];

/// One token.
#[derive(Debug, Clone)]
pub struct TokenRow {
    /// Its number.
    pub id: i64,
    /// What it is for.
    pub name: String,
    /// Its rights, joined by commas.
    pub rights: String,
    /// The functions it is limited to, joined by commas; empty for all.
    pub scope: String,
    /// When it was made.
    pub created: Moment,
    /// When it was last used.
    pub used: Option<Moment>,
    /// When it stops being valid.
    pub expires: Option<Moment>,
    /// This session was opened with it: it cannot revoke itself.
    pub is_yours: bool,
}

impl TokenRow {
    /// Whether it has expired.
    pub fn is_expired(&self) -> bool {
        self.expires.is_some_and(|expires| expires.is_past())
    }
}

/// A token that was made just now, shown this once.
#[derive(Debug, Clone, Default)]
pub struct MadeToken {
    /// What it is for.
    pub name: String,
    /// Its secret.
    pub secret: String,
}

/// The form for a new token, as typed.
#[derive(Debug, Clone, Default)]
pub struct NewTokenForm {
    /// What it is for.
    pub name: String,
    /// The chosen rights.
    pub rights: Vec<String>,
    /// Names of functions.
    pub scope: String,
    /// Days; empty for ever.
    pub expires: String,
}

impl NewTokenForm {
    fn has(&self, right: &str) -> bool {
        self.rights.iter().any(|chosen| chosen == right)
    }
}

/// `tokens.html`.
#[derive(Debug, Clone, Template)]
#[template(path = "tokens.html")]
pub struct TokensPage {
    /// The frame.
    pub chrome: Chrome,
    /// All tokens, newest first.
    pub tokens: Vec<TokenRow>,
    /// The form for another.
    pub form: NewTokenForm,
    /// What is wrong with its fields: `name`, `rights`, `scope`, `expires_at`.
    pub errors: FieldErrors,
    /// The token made just now.
    pub made: Option<MadeToken>,
    /// Why one was not revoked; empty when none was to be.
    pub problem: String,
}
