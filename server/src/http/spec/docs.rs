//! The request bodies as shown in the OpenAPI document. They are parsed field by field by [`super::create`] and its
//! siblings; a test keeps both in sync.

use std::collections::BTreeMap;

use serde::Deserialize;
use utoipa::ToSchema;

use super::SecretSetting;
use crate::model::{
    BodyForm, Cors, Network, NetworkOfCopies, PortLimits, PortTrigger, Runtime, Start,
};

/// A new function. Only `name`, `runtime` and `code` are required; unknown fields are rejected.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "name": "hello",
    "runtime": "python3",
    "code": {"inline": "def handler(event, context):\n    return {\"hello\": event}\n"},
}))]
#[allow(dead_code)]
pub struct CreateFunction {
    /// Name; cannot be changed.
    #[schema(pattern = "^[a-z][a-z0-9-]{0,63}$")]
    pub name: String,
    /// Language runtime; cannot be changed.
    pub runtime: Runtime,
    /// `module.function`; of the runtime `native`, the path of the executable in the code (default: `bootstrap`);
    /// of `provided`, any text, which `bootstrap` finds in `_HANDLER`.
    #[schema(required = false, default = "main.handler", max_length = 128)]
    pub handler: String,
    /// Its code.
    pub code: CodeUpload,
    /// Memory of one instance in MiB.
    #[schema(required = false, minimum = 32, maximum = 16384, default = 128)]
    pub memory_mb: u32,
    /// Timeout of an invocation in ms.
    #[schema(required = false, minimum = 1, maximum = 900000, default = 30000)]
    pub timeout_ms: u32,
    /// Maximum number of instances.
    #[schema(required = false, minimum = 1, maximum = 1000, default = 8)]
    pub max_concurrency: u32,
    /// Seconds after which an idle instance is stopped, at most two later while requests are running.
    #[schema(required = false, minimum = 1, maximum = 86400, default = 300)]
    pub idle_timeout_s: u32,
    /// Minimum number of instances to keep, at most `max_concurrency`.
    #[schema(required = false, minimum = 0, maximum = 1000, default = 0)]
    pub min_instances: u32,
    /// Keeps the template and one instance regardless of idle timeouts and memory pressure.
    #[schema(required = false, default = false)]
    pub keep_warm: bool,
    /// Seconds without a call before the template is released; the next call restores or boots it. 0: never.
    #[schema(required = false, minimum = 0, maximum = 2592000, default = 3600)]
    pub template_idle_timeout_s: u32,
    /// How instances start. `auto` forks the template, unless the import left threads running, which a fork would lose;
    /// then each instance is restored from the template's image, or booted if there is none.
    #[schema(required = false)]
    pub start: Start,
    /// Network access.
    #[schema(required = false)]
    pub network: Network,
    /// How the event of `/fn/{name}` carries the request body: `base64`, as on Lambda (text if the content type says
    /// so), or `bytes`, unchanged: `bytes` in Python, a `Buffer` in Node.js. Much faster for large bodies.
    #[schema(required = false)]
    pub body: BodyForm,
    /// Whether `/fn/{name}` answers without a token.
    #[schema(required = false, default = false)]
    pub public: bool,
    /// Ports of the function's own: TCP connections (HTTP, or the byte stream) and UDP datagrams invoke it.
    #[schema(required = false, max_items = 64)]
    pub triggers: Vec<PortTrigger>,
    /// How much may start work at the function's ports; null for no limits. Only on a node with an ingress.
    #[schema(required = false)]
    pub port_limits: Option<PortLimits>,
    /// Origins whose pages may call the function; without it, the function handles CORS itself.
    #[schema(required = false)]
    pub cors: Option<Cors>,
    /// Secrets that the function is given.
    #[schema(required = false, max_items = 32)]
    pub secrets: Vec<SecretSetting>,
    /// Environment variables, at most 4096 bytes in total. Names match `[A-Za-z_][A-Za-z0-9_]*` and do not start with
    /// `HEARTH_`. Values cannot be read back. Variables that Hearth sets (`AWS_LAMBDA_FUNCTION_NAME`, `AWS_REGION`,
    /// `LAMBDA_TASK_ROOT`, `TZ` …) are overwritten.
    #[schema(required = false)]
    pub env: BTreeMap<String, String>,
}

