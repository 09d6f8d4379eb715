//! Functions and their versions as the API shows them.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    BodyForm, CopyOf, Cors, DecisionCounts, Network, Note, PortLimits, PortTrigger, Revision,
    Runtime, SecretBinding, Start, StartKind, VersionGate,
};

/// Whether a function can serve requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum FunctionState {
    /// The template is running.
    Ready,
    /// The template is booting.
    Starting,
    /// The last boot of the template failed; the next invocation tries again.
    Failed,
    /// Not in memory; the next invocation restores or boots it.
    Asleep,
}

/// Live instances by state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct InstanceCounts {
    /// Waiting for a request.
    pub idle: u32,
    /// Serving a request.
    pub busy: u32,
    /// Being started.
    pub starting: u32,
}

/// The image of a function's template, with counters since the server started.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ImageView {
    /// Size on disk in bytes; null if there is no image.
    pub bytes: Option<u64>,
    /// Templates restored.
    pub restores: u64,
    /// Restores that failed or timed out, so that the template was booted.
    pub restore_failures: u64,
    /// Images created.
    pub dumps: u64,
    /// Images that could not be created.
    pub dump_failures: u64,
    /// The last failure, in CRIU's words; null after a success.
    pub note: Option<String>,
}

/// A function as the API shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FunctionView {
    /// Row id; never reused and not exposed: functions are addressed by name.
    #[serde(skip)]
    pub id: i64,
    /// Its name.
    pub name: String,
    /// Its language runtime.
    pub runtime: Runtime,
    /// `module.function`.
    pub handler: String,
    /// The version that serves requests.
    #[schema(minimum = 1)]
    pub active_version: u32,
    /// Whether it can serve requests.
    pub state: FunctionState,
    /// Why `state` is `failed`; null otherwise.
    pub state_reason: Option<String>,
    /// Live instances by state.
    pub instances: InstanceCounts,
    /// Requests waiting for an instance.
    pub queued: u32,
    /// Whether a template is running, so that a start need not wait for one.
    pub template: bool,
    /// Image of the active version's template, from which it is restored when it is not running.
    pub image: ImageView,
    /// MiB.
    pub memory_mb: u32,
    /// Milliseconds.
    pub timeout_ms: u32,
    /// Maximum number of instances.
    pub max_concurrency: u32,
    /// Seconds.
    pub idle_timeout_s: u32,
    /// Minimum number of instances to keep.
    pub min_instances: u32,
    /// Whether the template and one instance are kept regardless of idle timeouts and memory pressure.
    pub keep_warm: bool,
    /// Seconds without a call before the template is released; 0: never.
    pub template_idle_timeout_s: u32,
    /// How instances should start.
    pub start: Start,
    /// How instances do start: `fork`, `restore` or `boot`.
    pub starts_by: StartKind,
    /// Why `starts_by` differs from a fork or from `start`; null otherwise.
    pub start_reason: Option<String>,
    /// Network access.
    pub network: Network,
    /// How the event carries the body of an HTTP request.
    pub body: BodyForm,
    /// Whether `/fn/{name}` answers without a token.
    pub public: bool,
    /// Ports of its own.
    pub triggers: Vec<PortTrigger>,
    /// How much may start work there.
    pub port_limits: PortLimits,
    /// Origins whose pages may call the function; null if the function handles CORS itself.
    #[schema(value_type = Option<Cors>)]
    pub cors: Option<Arc<Cors>>,
    /// Secrets that it is given.
    #[schema(value_type = Vec<Object>)]
    pub secrets: Vec<SecretBinding>,
    /// Names of the environment variables; values are write-only and always null.
    pub env: BTreeMap<String, Option<String>>,
    /// When the function was created.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// When its settings or code last changed.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Timestamp,
    /// Where it is called: `/fn/{name}`, or the URL of its own host or of the functions' listener if there is one.
    pub url: String,
    /// The scheduler's decisions for it.
    pub decisions: DecisionCounts,
    /// Findings from deploying the active version that its author should know about.
    pub notes: Vec<Note>,
    /// What a copy was made of; no other function has the field.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<CopyOf>)]
    pub copy_of: Option<Arc<CopyOf>>,
}

impl FunctionView {
    /// What was asked for of it, live state left out.
    pub fn revision(&self) -> Revision {
        Revision::of_function(self.id, self.active_version)
    }
}

/// An immutable version of a function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VersionView {
    /// 1, 2, 3 … in order of creation.
    #[schema(minimum = 1)]
    pub version: u32,
    /// Whether it is the active version.
    pub active: bool,
    /// SHA-256 of the code package, hex.
    #[schema(pattern = "^[0-9a-f]{64}$")]
    pub code_sha256: String,
    /// Bytes of the unpacked code.
    pub code_bytes: u64,
    /// `module.function`.
    pub handler: String,
    /// MiB.
    pub memory_mb: u32,
    /// Milliseconds.
    pub timeout_ms: u32,
    /// Maximum number of instances.
    pub max_concurrency: u32,
    /// Seconds.
    pub idle_timeout_s: u32,
    /// Minimum number of instances to keep.
    pub min_instances: u32,
    /// Whether the template and one instance are kept regardless of idle timeouts and memory pressure.
    pub keep_warm: bool,
    /// Seconds without a call before the template is released; 0: never.
    pub template_idle_timeout_s: u32,
    /// How instances should start.
    pub start: Start,
    /// How instances do start: `fork`, `restore` or `boot`.
    pub starts_by: StartKind,
    /// Why `starts_by` differs from a fork or from `start`; null otherwise.
    pub start_reason: Option<String>,
    /// Network access.
    pub network: Network,
    /// How the event carries the body of an HTTP request.
    pub body: BodyForm,
    /// Whether `/fn/{name}` answers without a token.
    pub public: bool,
    /// Ports of its own.
    pub triggers: Vec<PortTrigger>,
    /// How much may start work there.
    pub port_limits: PortLimits,
    /// Origins whose pages may call the function; null if the function handles CORS itself.
    #[schema(value_type = Option<Cors>)]
    pub cors: Option<Arc<Cors>>,
    /// Secrets that it is given.
    #[schema(value_type = Vec<Object>)]
    pub secrets: Vec<SecretBinding>,
    /// Names of the environment variables; values are write-only and always null.
    pub env: BTreeMap<String, Option<String>>,
    /// When it was created.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// Findings from deploying it that its author should know about.
    pub notes: Vec<Note>,
    /// What the function's gate said of it; null if it was never asked.
    #[serde(default)]
    pub gate: Option<VersionGate>,
}
