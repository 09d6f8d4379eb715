//! The fields of a request, whatever encoding they came in.

use std::collections::BTreeMap;
use std::io::Write;

use serde_json::{Map, Value};

use crate::model::InvalidField;
use crate::uploads::{Upload, UploadSpace};

use super::sieve::NotBase64;
use super::suggest;

/// Longest value a refusal repeats.
const SHOWN_CHARS: usize = 100;

/// One field as it was sent.
#[derive(Debug, Clone)]
pub enum Input {
    /// From a JSON body.
    Json(Value),
    /// A text field of a form.
    Text(String),
    /// A file of a form, or a raw body (without a name).
    File {
        /// The file's name as the client gave it.
        name: Option<String>,
        /// Its content.
        content: Upload,
    },
}

impl Input {
    /// A string.
    pub fn string(&self) -> Option<&str> {
        match self {
            Self::Json(Value::String(text)) | Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A refusal of this field.
    pub fn invalid(&self, field: &str, rule: impl Into<String>) -> InvalidField {
        match self {
            Self::Json(value) => invalid(field, value, rule),
            Self::Text(text) => invalid(field, &text.as_str().into(), rule),
            Self::File { name, content } => {
                let value = name.as_ref().map_or_else(
                    || format!("{} bytes", content.len()).into(),
                    |name| Value::from(name.as_str()),
                );
                invalid(field, &value, rule)
            }
        }
    }

    /// A refusal that names the type too when it is not the `expected` one.
    fn refuse(&self, field: &str, rule: &str, expected: &'static str) -> InvalidField {
        let rule = match self {
            Self::Json(value) if type_of(value) != expected => {
                format!("must be {rule}; this is {}", type_of(value))
            }
            _ => format!("must be {rule}"),
        };
        self.invalid(field, rule)
    }
}

/// A refusal of `value`, shown as JSON and shortened.
pub fn invalid(field: &str, value: &Value, rule: impl Into<String>) -> InvalidField {
    InvalidField {
        field: field.to_owned(),
        value: shown(value),
        rule: rule.into(),
    }
}

/// The range of a whole-number field.
#[derive(Debug)]
pub struct IntegerRule {
    /// Name of the field.
    pub field: &'static str,
    /// Least value.
    pub min: u32,
    /// Greatest value.
    pub max: u32,
}

/// All fields of a request, by name.
#[derive(Debug, Default)]
pub struct Fields {
    inputs: BTreeMap<String, Input>,
    /// `env.NAME=value` fields of a form.
    pub(super) variables: BTreeMap<String, String>,
    /// What `code.zip_base64` held, whose value is empty then.
    pub(super) archive: Option<Result<Upload, NotBase64>>,
    /// What the others take in memory.
    pub(super) held: Option<UploadSpace>,
}

impl Fields {
    /// The members of a JSON object.
    pub fn from_json(object: Map<String, Value>) -> Self {
        Self {
            inputs: object
                .into_iter()
                .map(|(name, value)| (name, Input::Json(value)))
                .collect(),
            ..Self::default()
        }
    }

    /// A single field.
    pub fn single(name: &str, input: Input) -> Self {
        Self {
            inputs: BTreeMap::from([(name.to_owned(), input)]),
            ..Self::default()
        }
    }

    /// Adds a form's field; duplicates are rejected.
    pub fn add(&mut self, name: String, input: Input) -> Result<(), InvalidField> {
        if self.inputs.contains_key(&name) {
            return Err(input.invalid(&name, "must be given once"));
        }
        self.inputs.insert(name, input);
        Ok(())
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.inputs.is_empty() && self.variables.is_empty()
    }

    /// A field, left where it is.
    pub fn get(&self, name: &str) -> Option<&Input> {
        self.inputs.get(name)
    }

    /// A field, taken out.
    pub(super) fn remove(&mut self, name: &str) -> Option<Input> {
        self.inputs.remove(name)
    }

    /// Refuses the first field that is not among `known`, by name.
    pub fn only(&self, known: &[&str]) -> Result<(), InvalidField> {
        for (name, input) in &self.inputs {
            if !known.contains(&name.as_str()) {
                let rule = match suggest::closest(name, known) {
                    Some(meant) => format!("unknown field; did you mean {meant}?"),
                    None => format!("unknown field; expected one of {}", known.join(", ")),
                };
                return Err(input.invalid(name, rule));
            }
        }
        match self.variables.first_key_value() {
            Some((name, value)) if !known.contains(&"env") => {
                let field = format!("env.{name}");
                Err(invalid(&field, &value.as_str().into(), "unknown field"))
            }
            _ => Ok(()),
        }
    }

    /// Takes a field and reads it; `rule` completes "must be …", `expected` is the JSON type it should have.
    pub(super) fn take<T>(
        &mut self,
        name: &str,
        rule: &str,
        expected: &'static str,
        read: impl FnOnce(&Input) -> Option<T>,
    ) -> Result<Option<T>, InvalidField> {
        match self.inputs.remove(name) {
            None => Ok(None),
            Some(input) => match read(&input) {
                Some(value) => Ok(Some(value)),
                None => Err(input.refuse(name, rule, expected)),
            },
        }
    }

    /// Takes a whole number.
    pub fn integer(&mut self, rule: &IntegerRule) -> Result<Option<u32>, InvalidField> {
        let IntegerRule { field, min, max } = *rule;
        let text = format!("a whole number from {min} to {max}");
        self.take(field, &text, "a number", |input| {
            let number = match input {
                Input::Json(value) => value.as_u64()?,
                Input::Text(text) if text.bytes().all(|b| b.is_ascii_digit()) => {
                    text.parse().ok()?
                }
                _ => return None,
            };
            u32::try_from(number)
                .ok()
                .filter(|number| (min..=max).contains(number))
        })
    }
}

/// The refusal of a required field that is not there.
pub(super) fn missing(field: &str, rule: &str) -> InvalidField {
    InvalidField {
        field: field.to_owned(),
        value: "null".to_owned(),
        rule: format!("is required; must be {rule}"),
    }
}

/// A JSON type in words.
pub(super) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// JSON text of at most 100 characters; `…` marks what was cut.
fn shown(value: &Value) -> String {
    /// Stops the serializer once enough is written: values may be hundreds of megabytes.
    struct Enough(Vec<u8>);
    impl Write for Enough {
        fn write(&mut self, piece: &[u8]) -> std::io::Result<usize> {
            // Four bytes are the longest character.
            let room = (4 * SHOWN_CHARS + 4).saturating_sub(self.0.len());
            if room == 0 {
                return Err(std::io::ErrorKind::StorageFull.into());
            }
            let count = piece.len().min(room);
            self.0.extend_from_slice(&piece[..count]);
            Ok(count)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut enough = Enough(Vec::new());
    let complete = serde_json::to_writer(&mut enough, value).is_ok();
    let text = String::from_utf8_lossy(&enough.0);
    let mut short: String = text.chars().take(SHOWN_CHARS).collect();
    if !complete || short.len() < text.len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_shown_as_json_and_cut() {
        assert_eq!(shown(&json!("a\"b")), r#""a\"b""#);
        let long = shown(&json!("ä".repeat(1_000_000)));
        assert_eq!(long.chars().count(), 101);
        assert!(long.ends_with("ä…"));
        assert_eq!(shown(&json!("x".repeat(98))).chars().count(), 100);
        assert!(shown(&json!("x".repeat(99))).ends_with('…'));
    }
}
