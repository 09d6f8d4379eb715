//! Copies: functions that serve nobody else, made of a version for a while.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{FunctionPatch, Network};

/// What a copy was made of, and how long it stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CopyOf {
    /// Name of the function.
    pub function: String,
    /// The version.
    #[schema(minimum = 1)]
    pub version: u32,
    /// When the copy is removed, unless it is deleted before.
    #[schema(value_type = String, format = DateTime)]
    pub expires_at: Timestamp,
    /// Secrets of the version that the copy is not given, whatever it may reach: those that are put into requests to hosts.
    pub lacks: Vec<String>,
}

/// A copy that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCopy {
    /// Its name.
    pub name: String,
    /// The version that it is made of; the active one without.
    pub version: Option<u32>,
    /// How long it stays.
    pub lifetime: Duration,
    /// What it may reach; nothing of what the version may.
    pub network: Network,
    /// Settings that differ from the version's; no handler, network or secrets.
    pub settings: FunctionPatch,
}
