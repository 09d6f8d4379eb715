//! Types shared by all modules: functions, versions, invocations, and their names in the API.
//!
//! They are the vocabulary of the docs and of the REST API and have no behaviour beyond their own rules.

mod audit;
mod caller;
pub mod chain;
mod changes;
mod copy;
mod cors;
mod decisions;
mod experiment;
mod explanation;
mod failure;
mod function;
mod function_view;
mod gate;
mod host_name;
mod invocation;
mod latency;
mod log;
mod network;
mod note;
mod performance;
mod port;
mod port_limits;
mod port_owner;
mod retention;
mod revision;
mod secret;
mod start;
mod stats;
mod token;
pub mod topics;
mod user;
mod what_if;

pub use audit::{ActorKind, AuditFilter, AuditRecord};
pub use caller::Caller;
pub use changes::{SettingChange, setting_changes};
pub use copy::{CopyOf, NewCopy};
pub use cors::Cors;
pub use decisions::DecisionCounts;
pub use experiment::{
    AssignedExperiment, ExperimentDetail, ExperimentEnd, ExperimentFile, ExperimentState,
    ExperimentView,
};
pub use explanation::{
    Cause, CauseKind, DeployedMeanwhile, ExperimentMeanwhile, Explanation, Meanwhile, RanMeanwhile,
    TailWindow,
};
pub use failure::Failure;
pub use function::{
    BodyForm, Code, FileEdit, FunctionPatch, FunctionSpec, InvalidField, Runtime,
    TEMPLATE_IDLE_TIMEOUT_S,
};
pub use function_view::{FunctionState, FunctionView, ImageView, InstanceCounts, VersionView};
pub use gate::{GATE_RECORDED_MAX, Gate, GateState, VersionGate};
pub use host_name::normal_host_name;
pub use invocation::{
    FunctionError, InvocationCounters, InvocationFilter, InvocationId, InvocationRecord, LogLine,
    LogStream, Stages, StartKind, Status, Trigger,
};
pub use latency::{Bar, Distribution, HeatColumn, HeatMap, Latency};
pub use log::{FoundLine, LogEntry};
pub use network::{
    InvalidRule, Limits as NetworkLimits, MAX_BYTES_PER_SECOND, MAX_CONNECTIONS, MAX_RULES,
    NamePattern, Network, NetworkOfCopies, NetworkPolicy, Ports, Protocol, Rule, RuleError, Target,
    parse_prefix, special_range,
};
pub use note::{Drawn, Note};
pub use performance::{
    Change, ComparedEvent, Performance, PerformancePoint, VersionComparison, VersionPerformance,
};
pub use port::{
    Batch, MAX_BATCH, MAX_BATCH_WAIT_MS, MAX_PORTS, MAX_TOPICS, MqttTopic, Port, PortOrBroker,
    PortTrigger, StreamMode, all_topics,
};
pub use port_limits::{MAX_PORT_RATE, PortLimits, PortRate};
pub use port_owner::PortOwner;
pub use retention::{
    InvocationPayloads, LEAST_MIB, MOST_DAYS, MOST_MIB, MOST_PAYLOAD_BYTES, Payload, PayloadLimits,
    Retention,
};
pub use revision::{Changed, Meant, Revision, digest};
pub use secret::{
    AUTHORIZATION, BoundHost, MAX_BINDINGS, MAX_SECRET_BYTES, NotRestarted, SecretBinding,
    SecretChange, SecretView, is_secret_name,
};
pub use start::{Start, StartChoice, Threads, choose_boot, choose_start};
pub use stats::{Percentiles, StageStats, StartCounts, Stats, samples_needed};
pub use token::{NewToken, Right, TokenView};
pub use user::{
    Role, SESSION_ABSOLUTE, SESSION_IDLE, SessionOwner, SessionView, UserPatch, UserView,
};
pub use what_if::{WhatIf, WhatIfCurve, WhatIfPoint};

/// A page of a list, newest first; pass `next` as `before` for the following page.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
pub struct Page<T> {
    /// The items of this page.
    pub items: Vec<T>,
    /// Opaque key of the next page, or null on the last one.
    pub next: Option<String>,
}
