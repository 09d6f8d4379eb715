//! Functions and their versions: what a user asks for.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{CopyOf, Cors, Network, PortLimits, PortTrigger, SecretBinding, Start};
use crate::uploads::Upload;

/// The language runtime a function is written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Runtime {
    /// CPython 3, the distribution's own.
    Python3,
    /// Node.js.
    Node,
    /// None: the code is an executable.
    Native,
    /// The function's own: the code is an executable, `bootstrap`, that asks for its invocations by AWS Lambda's Runtime API.
    Provided,
}

impl Runtime {
    /// The handler of a function that names none.
    pub fn default_handler(self) -> &'static str {
        match self {
            Self::Python3 | Self::Node => "main.handler",
            // The name that AWS Lambda's custom runtimes look for.
            Self::Native | Self::Provided => "bootstrap",
        }
    }

    /// Whether the code is a program, and no source text.
    pub fn is_program(self) -> bool {
        matches!(self, Self::Native | Self::Provided)
    }
}

/// How the event of `/fn/{name}` carries the request body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum BodyForm {
    /// As on Lambda: text if the content type says so, otherwise base64.
    #[default]
    Base64,
    /// The bytes themselves: `bytes` in Python, a `Buffer` in Node.js.
    Bytes,
}

impl BodyForm {
    /// As the API calls it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Base64 => "base64",
            Self::Bytes => "bytes",
        }
    }
}

/// [`FunctionSpec::template_idle_timeout_s`] if not set, and of versions stored before the setting existed: an hour.
/// Booting again costs a caller a tenth of a second, keeping it costs the host about ten MiB.
pub const TEMPLATE_IDLE_TIMEOUT_S: u32 = 3600;

fn template_idle_timeout_s() -> u32 {
    TEMPLATE_IDLE_TIMEOUT_S
}

/// The settings of one function version: what `POST /api/v1/functions` takes, without the code.
///
/// Every field obeys its rule by construction: the parser of the HTTP layer is what makes one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionSpec {
    /// 1 to 64 of `[a-z0-9-]`, starting with a letter.
    pub name: String,
    /// The language runtime.
    pub runtime: Runtime,
    /// `module.function`; for a native function, the executable's path in the code; what a `bootstrap` takes from it is
    /// its own.
    pub handler: String,
    /// Memory of one instance in MiB, 32 to 16384.
    pub memory_mb: u32,
    /// Longest run time of one invocation in ms, 1 to 900000.
    pub timeout_ms: u32,
    /// Most instances at one time, 1 to 1000.
    pub max_concurrency: u32,
    /// An instance that is idle for this many seconds is stopped, 1 to 86400.
    pub idle_timeout_s: u32,
    /// Instances kept even when idle, 0 to `max_concurrency`.
    pub min_instances: u32,
    /// Whether the template and one instance are kept regardless of idle timeouts and memory pressure.
    #[serde(default)]
    pub keep_warm: bool,
    /// Seconds without a call before the template is released, 0 to 2592000; 0: never.
    #[serde(default = "template_idle_timeout_s")]
    pub template_idle_timeout_s: u32,
    /// How its instances start.
    #[serde(default)]
    pub start: Start,
    /// Network access.
    pub network: Network,
    /// How a request's body stands in the event.
    #[serde(default)]
    pub body: BodyForm,
    /// Whether `/fn/{name}` answers without a token.
    pub public: bool,
    /// Ports of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub triggers: Vec<PortTrigger>,
    /// How much may start work there.
    #[serde(default, skip_serializing_if = "PortLimits::is_none")]
    pub port_limits: PortLimits,
    /// Which pages of other origins may call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cors: Option<Arc<Cors>>,
    /// Secrets that it is given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<SecretBinding>,
    /// Environment variables; secret, write-only in the API.
    pub env: BTreeMap<String, String>,
    /// Of a copy, what it was made of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy_of: Option<Arc<CopyOf>>,
}

