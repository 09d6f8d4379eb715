//! The way of one request through a chain.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Which members a request passed, in the order in which it reached them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ChainTrace)]
pub struct Trace {
    /// The route it took.
    pub route: String,
    /// Its hops; those that it did not reach are missing.
    pub hops: Vec<TraceHop>,
}

/// One stay of a request at a member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ChainHop)]
pub struct TraceHop {
    /// Name of the member.
    pub member: String,
    /// Number of the instance, unique within the chain at any one time.
    pub instance: u16,
    /// Whether another member called it; otherwise it was next on the route.
    pub is_call: bool,
    /// When the instance had the payload, µs after the request was admitted.
    pub entered_us: u64,
    /// When it passed the payload on, likewise; null if it never did.
    pub left_us: Option<u64>,
}

impl TraceHop {
    /// How long it took, in µs.
    #[must_use]
    pub fn duration_us(&self) -> Option<u64> {
        Some(self.left_us?.saturating_sub(self.entered_us))
    }
}
