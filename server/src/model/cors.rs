//! Which pages of other origins may call a function from a browser: CORS, in the shape of a Lambda function URL's setting.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Cross-origin access to the function's URL. The server answers preflights without a token and replaces the function's
/// own CORS headers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Cors {
    /// Origins, such as `https://example.com`, or `*` for all.
    #[schema(min_items = 1, max_items = 100)]
    pub allow_origins: Vec<String>,
    /// Methods, or `*` for all.
    #[serde(default)]
    #[schema(required = false, max_items = 8)]
    pub allow_methods: Vec<String>,
    /// Request headers allowed besides the safelisted ones; `*` for all.
    #[serde(default)]
    #[schema(required = false, max_items = 100)]
    pub allow_headers: Vec<String>,
    /// Response headers that scripts may read besides the safelisted ones; `*` for all.
    #[serde(default)]
    #[schema(required = false, max_items = 100)]
    pub expose_headers: Vec<String>,
    /// Whether requests may carry credentials (cookies, HTTP authentication). Not with `*` as origin.
    #[serde(default)]
    #[schema(required = false, default = false)]
    pub allow_credentials: bool,
    /// Seconds for which browsers may cache a preflight.
    #[serde(default)]
    #[schema(required = false, minimum = 0, maximum = 86400, default = 0)]
    pub max_age_s: u32,
}

impl Cors {
    /// Whether pages of this origin may call.
    pub fn allows(&self, origin: &[u8]) -> bool {
        self.allows_all()
            || self
                .allow_origins
                .iter()
                .any(|allowed| allowed.as_bytes() == origin)
    }

    /// Whether pages of every origin may.
    pub fn allows_all(&self) -> bool {
        self.allow_origins.iter().any(|allowed| allowed == "*")
    }
}
