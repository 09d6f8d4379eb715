//! `/login`.

use askama::Template;

/// `login.html`.
#[derive(Debug, Clone, Default, Template)]
#[template(path = "login.html")]
pub struct LoginPage {
    /// Where to go afterwards: a path of this server.
    pub next: String,
    /// What was wrong with the last attempt; empty at first.
    pub error: String,
    /// Something to say that is not an error: "You are logged out."
    pub notice: String,
}
