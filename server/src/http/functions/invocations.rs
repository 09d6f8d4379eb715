//! `GET /api/v1/functions/{name}/invocations`.

use axum::Json;
use axum::extract::{RawQuery, State};

use super::id_of;
use crate::http::App;
use crate::http::auth::{Allowed, Read};
use crate::http::filter;
use crate::http::path::Path;
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::http::spec::invalid;
use crate::model::{InvocationRecord, Page, StartKind, Status, Trigger};

/// Longest page: bounds one answer's size and one query's time.
const MAX_LIMIT: u32 = 1000;
const DEFAULT_LIMIT: u32 = 50;

/// List a function's invocations, newest first.
///
/// Pass a page's `next` as `before` to get the following page. With a filter that matches little, a page may be short
/// or empty and still have a `next`: each request scans a few thousand invocations at most. `logs` is empty here; `GET
/// /api/v1/invocations/{id}` returns the lines.
#[utoipa::path(
    get,
    path = "/api/v1/functions/{name}/invocations",
    tag = "history",
    operation_id = "list_invocations",
    security(("bearer" = ["read"])),
    params(
        ("name" = String, Path, description = "Name of the function"),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 1000, description = "Page length, 50 by default"),
        ("before" = Option<String>, Query, description = "`next` of the previous page"),
        ("status" = Option<Status>, Query, description = "Only with this outcome"),
        ("start" = Option<StartKind>, Query, description = "Only with this start kind"),
        ("version" = Option<u32>, Query, minimum = 1, maximum = 4294967295u32, description = "Only of this version"),
        ("trigger" = Option<Trigger>, Query, description = "Only with this trigger"),
        ("min_us" = Option<u64>, Query, maximum = 3600000000u32, description = "Only with at least this total duration"),
        ("max_us" = Option<u64>, Query, maximum = 3600000000u32, description = "Only with at most this total duration"),
    ),
    responses((status = 200, description = "One page", body = Page<InvocationRecord>)),
    extensions(("x-errors" = json!(["not_found", "invalid_field"]))),
)]
pub async fn invocations(
    _: Allowed<Read>,
    State(app): State<App>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Json<Page<InvocationRecord>>, Problem> {
    let id = id_of(&app, &name)?;
    let mut known = vec!["limit", "before"];
    known.extend(filter::PARAMETERS);
    let query = Query::parse(query.as_deref(), &known)?;
    let limit = query.number("limit", 1, MAX_LIMIT, DEFAULT_LIMIT)?;
    let filter = filter::of_query(&query)?;
    let before = query.text("before");
    match app.history.list(id, &filter, before, limit).await? {
        Some(page) => Ok(Json(page)),
        None => {
            let sent = before.unwrap_or_default().into();
            Err(invalid("before", &sent, "must be the next field of an earlier page").into())
        }
    }
}
