//! `/api/v1/secrets`.

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use serde::Deserialize;
use utoipa::ToSchema;

use super::App;
use super::audit::Audit;
use super::auth::{Allowed, Read, Write};
use super::functions::to_the_end;
use super::path::Path;
use super::problem::{Problem, ProblemCode};
use super::spec;
use crate::model::{Caller, Page, SecretBinding, SecretChange, SecretView};

/// A secret's value.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"value": "sk_live_…"}))]
#[allow(dead_code)]
pub struct PutSecret {
    /// Never shown again.
    #[schema(min_length = 1, max_length = 32768, pattern = "^[^\\u0000]*$")]
    pub value: String,
}

/// List secrets by name, without their values.
#[utoipa::path(
    get,
    path = "/api/v1/secrets",
    tag = "secrets",
    operation_id = "list_secrets",
    security(("bearer" = ["read"])),
    responses((status = 200, description = "All secrets, in one page", body = Page<SecretView>)),
)]
pub async fn list(_: Allowed<Read>, State(app): State<App>) -> Json<Page<SecretView>> {
    let items = app.engine.secrets();
    Json(Page { items, next: None })
}

/// Create a secret, or give it another value.
///
/// Brokered requests carry a new value from the next one on. Functions that have it as an environment variable are started
/// again, without failing a request, before this responds.
#[utoipa::path(
    put,
    path = "/api/v1/secrets/{name}",
    tag = "secrets",
    operation_id = "put_secret",
    security(("bearer" = ["write"])),
    params(("name" = String, Path, description = "Name of the secret")),
    request_body(content = PutSecret, content_type = "application/json"),
    responses(
        (status = 200, description = "It has the new value", body = SecretChange),
        (status = 201, description = "Created", body = SecretChange),
    ),
    extensions(("x-errors" = json!([
        "invalid_json", "bad_request_body", "payload_too_large", "unsupported_media_type", "invalid_field", "shutting_down"
    ]))),
)]
pub async fn put(
    asked: Allowed<Write>,
    State(app): State<App>,
    Path(name): Path<String>,
    request: Request,
) -> Result<(StatusCode, Json<SecretChange>), Problem> {
    spec::secret_name(&name)?;
    let value = spec::secret_value(spec::json_fields(request).await?)?;
    let engine = app.engine.clone();
    let put = to_the_end(async move { engine.put_secret(&name, value).await });
    let (is_new, change) = put.await?;
    tell(&asked.audit, is_new, &change);
    let status = match is_new {
        true => StatusCode::CREATED,
        false => StatusCode::OK,
    };
    Ok((status, Json(change)))
}

/// Delete a secret that no active version of a function uses.
#[utoipa::path(
    delete,
    path = "/api/v1/secrets/{name}",
    tag = "secrets",
    operation_id = "delete_secret",
    security(("bearer" = ["write"])),
    params(("name" = String, Path, description = "Name of the secret")),
    responses((status = 204, description = "Deleted")),
    extensions(("x-errors" = json!(["not_found", "secret_in_use", "shutting_down"]))),
)]
pub async fn delete(
    _: Allowed<Write>,
    State(app): State<App>,
    Path(name): Path<String>,
) -> Result<StatusCode, Problem> {
    to_the_end(async move { app.engine.delete_secret(&name).await }).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Records what became of a secret in the audit log.
pub(super) fn tell(audit: &Audit, is_new: bool, change: &SecretChange) {
    if is_new {
        audit.action("secret.create");
    }
    for (what, functions) in [
        ("restarted", change.restarted.clone()),
        (
            "not restarted",
            change
                .not_restarted
                .iter()
                .map(|not| not.function.clone())
                .collect(),
        ),
    ] {
        if !functions.is_empty() {
            audit.detail(format!("{what} {}", functions.join(" ")));
        }
    }
}

/// Whether a caller may give a function these secrets. One who is limited to some functions may only leave them as they are,
/// or take some away: any secret of the node could be read by a function of theirs.
pub(super) fn may_bind(
    caller: &Caller,
    now: &[SecretBinding],
    then: Option<&[SecretBinding]>,
) -> Result<(), Problem> {
    let adds = then.is_some_and(|then| then.iter().any(|binding| !now.contains(binding)));
    match adds && caller.scope().is_some() {
        true => Err(Problem::new(
            ProblemCode::Forbidden,
            format!(
                "the token \"{}\" is limited to some functions and cannot give them secrets, which belong to no function",
                caller.name()
            ),
        )),
        false => Ok(()),
    }
}
