//! `GET /api/v1/functions/{name}/invocations`.

use axum::Json;
use axum::extract::{RawQuery, State};
use serde_json::Value;

use super::id_of;
use crate::http::App;
use crate::http::auth::{Allowed, Read};
use crate::http::path::Path;
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::http::spec::invalid;
use crate::model::{InvalidField, InvocationRecord, Page, Status};

/// Longest page: bounds one answer's size and one query's time.
const MAX_LIMIT: u32 = 1000;
const DEFAULT_LIMIT: u32 = 50;
const STATUS_RULE: &str = "must be one of queued, running, succeeded, failed, timed_out, crashed, out_of_memory, cancelled, dead";

/// A function's history, newest first.
///
/// Pass a page's `next` as `before` to get the following one. `logs` is empty here; `GET /api/v1/invocations/{id}` has
/// the lines.
#[utoipa::path(
    get,
    path = "/api/v1/functions/{name}/invocations",
    tag = "history",
    operation_id = "list_invocations",
    security(("bearer" = ["read"])),
    params(
        ("name" = String, Path, description = "Name of the function"),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 1000, description = "Length of the page, 50 by default"),
        ("before" = Option<String>, Query, description = "`next` of an earlier page"),
        ("status" = Option<Status>, Query, description = "Only those that ended so"),
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
    let query = Query::parse(query.as_deref(), &["limit", "before", "status"])?;
    let limit = query.number("limit", 1, MAX_LIMIT, DEFAULT_LIMIT)?;
    let status = query.text("status").map(status).transpose()?;
    let before = query.text("before");
    match app.history.list(id, status, before, limit).await? {
        Some(page) => Ok(Json(page)),
        None => {
            let sent = before.unwrap_or_default().into();
            Err(invalid("before", &sent, "must be the next of an earlier page").into())
        }
    }
}

fn status(text: &str) -> Result<Status, InvalidField> {
    serde_json::from_value(Value::from(text))
        .map_err(|_| invalid("status", &text.into(), STATUS_RULE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_named_by_the_rule_parses() {
        let names = STATUS_RULE.strip_prefix("must be one of ").unwrap();
        for name in names.split(", ") {
            assert!(status(name).is_ok(), "{name}");
        }
        assert_eq!(status("ok").unwrap_err().field, "status");
    }
}