/// Code in JSON: exactly one of the two.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[allow(dead_code)]
pub enum CodeUpload {
    /// Source text of the handler's module. None of the runtimes `native` and `provided`, whose code is an executable.
    Inline(String),
    /// A zip archive in base64 with the handler's module and its dependencies at its root. At most 50,000 entries and
    /// 512 MiB unpacked; no links, no encryption, plain relative paths only.
    ZipBase64(String),
}

/// A new function as a form: `curl -F name=hello -F runtime=python3 -F code=@hello.py`. The fields are those of the
/// JSON body, as text; a variable may also be a field of its own, `env.NAME`.
#[derive(ToSchema)]
#[allow(dead_code)]
pub struct CreateFunctionForm {
    /// Its name.
    pub name: String,
    /// Its language runtime.
    pub runtime: Runtime,
    /// A file named `.py`, `.js`, `.mjs` or `.zip`, or an executable, at most 256 MiB; or the source as text.
    #[schema(value_type = String, format = Binary)]
    pub code: Vec<u8>,
    /// See the JSON body.
    #[schema(required = false)]
    pub handler: String,
    /// See the JSON body.
    #[schema(required = false)]
    pub memory_mb: u32,
    /// See the JSON body.
    #[schema(required = false)]
    pub timeout_ms: u32,
    /// See the JSON body.
    #[schema(required = false)]
    pub max_concurrency: u32,
    /// See the JSON body.
    #[schema(required = false)]
    pub idle_timeout_s: u32,
    /// See the JSON body.
    #[schema(required = false)]
    pub min_instances: u32,
    /// `true` or `false`.
    #[schema(required = false)]
    pub keep_warm: bool,
    /// See the JSON body.
    #[schema(required = false)]
    pub template_idle_timeout_s: u32,
    /// See the JSON body.
    #[schema(required = false)]
    pub start: Start,
    /// `none`, `internet`, or JSON text of an object.
    #[schema(required = false)]
    pub network: String,
    /// See the JSON body.
    #[schema(required = false)]
    pub body: BodyForm,
    /// `true` or `false`.
    #[schema(required = false)]
    pub public: bool,
    /// JSON text of a list.
    #[schema(required = false)]
    pub triggers: String,
    /// JSON text of an object.
    #[schema(required = false)]
    pub port_limits: String,
    /// JSON text of an object.
    #[schema(required = false)]
    pub cors: String,
    /// JSON text of a list.
    #[schema(required = false)]
    pub secrets: String,
    /// JSON text of an object.
    #[schema(required = false)]
    pub env: String,
}

/// New code.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"code": {"inline": "def handler(event, context):\n    return 2\n"}}))]
#[allow(dead_code)]
pub struct CodeBody {
    /// The code.
    pub code: CodeUpload,
}

