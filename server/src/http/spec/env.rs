//! Environment variables. Their values are secrets: no error repeats one.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::model::InvalidField;

use super::fields::{Fields, Input, invalid, type_of};

/// All names and values together: Lambda's limit. It keeps exec's environment and the API's answers small.
const MAX_ENV_BYTES: usize = 4096;
/// Names that start so are the platform's.
const RESERVED_PREFIX: &str = "HEARTH_";
const OBJECT_RULE: &str = "an object of names and strings";

type Variables = BTreeMap<String, Option<String>>;

/// The variables of a new function.
pub(super) fn create(fields: &mut Fields) -> Result<BTreeMap<String, String>, InvalidField> {
    let mut variables = BTreeMap::new();
    for (name, value) in read(fields)?.unwrap_or_default() {
        let Some(value) = value else {
            return Err(refuse(&name, "must be a string; this is null"));
        };
        variables.insert(name, value);
    }
    Ok(variables)
}

/// The variables of a change: null removes one.
pub(super) fn patch(fields: &mut Fields) -> Result<Option<Variables>, InvalidField> {
    read(fields)
}

fn read(fields: &mut Fields) -> Result<Option<Variables>, InvalidField> {
    let object = match fields.remove("env") {
        None => None,
        Some(Input::Json(Value::Object(object))) => Some(object),
        Some(Input::Json(other)) => {
            let rule = format!("must be {OBJECT_RULE}; this is {}", type_of(&other));
            return Err(invalid("env", &"(hidden)".into(), rule));
        }
        Some(Input::Text(text)) => match serde_json::from_str(&text) {
            Ok(object) => Some(object),
            Err(_) => {
                let rule = format!("must be the JSON text of {OBJECT_RULE}");
                return Err(invalid("env", &"(hidden)".into(), rule));
            }
        },
        Some(file @ Input::File { .. }) => {
            return Err(file.invalid("env", format!("must be {OBJECT_RULE}; this is a file")));
        }
    };
    if object.is_none() && fields.variables.is_empty() {
        return Ok(None);
    }
    let mut variables = Variables::new();
    for (name, value) in object.unwrap_or_default() {
        check_name(&name)?;
        let value = match value {
            Value::String(text) => Some(text),
            Value::Null => None,
            other => {
                let rule = format!("must be a string; this is {}", type_of(&other));
                return Err(refuse(&name, rule));
            }
        };
        variables.insert(name, value);
    }
    for (name, value) in std::mem::take(&mut fields.variables) {
        check_name(&name)?;
        if variables.contains_key(&name) {
            return Err(refuse(&name, "must be given once"));
        }
        variables.insert(name, Some(value));
    }
    check_values(&variables)?;
    Ok(Some(variables))
}

pub(super) fn check_name(name: &str) -> Result<(), InvalidField> {
    let first = |b: u8| b.is_ascii_alphabetic() || b == b'_';
    let good = name.bytes().next().is_some_and(first)
        && name.bytes().all(|b| first(b) || b.is_ascii_digit());
    if !good {
        let rule = "names are letters, digits and _, not starting with a digit";
        return Err(refuse(name, rule));
    }
    if name.starts_with(RESERVED_PREFIX) {
        return Err(refuse(name, "names that start with HEARTH_ are reserved"));
    }
    Ok(())
}

fn check_values(variables: &Variables) -> Result<(), InvalidField> {
    let mut total = 0;
    for (name, value) in variables {
        let value = value.as_deref().unwrap_or_default();
        if value.contains('\0') {
            return Err(refuse(name, "must not contain a NUL character"));
        }
        total += name.len() + value.len();
    }
    if total > MAX_ENV_BYTES {
        let rule = format!(
            "names and values must be at most {MAX_ENV_BYTES} bytes together; these are {total}"
        );
        return Err(invalid("env", &"(hidden)".into(), rule));
    }
    Ok(())
}

fn refuse(name: &str, rule: impl Into<String>) -> InvalidField {
    let name: String = name.chars().take(100).collect();
    invalid(&format!("env.{name}"), &"(hidden)".into(), rule)
}
