//! The rule of each setting. The limits are the API's contract.

use crate::model::{BodyForm, InvalidField, Runtime, Start};

use super::fields::{Fields, Input, IntegerRule, missing};

/// Memory of one instance, MiB.
pub(super) const MEMORY_MB: IntegerRule = IntegerRule {
    field: "memory_mb",
    min: 32,
    max: 16_384,
};
/// Longest run time of one invocation, ms: 15 minutes, as Lambda's.
pub(super) const TIMEOUT_MS: IntegerRule = IntegerRule {
    field: "timeout_ms",
    min: 1,
    max: 900_000,
};
/// Maximum number of instances.
pub(super) const MAX_CONCURRENCY: IntegerRule = IntegerRule {
    field: "max_concurrency",
    min: 1,
    max: 1000,
};
/// Seconds before an idle instance is stopped, at most a day.
pub(super) const IDLE_TIMEOUT_S: IntegerRule = IntegerRule {
    field: "idle_timeout_s",
    min: 1,
    max: 86_400,
};

/// Seconds without a call before a template is released, at most 30 days; 0 means never.
pub(super) const TEMPLATE_IDLE_TIMEOUT_S: IntegerRule = IntegerRule {
    field: "template_idle_timeout_s",
    min: 0,
    max: 2_592_000,
};

const NAME: &str = "1 to 64 of a-z, 0-9 and -, starting with a letter";
const RUNTIME: &str = "\"python3\", \"node\", \"native\" or \"provided\"";
const HANDLER: &str =
    "module.function, at most 128 characters: letters, digits and _, modules separated by . or /";
const EXECUTABLE: &str = "the executable's path in the code, at most 128 characters: letters, digits, _, - and ., directories separated by /";
/// What a `bootstrap` takes from it is its own, as on AWS Lambda.
const ANYTHING: &str = "1 to 128 printable ASCII characters without spaces";
const START: &str = "\"auto\", \"fork\", \"restore\" or \"boot\"";
/// A bootstrap is a process of its own, which a fork would not have, with a connection, which no image keeps.
const START_OF_PROVIDED: &str = "\"auto\" or \"boot\" with the runtime provided";
const BODY: &str = "\"base64\" or \"bytes\"";
/// A program reads its event as JSON text.
const BODY_OF_PROGRAMS: &str = "\"base64\" with the runtimes native and provided";
/// Longest name: it becomes a host name and part of a cgroup's name.
const MAX_NAME_BYTES: usize = 64;
/// Longest handler setting, as Lambda's.
const MAX_HANDLER_BYTES: usize = 128;

/// Whether a function may be called so.
pub fn is_function_name(name: &str) -> bool {
    name.len() <= MAX_NAME_BYTES
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

pub(super) fn name(fields: &mut Fields) -> Result<String, InvalidField> {
    fields
        .take("name", NAME, "a string", |input| {
            let name = input.string()?;
            is_function_name(name).then(|| name.to_owned())
        })?
        .ok_or_else(|| missing("name", NAME))
}

pub(super) fn runtime(fields: &mut Fields) -> Result<Runtime, InvalidField> {
    fields
        .take("runtime", RUNTIME, "a string", |input| {
            match input.string()? {
                "python3" => Some(Runtime::Python3),
                "node" => Some(Runtime::Node),
                "native" => Some(Runtime::Native),
                "provided" => Some(Runtime::Provided),
                _ => None,
            }
        })?
        .ok_or_else(|| missing("runtime", RUNTIME))
}

pub(super) fn handler(
    fields: &mut Fields,
    runtime: Runtime,
) -> Result<Option<String>, InvalidField> {
    let rule = match runtime {
        Runtime::Native => EXECUTABLE,
        Runtime::Provided => ANYTHING,
        Runtime::Python3 | Runtime::Node => HANDLER,
    };
    fields.take("handler", rule, "a string", |input| {
        let handler = input.string()?;
        if handler.len() > MAX_HANDLER_BYTES {
            return None;
        }
        if runtime == Runtime::Provided {
            let is_printable = handler.bytes().all(|b| b.is_ascii_graphic());
            return (is_printable && !handler.is_empty()).then(|| handler.to_owned());
        }
        if runtime == Runtime::Native {
            return handler
                .split('/')
                .all(is_file_name)
                .then(|| handler.to_owned());
        }
        let (module, function) = handler.rsplit_once('.')?;
        let good = module
            .split(['.', '/'])
            .all(|part| is_module(part, runtime))
            && is_identifier(function, runtime);
        good.then(|| handler.to_owned())
    })
}

fn is_file_name(text: &str) -> bool {
    let is_allowed = |b: u8| b.is_ascii_alphanumeric() || b"_-.".contains(&b);
    !["", ".", ".."].contains(&text) && text.bytes().all(is_allowed)
}

/// A name both languages take for a function.
fn is_identifier(text: &str, runtime: Runtime) -> bool {
    let first =
        |b: u8| b.is_ascii_alphabetic() || b == b'_' || (b == b'$' && runtime == Runtime::Node);
    text.bytes().next().is_some_and(first) && text.bytes().all(|b| first(b) || b.is_ascii_digit())
}

/// A part of a module's path; Node's are file names and may have a hyphen.
fn is_module(text: &str, runtime: Runtime) -> bool {
    match runtime {
        Runtime::Python3 => is_identifier(text, runtime),
        Runtime::Node | Runtime::Native | Runtime::Provided => {
            !text.is_empty()
                && text
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
        }
    }
}

pub(super) fn min_instances(
    fields: &mut Fields,
    max_concurrency: u32,
) -> Result<Option<u32>, InvalidField> {
    let input = fields.get("min_instances").cloned();
    let found = fields.integer(&IntegerRule {
        field: "min_instances",
        min: 0,
        max: MAX_CONCURRENCY.max,
    })?;
    match (found, input) {
        (Some(number), Some(input)) if number > max_concurrency => Err(input.invalid(
            "min_instances",
            format!("must not be greater than max_concurrency, which is {max_concurrency}"),
        )),
        _ => Ok(found),
    }
}

pub(super) fn body(
    fields: &mut Fields,
    runtime: Runtime,
) -> Result<Option<BodyForm>, InvalidField> {
    let is_program = runtime.is_program();
    let rule = if is_program { BODY_OF_PROGRAMS } else { BODY };
    fields.take("body", rule, "a string", |input| match input.string()? {
        "base64" => Some(BodyForm::Base64),
        "bytes" if !is_program => Some(BodyForm::Bytes),
        _ => None,
    })
}

pub(super) fn start(fields: &mut Fields, runtime: Runtime) -> Result<Option<Start>, InvalidField> {
    let is_provided = runtime == Runtime::Provided;
    let rule = if is_provided {
        START_OF_PROVIDED
    } else {
        START
    };
    fields.take("start", rule, "a string", |input| {
        Start::named(input.string()?)
            .filter(|start| !is_provided || matches!(start, Start::Auto | Start::Boot))
    })
}

pub(super) fn flag(fields: &mut Fields, name: &str) -> Result<Option<bool>, InvalidField> {
    fields.take(name, "true or false", "a boolean", |input| match input {
        Input::Json(value) => value.as_bool(),
        Input::Text(text) => text.parse().ok(),
        Input::File { .. } => None,
    })
}
