//! `multipart/form-data` to [`Fields`].

use axum::extract::multipart::{Field, Multipart, MultipartError};
use bytes::BytesMut;

use crate::http::body;
use crate::http::problem::{Code, Problem};
use crate::http::uploads;

use super::code::MAX_CODE_BYTES;
use super::fields::{Fields, Input, invalid};

/// Longest text field other than the code: no setting needs more, the whole environment is at most 4 KiB.
const MAX_TEXT_BYTES: usize = 64 << 10;
/// Longest form: code, and text beside it.
pub(super) const MAX_FORM_BYTES: usize = MAX_CODE_BYTES + (1 << 20);
/// Most fields: the settings and an environment of one-letter variables.
const MAX_FIELDS: usize = 2048;

/// Reads a whole form.
pub(super) async fn read(mut form: Multipart) -> Result<Fields, Problem> {
    let mut fields = Fields::default();
    let mut count = 0;
    while let Some(field) = form.next_field().await.map_err(|e| malformed(&e))? {
        count += 1;
        if count > MAX_FIELDS {
            return Err(Problem::new(
                Code::InvalidMultipart,
                format!("the form has more than {MAX_FIELDS} fields"),
            ));
        }
        let Some(name) = field.name().map(str::to_owned) else {
            return Err(Problem::new(
                Code::InvalidMultipart,
                "a field of the form has no name",
            ));
        };
        add(&mut fields, name, field).await?;
    }
    Ok(fields)
}

async fn add(fields: &mut Fields, name: String, field: Field<'_>) -> Result<(), Problem> {
    let file_name = field.file_name().map(str::to_owned);
    let limit = match name.as_str() {
        "code" => MAX_CODE_BYTES,
        _ => MAX_TEXT_BYTES,
    };
    let (bytes, held) = content(field, limit).await?;
    if file_name.is_some() && name != "code" {
        let shown = file_name.unwrap_or_default();
        return Err(invalid(&name, &shown.into(), "must be text, not a file").into());
    }
    let input = match file_name {
        // Browsers send an empty name for a file that was not chosen.
        Some(file) if file.is_empty() && bytes.is_empty() => return Ok(()),
        Some(file) => Input::File {
            name: Some(file),
            bytes: uploads::kept(bytes.freeze(), held),
        },
        None => match String::from_utf8(bytes.into()) {
            Ok(text) => Input::Text(text),
            Err(_) => {
                return Err(invalid(&name, &"(binary)".into(), "must be UTF-8 text").into());
            }
        },
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

async fn content(
    mut field: Field<'_>,
    limit: usize,
) -> Result<(BytesMut, Option<uploads::Held>), Problem> {
    let mut bytes = BytesMut::new();
    let mut held = None;
    while let Some(chunk) = field.chunk().await.map_err(|e| malformed(&e))? {
        let length = bytes.len() + chunk.len();
        if length > limit {
            return Err(body::too_large(limit));
        }
        uploads::hold(&mut held, length)?;
        bytes.extend_from_slice(&chunk);
    }
    Ok((bytes, held))
}

fn malformed(error: &MultipartError) -> Problem {
    body::malformed(error, MAX_FORM_BYTES)
}
