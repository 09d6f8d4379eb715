//! `multipart/form-data` to [`Fields`].

use axum::extract::multipart::{Field, Multipart, MultipartError};

use crate::http::body;
use crate::http::problem::{Problem, ProblemCode};
use crate::uploads::{Upload, Uploads};

use super::code::{MAX_CODE_BYTES, MAX_SOURCE_BYTES};
use super::fields::{Fields, Input, invalid};

/// Longest text field other than the code: no setting needs more, the whole environment is at most 4 KiB.
const MAX_TEXT_BYTES: usize = 64 << 10;
/// Longest text of all fields together: source, and text beside it. It is held in memory.
const MAX_TEXTS_BYTES: usize = MAX_SOURCE_BYTES + (1 << 20);
/// Longest form: code, and text beside it.
pub(super) const MAX_FORM_BYTES: usize = MAX_CODE_BYTES + (1 << 20);
/// Most fields: the settings and an environment of one-letter variables.
const MAX_FIELDS: usize = 2048;

/// Reads a whole form.
pub(super) async fn read(mut form: Multipart, uploads: &Uploads) -> Result<Fields, Problem> {
    let mut fields = Fields::default();
    fields.held = Some(uploads.in_memory());
    let (mut count, mut texts) = (0, 0);
    while let Some(field) = form.next_field().await.map_err(|e| malformed(&e))? {
        count += 1;
        if count > MAX_FIELDS {
            return Err(Problem::new(
                ProblemCode::InvalidMultipart,
                format!("the form has more than {MAX_FIELDS} fields"),
            ));
        }
        let Some(name) = field.name().map(str::to_owned) else {
            return Err(Problem::new(
                ProblemCode::InvalidMultipart,
                "a field of the form has no name",
            ));
        };
        add(&mut fields, &mut texts, uploads, name, field).await?;
    }
    Ok(fields)
}

async fn add(
    fields: &mut Fields,
    texts: &mut usize,
    uploads: &Uploads,
    name: String,
    field: Field<'_>,
) -> Result<(), Problem> {
    let input = match field.file_name().map(str::to_owned) {
        Some(file) if name == "code" => {
            let content = content(field, uploads).await?;
            // Browsers send an empty name for a file that was not chosen.
            if file.is_empty() && content.is_empty() {
                return Ok(());
            }
            Input::File {
                name: Some(file),
                content,
            }
        }
        Some(file) => {
            return Err(invalid(&name, &file.into(), "must be text, not a file").into());
        }
        None => {
            let limit = match name.as_str() {
                "code" => MAX_SOURCE_BYTES,
                _ => MAX_TEXT_BYTES,
            };
            let bytes = text(field, limit, fields, texts).await?;
            let Ok(text) = String::from_utf8(bytes) else {
                return Err(invalid(&name, &"(binary)".into(), "must be UTF-8 text").into());
            };
            Input::Text(text)
        }
    };
    match (name.strip_prefix("env."), input) {
        (Some(variable), Input::Text(value)) => {
            if fields.variables.contains_key(variable) {
                return Err(invalid(&name, &"(hidden)".into(), "must be given once").into());
            }
            fields.variables.insert(variable.to_owned(), value);
            Ok(())
        }
        (_, input) => Ok(fields.add(name, input)?),
    }
}

/// A file, on its way to the disk.
async fn content(mut field: Field<'_>, uploads: &Uploads) -> Result<Upload, Problem> {
    let mut spool = uploads.spool();
    while let Some(chunk) = field.chunk().await.map_err(|e| malformed(&e))? {
        if spool.len() + chunk.len() > MAX_CODE_BYTES {
            return Err(body::too_large(MAX_CODE_BYTES));
        }
        spool.write(&chunk).await?;
    }
    Ok(spool.finish().await?)
}

/// A text field. `texts` counts all of them.
async fn text(
    mut field: Field<'_>,
    limit: usize,
    fields: &mut Fields,
    texts: &mut usize,
) -> Result<Vec<u8>, Problem> {
    let mut bytes = Vec::new();
    while let Some(chunk) = field.chunk().await.map_err(|e| malformed(&e))? {
        *texts += chunk.len();
        if bytes.len() + chunk.len() > limit {
            return Err(body::too_large(limit));
        }
        if *texts > MAX_TEXTS_BYTES {
            return Err(body::too_large(MAX_TEXTS_BYTES));
        }
        if let Some(held) = &mut fields.held {
            held.grow_to(*texts)?;
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

fn malformed(error: &MultipartError) -> Problem {
    body::malformed(error, MAX_FORM_BYTES)
}
