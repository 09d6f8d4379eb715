//! `/login`.

use askama::Template;

/// `login.html`.
#[derive(Debug, Clone, Default, Template)]
#[template(path = "login.html")]
pub struct LoginPage {
    /// Where to go afterwards: a path of this server.
    pub next: String,
    /// Whether there are users, so that there is something to log in to by password. Without any, the page leads to the
    /// set-up.
    pub has_users: bool,
    /// The name as typed.
    pub name: String,
    /// What was wrong with the last name and password; empty at first.
    pub password_error: String,
    /// What was wrong with the last token; empty at first.
    pub error: String,
    /// Something to say that is not an error: "You are logged out."
    pub notice: String,
}
