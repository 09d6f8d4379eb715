//! `/functions/{name}/settings`: limits, environment, deletion.

use askama::Template;

use crate::chrome::Chrome;
use crate::pages::fields::NUMBER_FIELDS;
use crate::pages::{
    Command, DeployProblem, EnvRow, FieldErrors, FunctionHead, PortLimitsForm, Tab,
};

/// What was typed into the form, as typed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SettingsForm {
    /// `module.function`.
    pub handler: String,
    /// MiB.
    pub memory_mb: String,
    /// Milliseconds.
    pub timeout_ms: String,
    /// Most instances at one time.
    pub max_concurrency: String,
    /// Seconds.
    pub idle_timeout_s: String,
    /// Instances kept even when idle.
    pub min_instances: String,
    /// Whether template and one instance are kept whatever happens.
    pub keep_warm: bool,
    /// Seconds without a call after which the template is let go; 0: never.
    pub template_idle_timeout_s: String,
    /// `auto`, `fork`, `restore` or `boot`.
    pub start: String,
    /// `base64` or `bytes`.
    pub body: String,
    /// What may be reached over the network.
    pub network: NetworkForm,
    /// Whether the URL answers without a token.
    pub public: bool,
    /// Ports of its own, one in each line.
    pub triggers: String,
    /// How much may start work at its ports.
    pub port_limits: PortLimitsForm,
    /// Which pages of other origins may call it.
    pub cors: CorsForm,
    /// Variables to set or replace.
    pub env: Vec<EnvRow>,
    /// Names of the variables that are set; their values are never shown.
    pub env_names: Vec<String>,
    /// Names ticked for removal.
    pub env_removed: Vec<String>,
}

/// The `network` setting as typed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NetworkForm {
    /// `none`, `internet` or `rules`.
    pub mode: String,
    /// The rules, one in each line.
    pub allow: String,
    /// Whether what they refuse is allowed and recorded.
    pub dry_run: bool,
}

/// The `cors` setting as typed: lists with spaces or commas between.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CorsForm {
    /// Origins; empty for no such setting.
    pub origins: String,
    /// Methods.
    pub methods: String,
    /// Headers of requests.
    pub headers: String,
    /// Response headers.
    pub exposed: String,
    /// Whether credentials are allowed.
    pub credentials: bool,
    /// Seconds that a preflight's answer is kept.
    pub max_age_s: String,
}

impl SettingsForm {
    /// The fields that have a place for a message.
    pub const FIELDS: &'static [&'static str] = &[
        "handler",
        "memory_mb",
        "timeout_ms",
        "max_concurrency",
        "idle_timeout_s",
        "min_instances",
        "keep_warm",
        "template_idle_timeout_s",
        "start",
        "body",
        "network",
        "public",
        "triggers",
        "port_limits",
        "limit_source_rate",
        "limit_source_burst",
        "limit_total_rate",
        "limit_total_burst",
        "cors",
        "env",
    ];

    /// The number field of this name, as typed.
    fn number(&self, name: &str) -> &str {
        match name {
            "memory_mb" => &self.memory_mb,
            "timeout_ms" => &self.timeout_ms,
            "max_concurrency" => &self.max_concurrency,
            "idle_timeout_s" => &self.idle_timeout_s,
            "min_instances" => &self.min_instances,
            "template_idle_timeout_s" => &self.template_idle_timeout_s,
            _ => "",
        }
    }

    fn removes(&self, name: &str) -> bool {
        self.env_removed.iter().any(|removed| removed == name)
    }
}

/// `settings.html`.
#[derive(Debug, Clone, Template)]
#[template(path = "settings.html")]
pub struct SettingsPage {
    /// The frame.
    pub chrome: Chrome,
    /// The head.
    pub head: FunctionHead,
    /// The form.
    pub form: SettingsForm,
    /// Why `outbound` cannot be chosen; empty when it can.
    pub outbound_reason: String,
    /// Why limits at ports are not enforced; empty when they are.
    pub limits_reason: String,
    /// The function's gate.
    pub gate: GateForm,
    /// Commands that do the same.
    pub commands: Vec<Command>,
    /// Messages at fields.
    pub errors: FieldErrors,
    /// What else went wrong.
    pub problem: Option<DeployProblem>,
    /// What was wrong with the confirmation of a deletion; empty at first.
    pub delete_error: String,
    /// The version that the form was made of.
    pub loaded: u32,
    /// The state that a change is meant for.
    pub revision: String,
}

/// The form of a function's gate.
#[derive(Debug, Clone, Default)]
pub struct GateForm {
    /// Whether there is one.
    pub on: bool,
    /// Per cent by which a version may be slower.
    pub threshold: String,
    /// Confidence of the intervals, in per cent.
    pub confidence: String,
    /// Names of saved events, one a line.
    pub events: String,
    /// Recorded events.
    pub recorded: String,
    /// What was wrong with what was sent; empty at first.
    pub error: String,
}

/// `partials/delete_state.html`: what a deletion that was not made leaves in its form.
#[derive(Debug, Clone, Template)]
#[template(path = "partials/delete_state.html")]
pub struct DeleteState {
    /// Why it was not made.
    pub delete_error: String,
    /// The state that the next attempt is meant for.
    pub delete_revision: String,
}

impl SettingsPage {
    const TAB: Tab = Tab::Settings;
}
