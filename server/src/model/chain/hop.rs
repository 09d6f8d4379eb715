//! One step of a route.

use serde::{Deserialize, Serialize};

/// What a route calls the gateway; no member has this name.
pub const GATEWAY: &str = "gateway";

/// Who gets a request next.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Hop {
    /// The server, which passes the payload on to the next hop.
    Gateway,
    /// A member, by its name in the chain.
    Member(String),
}

impl Hop {
    /// As the API has it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Gateway => GATEWAY,
            Self::Member(name) => name,
        }
    }
}

impl From<String> for Hop {
    fn from(name: String) -> Self {
        match name.as_str() {
            GATEWAY => Self::Gateway,
            _ => Self::Member(name),
        }
    }
}

impl From<Hop> for String {
    fn from(hop: Hop) -> Self {
        match hop {
            Hop::Gateway => GATEWAY.to_owned(),
            Hop::Member(name) => name,
        }
    }
}
