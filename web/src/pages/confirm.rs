//! The question for the password before something that outlasts the session.

use askama::Template;

use crate::chrome::Chrome;

/// `confirm.html`.
#[derive(Debug, Clone, Template)]
#[template(path = "confirm.html")]
pub struct ConfirmPage {
    /// The frame.
    pub chrome: Chrome,
    /// Where the form that was submitted goes.
    pub action: String,
    /// What it said.
    pub fields: Vec<(String, String)>,
    /// The session was opened with a token: that is asked for.
    pub by_token: bool,
    /// Why it is asked again.
    pub error: String,
}
