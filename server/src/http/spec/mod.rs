//! Settings and code from requests: parsed field by field, so that every error names the field, the value and the rule.
//!
//! JSON and multipart bodies become the same [`Fields`]; the rules are in [`rules`], [`env`] and [`code`].

mod chains;
mod code;
mod copy;
mod cors;
mod docs;
mod env;
mod fields;
mod multipart;
mod network;
mod place;
mod port_limits;
mod rules;
mod secrets;
mod sieve;
mod suggest;
#[cfg(test)]
mod tests;
mod triggers;
mod upload;

use std::sync::Arc;

use crate::model::{
    Code, FunctionPatch, FunctionSpec, InvalidField, Network, Runtime, TEMPLATE_IDLE_TIMEOUT_S,
};

pub use chains::{CHAIN_FIELDS, create_chain, patch_chain, replace_chain};
pub use code::{MAX_CODE_BYTES, MAX_SOURCE_BYTES};
pub use copy::{COPY_FIELDS, copy, copy_network, copy_settings};
pub use docs::{
    CodeBody, CodeForm, CopyFunction, CreateFunction, CreateFunctionForm, PatchFunction,
};
pub use fields::{Fields, Input, IntegerRule, invalid};
pub use network::invalid_entry;
pub use rules::is_function_name;
pub use secrets::{SecretSetting, secret_name, secret_value};
pub use upload::{code_upload, json_fields, upload};

/// Fields of `POST /api/v1/functions`.
pub const CREATE_FIELDS: &[&str] = &[
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
    "network",
    "body",
    "public",
    "triggers",
    "port_limits",
    "cors",
    "secrets",
    "env",
];

/// Fields of `PATCH /api/v1/functions/{name}`.
pub const PATCH_FIELDS: &[&str] = &[
    "handler",
    "memory_mb",
    "timeout_ms",
    "max_concurrency",
    "idle_timeout_s",
    "min_instances",
    "keep_warm",
    "template_idle_timeout_s",
    "start",
    "network",
    "body",
    "public",
    "triggers",
    "port_limits",
    "cors",
    "secrets",
    "env",
];

/// Reads the body of `POST /api/v1/functions`.
pub fn create(mut fields: Fields) -> Result<(FunctionSpec, Code), InvalidField> {
    fields.only(CREATE_FIELDS)?;
    let name = rules::name(&mut fields)?;
    let runtime = rules::runtime(&mut fields)?;
    let handler = rules::handler(&mut fields, runtime)?;
    let max_concurrency = fields.integer(&rules::MAX_CONCURRENCY)?.unwrap_or(8);
    let spec = FunctionSpec {
        name,
        runtime,
        handler: handler.unwrap_or_else(|| runtime.default_handler().to_owned()),
        memory_mb: fields.integer(&rules::MEMORY_MB)?.unwrap_or(128),
        timeout_ms: fields.integer(&rules::TIMEOUT_MS)?.unwrap_or(30_000),
        max_concurrency,
        idle_timeout_s: fields.integer(&rules::IDLE_TIMEOUT_S)?.unwrap_or(300),
        min_instances: rules::min_instances(&mut fields, max_concurrency)?.unwrap_or(0),
        keep_warm: rules::flag(&mut fields, "keep_warm")?.unwrap_or(false),
        template_idle_timeout_s: fields
            .integer(&rules::TEMPLATE_IDLE_TIMEOUT_S)?
            .unwrap_or(TEMPLATE_IDLE_TIMEOUT_S),
        start: rules::start(&mut fields, runtime)?.unwrap_or_default(),
        network: network::setting(&mut fields)?.unwrap_or(Network::None),
        body: rules::body(&mut fields, runtime)?.unwrap_or_default(),
        public: rules::flag(&mut fields, "public")?.unwrap_or(false),
        triggers: triggers::setting(&mut fields)?.unwrap_or_default(),
        port_limits: port_limits::setting(&mut fields)?.unwrap_or_default(),
        cors: cors::setting(&mut fields)?.flatten().map(Arc::new),
        secrets: secrets::setting(&mut fields)?.unwrap_or_default(),
        env: env::create(&mut fields)?,
        copy_of: None,
    };
    let code = code::required(&mut fields, runtime)?;
    Ok((spec, code))
}

/// Reads the body of `PATCH /api/v1/functions/{name}`. `runtime` and `max_concurrency` are the function's present ones.
pub fn patch(
    mut fields: Fields,
    runtime: Runtime,
    max_concurrency: u32,
) -> Result<FunctionPatch, InvalidField> {
    for fixed in ["name", "runtime"] {
        if let Some(input) = fields.get(fixed) {
            let rule = "cannot be changed; create another function instead";
            return Err(input.invalid(fixed, rule));
        }
    }
    if let Some(input) = fields.get("code") {
        return Err(input.invalid("code", "is not a setting; upload it with PUT …/code"));
    }
    fields.only(PATCH_FIELDS)?;
    if fields.is_empty() {
        let rule = format!("must set at least one of {}", PATCH_FIELDS.join(", "));
        return Err(invalid("body", &serde_json::json!({}), rule));
    }
    Ok(FunctionPatch {
        network: network::setting(&mut fields)?,
        public: rules::flag(&mut fields, "public")?,
        triggers: triggers::setting(&mut fields)?,
        port_limits: port_limits::setting(&mut fields)?,
        cors: cors::setting(&mut fields)?,
        secrets: secrets::setting(&mut fields)?,
        ..own_settings(&mut fields, runtime, max_concurrency)?
    })
}

/// The settings that concern a function alone, and not what it may reach or who may reach it. `max_concurrency` counts where the
/// fields have none.
fn own_settings(
    fields: &mut Fields,
    runtime: Runtime,
    max_concurrency: u32,
) -> Result<FunctionPatch, InvalidField> {
    let concurrency = fields.integer(&rules::MAX_CONCURRENCY)?;
    Ok(FunctionPatch {
        handler: rules::handler(fields, runtime)?,
        memory_mb: fields.integer(&rules::MEMORY_MB)?,
        timeout_ms: fields.integer(&rules::TIMEOUT_MS)?,
        idle_timeout_s: fields.integer(&rules::IDLE_TIMEOUT_S)?,
        min_instances: rules::min_instances(fields, concurrency.unwrap_or(max_concurrency))?,
        max_concurrency: concurrency,
        keep_warm: rules::flag(fields, "keep_warm")?,
        template_idle_timeout_s: fields.integer(&rules::TEMPLATE_IDLE_TIMEOUT_S)?,
        start: rules::start(fields, runtime)?,
        body: rules::body(fields, runtime)?,
        env: env::patch(fields)?,
        ..FunctionPatch::default()
    })
}

/// Refuses a `max_concurrency` below the function's present `min_instances`.
pub fn still_room(max_concurrency: u32, min_instances: u32) -> Result<(), InvalidField> {
    if max_concurrency >= min_instances {
        return Ok(());
    }
    let rule = format!("must not be less than min_instances, which is {min_instances}");
    Err(invalid("max_concurrency", &max_concurrency.into(), rule))
}

/// Reads the fields of `PUT /api/v1/functions/{name}/code`.
pub fn code_only(mut fields: Fields, runtime: Runtime) -> Result<Code, InvalidField> {
    fields.only(&["code"])?;
    code::required(&mut fields, runtime)
}
