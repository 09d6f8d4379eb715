//! `GET /api/v1/audit`.

use axum::Json;
use axum::extract::{RawQuery, State};

use super::actions;
use crate::http::App;
use crate::http::auth::{Admin, Allowed};
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::http::spec::invalid;
use crate::model::{AuditFilter, AuditRecord, InvalidField, Page};

/// Longest page: bounds one answer's size and one query's time.
const MAX_LIMIT: u32 = 1000;
const DEFAULT_LIMIT: u32 = 50;

/// List the audit log, newest first: who changed what, and who logged in or failed to.
///
/// Pass a page's `next` as `before` to get the following page. Filters match whole names and are combined with AND.
/// Records are kept as long as retention says and cannot be changed or removed.
#[utoipa::path(
    get,
    path = "/api/v1/audit",
    tag = "accounts",
    operation_id = "list_audit",
    security(("bearer" = ["admin"])),
    params(
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 1000, description = "Page length, 50 by default"),
        ("before" = Option<String>, Query, description = "`next` of the previous page"),
        ("actor" = Option<String>, Query, description = "Only actions of this user or token"),
        ("action" = Option<String>, Query, description = "Only this action, such as `function.create`"),
        ("target" = Option<String>, Query, description = "Only actions on this function, user or token"),
    ),
    responses((status = 200, description = "One page", body = Page<AuditRecord>)),
    extensions(("x-errors" = json!(["invalid_field"]))),
)]
pub async fn audit(
    _: Allowed<Admin>,
    State(app): State<App>,
    RawQuery(query): RawQuery,
) -> Result<Json<Page<AuditRecord>>, Problem> {
    let known = ["limit", "before", "actor", "action", "target"];
    let query = Query::parse(query.as_deref(), &known)?;
    let limit = query.number("limit", 1, MAX_LIMIT, DEFAULT_LIMIT)?;
    let before = query.text("before");
    let filter = filter(
        query.text("actor"),
        query.text("action"),
        query.text("target"),
    )?;
    match app.store.audit(&filter, before, limit).await? {
        Some(page) => Ok(Json(page)),
        None => {
            let sent = before.unwrap_or_default().into();
            Err(invalid("before", &sent, "must be the next field of an earlier page").into())
        }
    }
}

/// A filter; empty texts are none.
///
/// # Errors
/// When there is no such action.
pub fn filter(
    actor: Option<&str>,
    action: Option<&str>,
    target: Option<&str>,
) -> Result<AuditFilter, InvalidField> {
    let given = |text: Option<&str>| {
        let text = text.unwrap_or_default().trim();
        (!text.is_empty()).then(|| text.to_owned())
    };
    let action = given(action);
    match &action {
        Some(unknown) if !actions::ALL.contains(&unknown.as_str()) => Err(invalid(
            "action",
            &unknown.as_str().into(),
            format!("must be one of {}", actions::ALL.join(", ")),
        )),
        _ => Ok(AuditFilter {
            actor: given(actor),
            action,
            target: given(target),
        }),
    }
}
