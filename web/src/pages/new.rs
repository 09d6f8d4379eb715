//! `/new`.

use askama::Template;

use crate::chrome::Chrome;
use crate::pages::fields::NUMBER_FIELDS;
use crate::pages::{DeployProblem, EnvRow, FieldErrors, NetworkForm};
use crate::starters::{STARTERS, Starter};

/// What was typed into the form, as typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionForm {
    /// The function's name.
    pub name: String,
    /// `python3`, `node`, `native` or `provided`.
    pub runtime: String,
    /// `module.function`.
    pub handler: String,
    /// `inline` or `file`.
    pub code_source: String,
    /// The editor's text.
    pub code: String,
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
    /// Environment variables.
    pub env: Vec<EnvRow>,
}

impl FunctionForm {
    /// The fields that have a place for a message.
    pub const FIELDS: &'static [&'static str] = &[
        "name",
        "runtime",
        "handler",
        "code",
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
        "env",
    ];

    /// The fields behind "Limits and environment".
    pub const MORE_FIELDS: &'static [&'static str] = &[
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

    /// A form around a starter, with the API's defaults.
    pub fn starting_from(starter: Starter, name: String) -> Self {
        Self {
            name,
            runtime: starter.runtime.to_owned(),
            handler: "main.handler".to_owned(),
            code_source: "inline".to_owned(),
            code: starter.code.to_owned(),
            memory_mb: "128".to_owned(),
            timeout_ms: "30000".to_owned(),
            max_concurrency: "8".to_owned(),
            idle_timeout_s: "300".to_owned(),
            min_instances: "0".to_owned(),
            keep_warm: false,
            template_idle_timeout_s: "3600".to_owned(),
            start: "auto".to_owned(),
            body: "base64".to_owned(),
            network: NetworkForm {
                mode: "none".to_owned(),
                ..NetworkForm::default()
            },
            public: false,
            env: Vec::new(),
        }
    }
}

/// `new.html`.
#[derive(Debug, Clone, Template)]
#[template(path = "new.html")]
pub struct NewPage {
    /// The frame.
    pub chrome: Chrome,
    /// The form.
    pub form: FunctionForm,
    /// Key of the starter in the editor.
    pub starter: String,
    /// Why `native` cannot be chosen; empty when it can.
    pub native_reason: String,
    /// Why `provided` cannot be chosen; empty when it can.
    pub provided_reason: String,
    /// Why `node` cannot be chosen; empty when it can.
    pub node_reason: String,
    /// Why functions of `node` start by boot, if they are available; empty if they start by fork.
    pub node_boots: String,
    /// Why `outbound` cannot be chosen; empty when it can.
    pub outbound_reason: String,
    /// Messages at fields.
    pub errors: FieldErrors,
    /// What else went wrong.
    pub problem: Option<DeployProblem>,
}

impl NewPage {
    fn starters(&self, runtime: &str) -> Vec<Starter> {
        STARTERS
            .into_iter()
            .filter(|starter| starter.runtime == runtime)
            .collect()
    }
    /// What the editor's language is taken from.
    fn file_name(&self) -> &'static str {
        match self.form.runtime.as_str() {
            "node" => "main.mjs",
            _ => "main.py",
        }
    }
    fn starts_from(&self, starter: &Starter) -> bool {
        self.starter == starter.key
    }
}
