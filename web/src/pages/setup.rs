//! `/setup`.

use askama::Template;

use super::FieldErrors;

/// `setup.html`.
#[derive(Debug, Clone, Default, Template)]
#[template(path = "setup.html")]
pub struct SetupPage {
    /// There is a user already.
    pub done: bool,
    /// The code as typed.
    pub code: String,
    /// The name as typed.
    pub name: String,
    /// What is wrong with the fields.
    pub errors: FieldErrors,
}
