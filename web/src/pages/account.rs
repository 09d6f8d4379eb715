//! `/account`: one's own password and sessions.

use askama::Template;

use super::{FieldErrors, Moment};
use crate::chrome::Chrome;

/// One session.
#[derive(Debug, Clone)]
pub struct SessionRow {
    /// Its number.
    pub id: i64,
    /// The browser in plain words.
    pub device: String,
    /// What the browser calls itself, for the tooltip.
    pub agent: String,
    /// Where it was opened from.
    pub address: String,
    /// When it was opened.
    pub created: Moment,
    /// When it was last used.
    pub seen: Moment,
    /// It is the one of this page.
    pub current: bool,
}

/// `account.html`.
#[derive(Debug, Clone, Template)]
#[template(path = "account.html")]
pub struct AccountPage {
    /// The frame.
    pub chrome: Chrome,
    /// The user's role, or the token's rights, in words.
    pub rights: String,
    /// Open sessions.
    pub sessions: Vec<SessionRow>,
    /// What is wrong with the password's form: `old`, `password`, `repeat`.
    pub errors: FieldErrors,
}

impl AccountPage {
    /// Where a session's form posts to, up to its number.
    fn sessions_base(&self) -> &'static str {
        "/account/sessions"
    }
}
