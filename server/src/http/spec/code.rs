//! The code of a function: inline source, a zip in base64, or an uploaded file.

use serde_json::{Map, Value};

use crate::model::{Code, InvalidField, Runtime};
use crate::uploads::Upload;

use super::fields::{Fields, Input, invalid, missing, type_of};
use super::sieve::{Decoder, NotBase64};

/// Longest code upload: bounds the disk one request can take.
pub const MAX_CODE_BYTES: usize = 256 << 20;
/// Longest source text: it is held in memory. Hand-written source is far shorter; data belong in a zip.
pub const MAX_SOURCE_BYTES: usize = 8 << 20;

const RULE: &str = "{\"inline\": \"…\"} or {\"zip_base64\": \"…\"}, or an uploaded file";
const NO_SOURCE: &str = "must be an uploaded file or {\"zip_base64\": \"…\"}: a function of this runtime is an executable, not source text";
/// A zip's first bytes: a file, or the end record of an empty one.
const ZIP_MAGIC: [&[u8]; 2] = [b"PK\x03\x04", b"PK\x05\x06"];

/// Takes the field `code`.
pub(super) fn required(fields: &mut Fields, runtime: Runtime) -> Result<Code, InvalidField> {
    match fields.remove("code") {
        None => Err(missing("code", RULE)),
        Some(Input::Json(Value::Object(object)))
            if runtime.is_program() && object.contains_key("inline") =>
        {
            Err(invalid("code", &Value::Object(object), NO_SOURCE))
        }
        Some(Input::Json(Value::Object(object))) => from_json(object, fields),
        Some(Input::Json(other)) => {
            let rule = format!("must be {RULE}; this is {}", type_of(&other));
            Err(invalid("code", &other, rule))
        }
        Some(Input::Text(source)) if runtime.is_program() => {
            Err(invalid("code", &source.into(), NO_SOURCE))
        }
        Some(Input::Text(source)) => inline("code", source, fields),
        Some(Input::File { name, content }) => from_file(name, content, runtime),
    }
}

fn from_json(object: Map<String, Value>, fields: &mut Fields) -> Result<Code, InvalidField> {
    let known = ["inline", "zip_base64"];
    if let Some((name, value)) = object
        .iter()
        .find(|(name, _)| !known.contains(&name.as_str()))
    {
        let rule = "unknown field; expected one of inline and zip_base64";
        return Err(invalid(&format!("code.{name}"), value, rule));
    }
    if object.len() != 1 {
        let rule = "must have exactly one of inline and zip_base64";
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
        return inline(&field, text, fields);
    }
    let decoded = match fields.archive.take() {
        // The text of it was taken out as it came.
        Some(archive) if text.is_empty() => archive,
        Some(_) => {
            let rule = "must be given once, as base64 (standard alphabet)";
            return Err(invalid(&field, &text.into(), rule));
        }
        None => decode(text.as_bytes()),
    };
    decoded
        .map(Code::Zip)
        .map_err(|NotBase64 { shown, rule }| invalid(&field, &shown.into(), rule))
}

fn decode(text: &[u8]) -> Result<Upload, NotBase64> {
    let (mut decoder, mut bytes) = (Decoder::default(), Vec::new());
    decoder.push(text, &mut bytes);
    decoder.finish(&mut bytes)?;
    Ok(bytes.into())
}

fn inline(field: &str, source: String, fields: &mut Fields) -> Result<Code, InvalidField> {
    if source.trim().is_empty() {
        return Err(invalid(
            field,
            &source.into(),
            "must contain the source text",
        ));
    }
    if source.len() > MAX_SOURCE_BYTES {
        return Err(invalid(field, &source.into(), too_long()));
    }
    Ok(Code::Inline(Upload::text(source, fields.held.take())))
}

fn too_long() -> String {
    format!("source must not be longer than {MAX_SOURCE_BYTES} bytes; put it into a zip archive")
}

/// A file is a zip by its name or by its first bytes, else source text of the runtime's language, or the executable.
fn from_file(
    name: Option<String>,
    content: Upload,
    runtime: Runtime,
) -> Result<Code, InvalidField> {
    let refuse = |name: Option<String>, rule: String| {
        let content = Upload::from("");
        Err(Input::File { name, content }.invalid("code", rule))
    };
    let extension = name.as_deref().map(|name| match name.rsplit_once('.') {
        Some((_, extension)) => extension.to_ascii_lowercase(),
        None => String::new(),
    });
    let unreadable = |error| format!("could not be read back: {error}; try again");
    let is_zip = match content.part(0, 4) {
        Ok(start) => ZIP_MAGIC.iter().any(|magic| start == **magic),
        Err(error) => return refuse(name, unreadable(error)),
    };
    let source_extensions: &[&str] = match runtime {
        Runtime::Python3 => &["py"],
        Runtime::Node => &["js", "mjs"],
        Runtime::Native | Runtime::Provided => &[],
    };
    match extension.as_deref() {
        Some("zip") => return Ok(Code::Zip(content)),
        _ if is_zip => return Ok(Code::Zip(content)),
        // What it must be, the package says.
        _ if runtime.is_program() => return Ok(Code::Inline(content)),
        None => {}
        Some(extension) if source_extensions.contains(&extension) => {}
        Some(_) => {
            let allowed = source_extensions.join(", .");
            let rule = format!("must be a file named .{allowed} or .zip for this runtime");
            return refuse(name, rule);
        }
    }
    if content.len() > MAX_SOURCE_BYTES as u64 {
        return refuse(name, too_long());
    }
    let bytes = match content.part(0, MAX_SOURCE_BYTES) {
        Ok(bytes) => bytes,
        Err(error) => return refuse(name, unreadable(error)),
    };
    match std::str::from_utf8(&bytes) {
        Ok(source) if source.trim().is_empty() => {
            let rule = "must contain the source text";
            Err(invalid("code", &source.into(), rule))
        }
        // It stays where it is.
        Ok(_) => Ok(Code::Inline(content)),
        Err(error) => {
            let at = error.valid_up_to();
            let rule = format!("source must be UTF-8 text; byte {at} is not");
            refuse(name, rule)
        }
    }
}