/// A change of settings: `PATCH /api/v1/functions/{name}`. Absent fields stay as they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FunctionPatch {
    /// See [`FunctionSpec::handler`].
    pub handler: Option<String>,
    /// See [`FunctionSpec::memory_mb`].
    pub memory_mb: Option<u32>,
    /// See [`FunctionSpec::timeout_ms`].
    pub timeout_ms: Option<u32>,
    /// See [`FunctionSpec::max_concurrency`].
    pub max_concurrency: Option<u32>,
    /// See [`FunctionSpec::idle_timeout_s`].
    pub idle_timeout_s: Option<u32>,
    /// See [`FunctionSpec::min_instances`].
    pub min_instances: Option<u32>,
    /// See [`FunctionSpec::keep_warm`].
    pub keep_warm: Option<bool>,
    /// See [`FunctionSpec::template_idle_timeout_s`].
    pub template_idle_timeout_s: Option<u32>,
    /// See [`FunctionSpec::start`].
    pub start: Option<Start>,
    /// See [`FunctionSpec::network`].
    pub network: Option<Network>,
    /// See [`FunctionSpec::body`].
    pub body: Option<BodyForm>,
    /// See [`FunctionSpec::public`].
    pub public: Option<bool>,
    /// See [`FunctionSpec::triggers`]; all of them.
    pub triggers: Option<Vec<PortTrigger>>,
    /// See [`FunctionSpec::port_limits`].
    pub port_limits: Option<PortLimits>,
    /// A new value, or none to remove it; see [`FunctionSpec::cors`].
    pub cors: Option<Option<Cors>>,
    /// All of them; see [`FunctionSpec::secrets`].
    pub secrets: Option<Vec<SecretBinding>>,
    /// Variables to set (`Some`) or to remove (`None`); others stay.
    pub env: Option<BTreeMap<String, Option<String>>>,
}

impl FunctionPatch {
    /// Names of the fields it changes, as shown to users; of variables the names, never the values.
    pub fn fields(&self) -> Vec<String> {
        // Taken apart whole, so that a new field cannot be forgotten here.
        let Self {
            handler,
            memory_mb,
            timeout_ms,
            max_concurrency,
            idle_timeout_s,
            min_instances,
            keep_warm,
            template_idle_timeout_s,
            start,
            network,
            body,
            public,
            triggers,
            port_limits,
            cors,
            secrets,
            env,
        } = self;
        let mut names: Vec<String> = [
            ("handler", handler.is_some()),
            ("memory_mb", memory_mb.is_some()),
            ("timeout_ms", timeout_ms.is_some()),
            ("max_concurrency", max_concurrency.is_some()),
            ("idle_timeout_s", idle_timeout_s.is_some()),
            ("min_instances", min_instances.is_some()),
            ("keep_warm", keep_warm.is_some()),
            ("template_idle_timeout_s", template_idle_timeout_s.is_some()),
            ("start", start.is_some()),
            ("network", network.is_some()),
            ("body", body.is_some()),
            ("public", public.is_some()),
            ("triggers", triggers.is_some()),
            ("port_limits", port_limits.is_some()),
            ("cors", cors.is_some()),
            ("secrets", secrets.is_some()),
        ]
        .into_iter()
        .filter(|(_, changed)| *changed)
        .map(|(name, _)| name.to_owned())
        .collect();
        names.extend(env.iter().flatten().map(|(name, _)| format!("env.{name}")));
        names
    }
}

/// Uploaded code, not yet unpacked.
#[derive(Debug, Clone)]
pub enum Code {
    /// Source text of the handler's module.
    Inline(Upload),
    /// A zip archive with the handler's module at its root.
    Zip(Upload),
    /// The code of an existing version with some of its files changed.
    Edits {
        /// The version that was edited. It must be the active one, so that nobody overwrites another's change
        /// unknowingly.
        base: u32,
        /// The changes.
        edits: Vec<FileEdit>,
    },
}

/// One changed file of the next version. Paths are relative, with `/` between their parts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileEdit {
    /// Where it is; absent for a new file.
    #[serde(default)]
    pub from: Option<String>,
    /// Where it shall be; absent to remove it.
    #[serde(default)]
    pub to: Option<String>,
    /// Its new text; absent to keep its content.
    #[serde(default)]
    pub text: Option<String>,
}

/// A field of a request that breaks its rule: answered with 422 `invalid_field`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {value} is not valid: {rule}")]
pub struct InvalidField {
    /// Name of the field, dotted for nested ones (`env.FOO`, `code.inline`).
    pub field: String,
    /// What was sent, as JSON, shortened to 100 characters.
    pub value: String,
    /// What would be right.
    pub rule: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_stored_before_a_setting_existed_has_its_default() {
        let stored = r#"{"name":"old","runtime":"python3","handler":"main.handler","memory_mb":128,"timeout_ms":30000,
            "max_concurrency":8,"idle_timeout_s":300,"min_instances":0,"network":"none","public":false,"env":{}}"#;
        let spec: FunctionSpec = serde_json::from_str(stored).unwrap();
        assert!(!spec.keep_warm);
        assert_eq!(spec.template_idle_timeout_s, TEMPLATE_IDLE_TIMEOUT_S);
        assert_eq!(spec.start, Start::Auto);
    }
}