/// Settings to change; omitted ones stay. `name` and `runtime` cannot be changed.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"memory_mb": 256, "env": {"LEVEL": "debug", "OLD": null}}))]
#[allow(dead_code)]
pub struct PatchFunction {
    /// `module.function`.
    #[schema(required = false, max_length = 128)]
    pub handler: String,
    /// Memory of one instance in MiB.
    #[schema(required = false, minimum = 32, maximum = 16384)]
    pub memory_mb: u32,
    /// Timeout of an invocation in ms.
    #[schema(required = false, minimum = 1, maximum = 900000)]
    pub timeout_ms: u32,
    /// Maximum number of instances.
    #[schema(required = false, minimum = 1, maximum = 1000)]
    pub max_concurrency: u32,
    /// Seconds after which an idle instance is stopped, at most two later while requests are running.
    #[schema(required = false, minimum = 1, maximum = 86400)]
    pub idle_timeout_s: u32,
    /// Minimum number of instances to keep, at most `max_concurrency`.
    #[schema(required = false, minimum = 0, maximum = 1000)]
    pub min_instances: u32,
    /// Keeps the template and one instance regardless of idle timeouts and memory pressure.
    #[schema(required = false)]
    pub keep_warm: bool,
    /// Seconds without a call before the template is released; 0: never.
    #[schema(required = false, minimum = 0, maximum = 2592000)]
    pub template_idle_timeout_s: u32,
    /// How its instances start.
    #[schema(required = false)]
    pub start: Start,
    /// Network access.
    #[schema(required = false)]
    pub network: Network,
    /// How the event of `/fn/{name}` carries the request body: `base64`, as on Lambda (text if the content type says
    /// so), or `bytes`, unchanged: `bytes` in Python, a `Buffer` in Node.js. Much faster for large bodies.
    #[schema(required = false)]
    pub body: BodyForm,
    /// Whether `/fn/{name}` answers without a token.
    #[schema(required = false)]
    pub public: bool,
    /// Ports of the function's own, all of them: TCP connections (HTTP, or the byte stream) and UDP datagrams invoke it.
    #[schema(required = false, max_items = 64)]
    pub triggers: Vec<PortTrigger>,
    /// How much may start work at the function's ports; null for no limits. Only on a node with an ingress.
    #[schema(required = false)]
    pub port_limits: Option<PortLimits>,
    /// Origins whose pages may call the function; null if the function handles CORS itself.
    #[schema(required = false)]
    pub cors: Option<Cors>,
    /// All secrets that the function is given, in place of those it has now.
    #[schema(required = false, max_items = 32)]
    pub secrets: Vec<SecretSetting>,
    /// Variables to set, or to remove if null; others stay.
    #[schema(required = false)]
    pub env: BTreeMap<String, Option<String>>,
}

/// A copy. Its settings are the version's, with those that are named here.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"name": "hello-with-more-memory", "version": 3, "lifetime_s": 900, "memory_mb": 256, "env": {"MODE": "fast"}}))]
#[allow(dead_code)]
pub struct CopyFunction {
    /// The copy's name.
    #[schema(pattern = "^[a-z][a-z0-9-]{0,63}$")]
    pub name: String,
    /// The version that is copied; the active one without.
    #[schema(required = false, minimum = 1, maximum = 4294967295_u32)]
    pub version: u32,
    /// Seconds after which the copy is removed.
    #[schema(required = false, minimum = 10, maximum = 86400, default = 600)]
    pub lifetime_s: u32,
    /// Memory of one instance in MiB.
    #[schema(required = false, minimum = 32, maximum = 16384)]
    pub memory_mb: u32,
    /// Timeout of an invocation in ms.
    #[schema(required = false, minimum = 1, maximum = 900000)]
    pub timeout_ms: u32,
    /// Maximum number of instances.
    #[schema(required = false, minimum = 1, maximum = 1000)]
    pub max_concurrency: u32,
    /// Seconds after which an idle instance is stopped, at most two later while requests are running.
    #[schema(required = false, minimum = 1, maximum = 86400)]
    pub idle_timeout_s: u32,
    /// Minimum number of instances to keep, at most `max_concurrency`; none without, whatever the version keeps.
    #[schema(required = false, minimum = 0, maximum = 1000, default = 0)]
    pub min_instances: u32,
    /// Keeps the template and one instance regardless of idle timeouts and memory pressure.
    #[schema(required = false, default = false)]
    pub keep_warm: bool,
    /// Seconds without a call before the template is released; 0: never.
    #[schema(required = false, minimum = 0, maximum = 2592000)]
    pub template_idle_timeout_s: u32,
    /// How its instances start.
    #[schema(required = false)]
    pub start: Start,
    /// Network access; none without, whatever the version has.
    #[schema(required = false, value_type = NetworkOfCopies)]
    pub network: Network,
    /// How the event of `/fn/{name}` carries the request body.
    #[schema(required = false)]
    pub body: BodyForm,
    /// Variables to set, or to remove if null; the version's others are copied.
    #[schema(required = false)]
    pub env: BTreeMap<String, Option<String>>,
}

/// New code as a form: `curl -X PUT -F code=@hello.py …`.
#[derive(ToSchema)]
#[allow(dead_code)]
pub struct CodeForm {
    /// A file named `.py`, `.js`, `.mjs` or `.zip`, at most 256 MiB.
    #[schema(value_type = String, format = Binary)]
    pub code: Vec<u8>,
}
