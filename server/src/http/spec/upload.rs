//! From a request's body to [`Fields`], by content type.

use axum::extract::{FromRequest, Multipart, Request};
use serde_json::Value;

use crate::http::body;
use crate::http::problem::Problem;
use crate::http::uploads;

use super::code::MAX_CODE_BYTES;
use super::fields::{Fields, Input, invalid, type_of};
use super::multipart;

/// Longest JSON body with code in it: base64 takes four bytes for three, and the settings need some.
const MAX_UPLOAD_JSON_BYTES: usize = MAX_CODE_BYTES / 3 * 4 + (1 << 20);
/// Longest JSON body without code.
const MAX_SETTINGS_BYTES: usize = 256 << 10;
/// Raw bodies that `PUT …/code` takes.
const RAW_TYPES: [&str; 9] = [
    "application/zip",
    "application/x-zip-compressed",
    "application/octet-stream",
    "text/plain",
    "text/x-python",
    "text/x-script.python",
    "text/javascript",
    "application/javascript",
    "application/x-python",
];

/// The body of a create: JSON or a form.
pub async fn upload(request: Request) -> Result<Fields, Problem> {
    match body::media_type(request.headers()) {
        kind if body::is_json(&kind) => object(request, MAX_UPLOAD_JSON_BYTES).await,
        kind if kind == "multipart/form-data" => form(request).await,
        kind => Err(body::unsupported(
            &kind,
            "application/json, or multipart/form-data (as curl -F does)",
        )),
    }
}

/// The body of a code upload: JSON, a form, or the code itself.
pub async fn code_upload(request: Request) -> Result<Fields, Problem> {
    let kind = body::media_type(request.headers());
    if !RAW_TYPES.contains(&kind.as_str()) {
        return match kind {
            kind if body::is_json(&kind) => object(request, MAX_UPLOAD_JSON_BYTES).await,
            kind if kind == "multipart/form-data" => form(request).await,
            kind => Err(body::unsupported(
                &kind,
                "application/json, multipart/form-data, or the code itself as application/zip, text/x-python, \
                 text/javascript, text/plain or application/octet-stream",
            )),
        };
    }
    let (bytes, held) = body::read_counted(request.into_body(), MAX_CODE_BYTES).await?;
    let bytes = uploads::kept(bytes, held);
    // What is called a zip is one, whatever its first bytes are; otherwise they decide.
    let name = kind.contains("zip").then(|| "code.zip".to_owned());
    Ok(Fields::single("code", Input::File { name, bytes }))
}

/// A JSON object without code in it.
pub async fn json_fields(request: Request) -> Result<Fields, Problem> {
    match body::media_type(request.headers()) {
        kind if body::is_json(&kind) => object(request, MAX_SETTINGS_BYTES).await,
        kind => Err(body::unsupported(&kind, "application/json")),
    }
}

async fn object(request: Request, limit: usize) -> Result<Fields, Problem> {
    // Counted until the fields are read.
    let (bytes, _held) = body::read_counted(request.into_body(), limit).await?;
    match body::json(&bytes)? {
        Value::Object(object) => Ok(Fields::from_json(object)),
        other => {
            let rule = format!("must be a JSON object; this is {}", type_of(&other));
            Err(invalid("body", &other, rule).into())
        }
    }
}

async fn form(request: Request) -> Result<Fields, Problem> {
    let request = body::sipped(request, multipart::MAX_FORM_BYTES)?;
    let form = Multipart::from_request(request, &())
        .await
        .map_err(|e| Problem::new(crate::http::problem::Code::InvalidMultipart, e.body_text()))?;
    multipart::read(form).await
}
