//! From a request's body to [`Fields`], by content type.

use axum::extract::{FromRequest, Multipart, Request};
use serde_json::Value;

use crate::http::body::{self, Pieces};
use crate::http::problem::Problem;
use crate::uploads::{Upload, Uploads};

use super::code::{MAX_CODE_BYTES, MAX_SOURCE_BYTES};
use super::fields::{Fields, Input, invalid, type_of};
use super::multipart;
use super::sieve::Sieve;

/// Longest JSON body with code in it: base64 takes four bytes for three, and the settings need some.
const MAX_UPLOAD_JSON_BYTES: usize = MAX_CODE_BYTES / 3 * 4 + (1 << 20);
/// Longest JSON body beside the archive in it: source, each line end of which takes two characters, and the settings.
const MAX_JSON_TEXT_BYTES: usize = 2 * MAX_SOURCE_BYTES + (1 << 20);
/// What JSON takes in memory: as it came, and as what it says.
const JSON_COPIES: usize = 2;
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
pub async fn upload(request: Request, uploads: &Uploads) -> Result<Fields, Problem> {
    body::check_coding(request.headers())?;
    match body::media_type(request.headers()) {
        kind if body::is_json(&kind) => json_upload(request, uploads).await,
        kind if kind == "multipart/form-data" => form(request, uploads).await,
        kind => Err(body::unsupported(
            &kind,
            "application/json, or multipart/form-data (as curl -F does)",
        )),
    }
}

/// The body of a code upload: JSON, a form, or the code itself.
pub async fn code_upload(request: Request, uploads: &Uploads) -> Result<Fields, Problem> {
    body::check_coding(request.headers())?;
    let kind = body::media_type(request.headers());
    if !RAW_TYPES.contains(&kind.as_str()) {
        return match kind {
            kind if body::is_json(&kind) => json_upload(request, uploads).await,
            kind if kind == "multipart/form-data" => form(request, uploads).await,
            kind => Err(body::unsupported(
                &kind,
                "application/json, multipart/form-data, or the code itself as application/zip, text/x-python, \
                 text/javascript, text/plain or application/octet-stream",
            )),
        };
    }
    let mut pieces = Pieces::of(request.into_body(), MAX_CODE_BYTES)?;
    let mut spool = uploads.spool();
    while let Some(piece) = pieces.next().await? {
        spool.write(&piece).await?;
    }
    let content = spool.finish().await?;
    // What is called a zip is one, whatever its first bytes are; otherwise they decide.
    let name = kind.contains("zip").then(|| "code.zip".to_owned());
    Ok(Fields::single("code", Input::File { name, content }))
}

/// A JSON object without code in it.
pub async fn json_fields(request: Request) -> Result<Fields, Problem> {
    body::check_coding(request.headers())?;
    match body::media_type(request.headers()) {
        kind if body::is_json(&kind) => {
            let bytes = body::read(request.into_body(), MAX_SETTINGS_BYTES).await?;
            object(&bytes)
        }
        kind => Err(body::unsupported(&kind, "application/json")),
    }
}

/// A JSON object that may have code in it. An archive goes to the disk as it comes.
async fn json_upload(request: Request, uploads: &Uploads) -> Result<Fields, Problem> {
    let mut pieces = Pieces::of(request.into_body(), MAX_UPLOAD_JSON_BYTES)?;
    let (mut sieve, mut spool) = (Sieve::default(), uploads.spool());
    let (mut held, mut decoded) = (uploads.in_memory(), Vec::new());
    while let Some(piece) = pieces.next().await? {
        sieve.take(&piece, &mut decoded);
        if sieve.kept() > MAX_JSON_TEXT_BYTES {
            return Err(body::too_large(MAX_JSON_TEXT_BYTES));
        }
        held.grow_to(JSON_COPIES * sieve.kept())?;
        if spool.len() + decoded.len() > MAX_CODE_BYTES {
            return Err(body::too_large(MAX_CODE_BYTES));
        }
        spool.write(&decoded).await?;
        decoded.clear();
    }
    let (kept, archive) = sieve.finish();
    let archive = match archive.map(|archive| archive.finish(&mut decoded)) {
        None => None,
        Some(Ok(())) => {
            spool.write(&decoded).await?;
            Some(Ok::<Upload, _>(spool.finish().await?))
        }
        Some(Err(wrong)) => Some(Err(wrong)),
    };
    let mut fields = object(&kept)?;
    fields.archive = archive;
    fields.held = Some(held);
    Ok(fields)
}

fn object(bytes: &[u8]) -> Result<Fields, Problem> {
    match body::json(bytes)? {
        Value::Object(object) => Ok(Fields::from_json(object)),
        other => {
            let rule = format!("must be a JSON object; this is {}", type_of(&other));
            Err(invalid("body", &other, rule).into())
        }
    }
}

async fn form(request: Request, uploads: &Uploads) -> Result<Fields, Problem> {
    let request = body::sipped(request, multipart::MAX_FORM_BYTES)?;
    let form = Multipart::from_request(request, &()).await.map_err(|e| {
        Problem::new(
            crate::http::problem::ProblemCode::InvalidMultipart,
            e.body_text(),
        )
    })?;
    multipart::read(form, uploads).await
}
