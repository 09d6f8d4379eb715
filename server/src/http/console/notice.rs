//! `?notice=…`: set by the redirect after a change, so that the page says what was done.

use serde::Deserialize;

/// The query of a page that may be come to from a change.
#[derive(Debug, Default, Deserialize)]
pub struct Notice {
    #[serde(default)]
    notice: String,
}

impl Notice {
    /// Key of the notice; empty for none.
    pub fn key(&self) -> &str {
        &self.notice
    }
}
