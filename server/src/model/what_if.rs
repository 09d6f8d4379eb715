//! What another keep-alive, pool or memory setting would have made of the calls that came.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One setting and what it would have been.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WhatIfPoint {
    /// Seconds after which an idle instance ends.
    pub idle_timeout_s: u32,
    /// Calls that would have waited for an instance to start.
    pub cold: u64,
    /// Their share of all calls, 0 to 1.
    pub cold_share: f64,
    /// Calls that would have waited for a busy instance.
    pub queued: u64,
    /// Calls that would have found the queue full.
    pub refused: u64,
    /// Memory of the instances in the mean, in MiB.
    pub memory_mib: f64,
    /// Most instances at a time.
    pub most_instances: u32,
}

/// Settings that differ in their idle timeout only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WhatIfCurve {
    /// Instances that are kept however idle.
    pub min_instances: u32,
    /// Most instances.
    pub max_concurrency: u32,
    /// Memory that all instances share, in MiB, which limits their number; null: no limit.
    pub memory_mib: Option<u32>,
    /// From the shortest timeout to the longest.
    pub points: Vec<WhatIfPoint>,
}

/// Recorded calls run through other settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WhatIf {
    /// The function.
    pub function: String,
    /// The first call that counts.
    #[schema(value_type = String, format = DateTime)]
    pub from: Timestamp,
    /// End of the window.
    #[schema(value_type = String, format = DateTime)]
    pub to: Timestamp,
    /// Calls in it; the newest 50,000.
    pub calls: u64,
    /// Those that were cold when they came.
    pub recorded_cold: u64,
    /// What a start is taken to take, in ms: the median of those recorded.
    pub start_ms: f64,
    /// What an instance is taken to have, in MiB: as last measured.
    pub instance_mib: f64,
    /// The settings of now.
    pub today: WhatIfCurve,
    /// Other settings.
    pub curves: Vec<WhatIfCurve>,
}
