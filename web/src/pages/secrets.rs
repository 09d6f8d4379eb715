//! `/secrets`: values that functions use.

use askama::Template;

use super::{FieldErrors, Moment};
use crate::chrome::Chrome;

/// One secret, without its value.
#[derive(Debug, Clone)]
pub struct SecretRow {
    /// Its name.
    pub name: String,
    /// Functions whose active version uses it.
    pub functions: Vec<String>,
    /// When it was made.
    pub created: Moment,
    /// When it was last given a value.
    pub updated: Moment,
    /// When it was last used.
    pub used: Option<Moment>,
}

/// `secrets.html`.
#[derive(Debug, Clone, Template)]
#[template(path = "secrets.html")]
pub struct SecretsPage {
    /// The frame.
    pub chrome: Chrome,
    /// All secrets, by name.
    pub secrets: Vec<SecretRow>,
    /// The name in the form for a new one, as typed. Its value is not repeated.
    pub name: String,
    /// What is wrong with the fields: `name`, `value`.
    pub errors: FieldErrors,
    /// Why one was not replaced or deleted, or what did not start with its new value; empty when all is well.
    pub problem: String,
}
