//! `/audit`: who changed what.

use axum::Extension;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use hearth_web::pages::{AuditPage, AuditRow, Moment};
use hearth_web::respond;
use jiff::Timestamp;
use serde::Deserialize;

use crate::http::App;
use crate::http::audit::{ACTIONS, filter};
use crate::http::problem::Problem;
use crate::http::spec;
use crate::model::{ActorKind, AuditRecord, Right};

use super::session::Viewer;

/// Records on a page.
const ROWS: u32 = 50;

/// `?actor=…&action=…&target=…&before=…`.
#[derive(Debug, Default, Deserialize)]
pub struct AuditQuery {
    #[serde(default)]
    actor: String,
    #[serde(default)]
    action: String,
    #[serde(default)]
    target: String,
    #[serde(default)]
    before: String,
}

/// `GET /audit`.
pub async fn page(
    State(app): State<App>,
    Extension(viewer): Extension<Viewer>,
    Query(query): Query<AuditQuery>,
) -> Result<Response, Problem> {
    viewer.needs(Right::Admin)?;
    let filter = filter(Some(&query.actor), Some(&query.action), Some(&query.target))?;
    let before = Some(query.before).filter(|before| !before.is_empty());
    let found = app
        .store
        .audit(&filter, before.as_deref(), ROWS)
        .await?
        .ok_or_else(|| {
            let value = before.as_deref().unwrap_or_default().into();
            spec::invalid(
                "before",
                &value,
                "must be a key returned with an earlier page",
            )
        })?;
    let now = Timestamp::now();
    let page = AuditPage {
        chrome: viewer.chrome(),
        rows: found
            .items
            .into_iter()
            .map(|record| row(record, now))
            .collect(),
        actions: ACTIONS,
        actor: filter.actor.unwrap_or_default(),
        action: filter.action.unwrap_or_default(),
        target: filter.target.unwrap_or_default(),
        before,
        next: found.next,
    };
    Ok(respond::page(StatusCode::OK, &page))
}

fn row(record: AuditRecord, now: Timestamp) -> AuditRow {
    AuditRow {
        time: Moment {
            at: record.time,
            now,
        },
        kind: match record.actor_kind {
            ActorKind::User => "user",
            ActorKind::Token => "token",
            ActorKind::Nobody => "",
        },
        actor: record.actor,
        action: record.action,
        target: record.target,
        address: record.address,
        request_id: record.request_id,
        detail: record.detail,
    }
}
