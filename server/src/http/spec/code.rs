//! The code of a function: inline source, a zip in base64, or an uploaded file.

use base64::Engine as _;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use serde_json::{Map, Value};

use crate::model::{Code, InvalidField, Runtime};

use super::fields::{Fields, Input, invalid, missing, type_of};

/// Longest code upload: bounds the memory one request can take.
pub const MAX_CODE_BYTES: usize = 256 << 20;

const RULE: &str = "{\"inline\": \"…\"} or {\"zip_base64\": \"…\"}, or an uploaded file";
/// A zip's first bytes: a file, or the end record of an empty one.
const ZIP_MAGIC: [&[u8]; 2] = [b"PK\x03\x04", b"PK\x05\x06"];

/// Standard alphabet, with or without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Takes the field `code`.
pub(super) fn required(fields: &mut Fields, runtime: Runtime) -> Result<Code, InvalidField> {
    match fields.remove("code") {
        None => Err(missing("code", RULE)),
        Some(Input::Json(Value::Object(object))) => from_json(object),
        Some(Input::Json(other)) => {
            let rule = format!("must be {RULE}; this is {}", type_of(&other));
            Err(invalid("code", &other, rule))
        }
        Some(Input::Text(source)) => inline("code", source),
        Some(Input::File { name, bytes }) => from_file(name, bytes, runtime),
    }
}

fn from_json(object: Map<String, Value>) -> Result<Code, InvalidField> {
    let known = ["inline", "zip_base64"];
    if let Some((name, value)) = object
        .iter()
        .find(|(name, _)| !known.contains(&name.as_str()))
    {
        let rule = "unknown field; known are inline and zip_base64";
        return Err(invalid(&format!("code.{name}"), value, rule));
    }
    if object.len() != 1 {
        let rule = "must hold exactly one of inline and zip_base64";
        return Err(invalid("code", &Value::Object(object), rule));
    }
    let Some((name, value)) = object.into_iter().next() else {
        return Err(missing("code", RULE));
    };
    let field = format!("code.{name}");
    let Value::String(text) = value else {
        let rule = format!("must be a string; this is {}", type_of(&value));
        return Err(invalid(&field, &value, rule));
    };
    if name == "inline" {
        return inline(&field, text);
    }
    // `base64` on the command line wraps its lines.
    let mut text = text.into_bytes();
    text.retain(|byte| !byte.is_ascii_whitespace());
    match BASE64.decode(&text) {
        Ok(bytes) if !bytes.is_empty() => Ok(Code::Zip(bytes.into())),
        outcome => {
            let rule = match outcome {
                Err(e) => format!("must be base64 (standard alphabet): {e}"),
                Ok(_) => "must not be empty".to_owned(),
            };
            let shown = String::from_utf8_lossy(&text[..text.len().min(200)]).into_owned();
            Err(invalid(&field, &shown.into(), rule))
        }
    }
}

fn inline(field: &str, source: String) -> Result<Code, InvalidField> {
    if source.trim().is_empty() {
        return Err(invalid(field, &source.into(), "must hold the source text"));
    }
    Ok(Code::Inline(source))
}

/// A file is a zip by its name or by its first bytes, else source text of the runtime's language.
fn from_file(name: Option<String>, bytes: Bytes, runtime: Runtime) -> Result<Code, InvalidField> {
    let is_zip = ZIP_MAGIC.iter().any(|magic| bytes.starts_with(magic));
    let extension = name.as_deref().map(|name| match name.rsplit_once('.') {
        Some((_, extension)) => extension.to_ascii_lowercase(),
        None => String::new(),
    });
    let source_extensions: &[&str] = match runtime {
        Runtime::Python3 => &["py"],
        Runtime::Node => &["js", "mjs"],
    };
    let shown = Input::File {
        name,
        bytes: Bytes::new(),
    };
    match extension.as_deref() {
        Some("zip") => return Ok(Code::Zip(bytes)),
        _ if is_zip => return Ok(Code::Zip(bytes)),
        None => {}
        Some(extension) if source_extensions.contains(&extension) => {}
        Some(_) => {
            let allowed = source_extensions.join(", .");
            let rule = format!("must be a file named .{allowed} or .zip for this runtime");
            return Err(shown.invalid("code", rule));
        }
    }
    match String::from_utf8(bytes.into()) {
        Ok(source) => inline("code", source),
        Err(e) => {
            let at = e.utf8_error().valid_up_to();
            let rule = format!("source must be UTF-8 text; byte {at} is not");
            Err(shown.invalid("code", rule))
        }
    }
}
