//! 403, 404, 500 and their like.

use askama::Template;

use crate::chrome::Chrome;

/// `error.html`.
#[derive(Debug, Clone, Template)]
#[template(path = "error.html")]
pub struct ErrorPage {
    /// The frame, if logged in.
    pub chrome: Option<Chrome>,
    /// HTTP status.
    pub status: u16,
    /// What went wrong, in a few words.
    pub title: String,
    /// What that means and what to do.
    pub detail: String,
    /// The request's id, to be found in the server's log.
    pub request_id: String,
}
