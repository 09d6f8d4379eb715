//! `GET /api/v1/experiments` and what is below it.

use axum::Json;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};

use super::id_of;
use crate::http::App;
use crate::http::auth::{Allowed, Read};
use crate::http::path::Path;
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::http::spec::invalid;
use crate::model::{ExperimentDetail, ExperimentView, Page};

/// Longest page.
const MAX_LIMIT: u32 = 200;
const DEFAULT_LIMIT: u32 = 50;

/// List experiments, newest first.
///
/// Pass a page's `next` as `before` to get the following page.
#[utoipa::path(
    get,
    path = "/api/v1/experiments",
    tag = "experiments",
    operation_id = "list_experiments",
    security(("bearer" = ["read"])),
    params(
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 200, description = "Page length, 50 by default"),
        ("before" = Option<String>, Query, description = "`next` of the previous page"),
    ),
    responses((status = 200, description = "One page", body = Page<ExperimentView>)),
    extensions(("x-errors" = json!(["invalid_field"]))),
)]
pub async fn list(
    _: Allowed<Read>,
    State(app): State<App>,
    RawQuery(query): RawQuery,
) -> Result<Json<Page<ExperimentView>>, Problem> {
    let query = Query::parse(query.as_deref(), &["limit", "before"])?;
    let limit = query.number("limit", 1, MAX_LIMIT, DEFAULT_LIMIT)?;
    let before = match query.text("before") {
        None => i64::MAX,
        Some(text) => text.parse().map_err(|_| {
            invalid(
                "before",
                &text.into(),
                "must be the next field of an earlier page",
            )
        })?,
    };
    // One more tells whether there is a next page.
    let mut items = app.lab.list(before, limit + 1).await?;
    let has_next = items.len() > limit as usize;
    items.truncate(limit as usize);
    let last = items.last().filter(|_| has_next);
    let next = last.map(|last| last.id.to_string());
    Ok(Json(Page { items, next }))
}

/// Get an experiment: configuration, progress, result and files.
#[utoipa::path(
    get,
    path = "/api/v1/experiments/{id}",
    tag = "experiments",
    operation_id = "get_experiment",
    security(("bearer" = ["read"])),
    params(("id" = i64, Path, minimum = 1, description = "Number of the experiment")),
    responses((status = 200, description = "The experiment", body = ExperimentDetail)),
    extensions(("x-errors" = json!(["not_found"]))),
)]
pub async fn get(
    _: Allowed<Read>,
    State(app): State<App>,
    Path(id): Path<String>,
) -> Result<Json<ExperimentDetail>, Problem> {
    Ok(Json(app.lab.get(id_of(&id)?).await?))
}

/// Download a file of an experiment.
///
/// A slash in its path is `%2F`.
#[utoipa::path(
    get,
    path = "/api/v1/experiments/{id}/files/{path}",
    tag = "experiments",
    operation_id = "get_experiment_file",
    security(("bearer" = ["read"])),
    params(
        ("id" = i64, Path, minimum = 1, description = "Number of the experiment"),
        ("path" = String, Path, description = "Path of the file"),
    ),
    responses((status = 200, description = "The file, as what its name says", body = Vec<u8>, content_type = "*/*")),
    extensions(("x-errors" = json!(["not_found"]))),
)]
pub async fn file(
    _: Allowed<Read>,
    State(app): State<App>,
    Path((id, path)): Path<(String, String)>,
) -> Result<Response, Problem> {
    download(&app, &id, &path).await
}

/// A file as it is shown, or kept: nothing in it is run in the console's name.
pub async fn download(app: &App, id: &str, path: &str) -> Result<Response, Problem> {
    let content = app.lab.file(id_of(id)?, path).await?;
    let content = content.ok_or_else(|| {
        let shown: String = path.chars().take(80).collect();
        Problem::not_found(format!("file {shown:?} of experiment {id}"))
    })?;
    let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension);
    let (media_type, disposition) = match extension {
        "svg" => ("image/svg+xml", "inline"),
        "json" => ("application/json", "attachment"),
        "csv" => ("text/csv; charset=utf-8", "attachment"),
        "txt" => ("text/plain; charset=utf-8", "attachment"),
        _ => ("application/octet-stream", "attachment"),
    };
    let fixed = |value| HeaderValue::from_static(value);
    let headers = [
        (header::CONTENT_TYPE, fixed(media_type)),
        (header::CONTENT_DISPOSITION, fixed(disposition)),
        (header::X_CONTENT_TYPE_OPTIONS, fixed("nosniff")),
        (
            header::CONTENT_SECURITY_POLICY,
            fixed("default-src 'none'; style-src 'unsafe-inline'; sandbox"),
        ),
        (header::CACHE_CONTROL, fixed("private, max-age=3600")),
    ];
    Ok((headers, content).into_response())
}
