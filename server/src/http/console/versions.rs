//! `/functions/{name}/versions`: lists, compares and activates versions.

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use hearth_web::chrome::{Badge, Tone};
use hearth_web::pages::{
    DeployProblem, GateRow, Moment, VersionActivatePage, VersionDiffPage, VersionRow, VersionsPage,
};
use hearth_web::respond;
use jiff::Timestamp;
use serde::Deserialize;

use crate::engine::{EngineError, VersionChange};
use crate::http::App;
use crate::http::functions::{gate, version_code};
use crate::http::problem::Problem;
use crate::lab::{Deployed, LabError};
use crate::model::{
    AuditFilter, AuditRecord, GateState, Revision, Right, VersionGate, VersionView,
};

use super::code_files::blocking;
use super::form::Submitted;
use super::function::{FunctionNotice, notice};
use super::guard::go;
use super::meanwhile::{self, Meanwhile};
use super::session::Viewer;
use super::{commands, diff, view};

/// Records of the audit log that are looked through for who made a version: bounds the time of a page.
const RECORDS: u32 = 500;

/// `GET /functions/{name}/versions`.
pub async fn page(
    State(app): State<App>,
    Extension(viewer): Extension<Viewer>,
    Path(name): Path<String>,
    Query(query): Query<FunctionNotice>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    viewer.needs(Right::Read)?;
    let function = app.engine.get(&name)?;
    let mut chrome = viewer.chrome();
    chrome.notice = notice(&query.notice, &function);
    let now = Timestamp::now();
    let versions = app.engine.version_changes(&name).await?;
    let records = app.store.audit(&of(&name), None, RECORDS).await?;
    let records = records.map(|page| page.items).unwrap_or_default();
    let page = VersionsPage {
        chrome,
        head: view::head(&app, &function).await?,
        versions: versions
            .into_iter()
            .map(|change| {
                let author = author(&change.version, &records);
                row(change, author, now)
            })
            .collect(),
        commands: commands::versions(&headers, &function),
    };
    Ok(respond::page(StatusCode::OK, &page))
}

/// What was done to a function.
fn of(name: &str) -> AuditFilter {
    AuditFilter {
        target: Some(name.to_owned()),
        ..AuditFilter::default()
    }
}

/// Who made a version: whom the audit log names in the first record about it since it is there. An earlier one is about
/// a former function of the same name, a later one about going back to it.
fn author(version: &VersionView, newest_first: &[AuditRecord]) -> Option<String> {
    let number = version.version.to_string();
    newest_first
        .iter()
        .rev()
        .filter(|record| record.time >= version.created_at)
        .find(|record| match record.action.as_str() {
            "function.create" => version.version == 1,
            "function.deploy" | "function.settings" => record
                .detail
                .split(", ")
                .any(|detail| detail.strip_prefix("version ") == Some(number.as_str())),
            _ => false,
        })
        .map(|record| record.actor.clone())
        .filter(|actor| !actor.is_empty())
}

fn row(change: VersionChange, author: Option<String>, now: Timestamp) -> VersionRow {
    let VersionChange {
        version,
        before,
        code,
        settings,
    } = change;
    VersionRow {
        version: version.version,
        active: version.active,
        created: Moment {
            at: version.created_at,
            now,
        },
        author,
        code_sha256: version.code_sha256,
        code_bytes: version.code_bytes,
        before,
        code,
        settings: diff::settings(settings),
        notes: view::messages(&version.notes),
        gate: version.gate.map(gate_row),
        starts: view::starts(version.starts_by, version.start_reason.as_ref()),
    }
}

fn gate_row(gate: VersionGate) -> GateRow {
    GateRow {
        badge: match gate.state {
            GateState::Pending => Badge::new("being compared", Tone::Busy),
            GateState::Passed => Badge::new("passed the gate", Tone::Good),
            GateState::Refused => Badge::new("refused by the gate", Tone::Bad),
            GateState::NotJudged => Badge::new("not judged", Tone::Bad),
            GateState::Overridden => Badge::new("gate overridden", Tone::Quiet),
        },
        against: gate.against,
        experiment: gate.experiment,
        reason: gate.reason.unwrap_or_default(),
    }
}

/// `?version=…&against=…`.
#[derive(Debug, Deserialize)]
pub struct Pair {
    version: u32,
    against: u32,
}

/// `GET /functions/{name}/versions/compare?version=…&against=…`: the form's way to a comparison's own address.
pub async fn compare(Path(name): Path<String>, Query(pair): Query<Pair>) -> Redirect {
    let Pair { version, against } = pair;
    Redirect::to(&format!(
        "/functions/{name}/versions/{version}/diff?against={against}"
    ))
}

/// `?against=…`.
#[derive(Debug, Deserialize)]
pub struct Against {
    against: Option<u32>,
}

/// `GET /functions/{name}/versions/{version}/diff?against=…`; the version before it unless another is named.
pub async fn compared(
    State(app): State<App>,
    Extension(viewer): Extension<Viewer>,
    Path((name, version)): Path<(String, String)>,
    Query(Against { against }): Query<Against>,
) -> Result<Response, Problem> {
    viewer.needs(Right::Read)?;
    let after = number(&name, &version)?;
    let function = app.engine.get(&name)?;
    let numbers: Vec<u32> = app
        .engine
        .versions(&name)
        .await?
        .iter()
        .map(|version| version.version)
        .collect();
    let before = against
        .or_else(|| numbers.iter().copied().find(|number| *number < after))
        .unwrap_or(after);
    let (old, new) = (
        app.engine.code(&name, Some(before)).await?,
        app.engine.code(&name, Some(after)).await?,
    );
    let settings = app.engine.setting_changes(&name, before, after).await?;
    let mut diff = blocking(move || diff::between(&old.path(), &new.path())).await?;
    diff.settings = diff::settings(settings);
    let page = VersionDiffPage {
        chrome: viewer.chrome(),
        head: view::head(&app, &function).await?,
        before,
        after,
        numbers,
        diff,
    };
    Ok(respond::page(StatusCode::OK, &page))
}

/// `GET /functions/{name}/versions/{version}/code.zip`.
pub async fn download(
    State(app): State<App>,
    Extension(viewer): Extension<Viewer>,
    Path((name, version)): Path<(String, String)>,
) -> Result<Response, Problem> {
    viewer.needs(Right::Read)?;
    version_code::archive(&app, &name, &version).await
}

/// `?shown=…`.
#[derive(Debug, Deserialize)]
pub struct Overtaken {
    shown: Option<String>,
}

/// `GET /functions/{name}/versions/{version}/activate?shown=…`: asks for confirmation; asks again if somebody else has
/// changed the function since the state `shown`.
pub async fn ask(
    State(app): State<App>,
    Extension(viewer): Extension<Viewer>,
    Path((name, version)): Path<(String, String)>,
    Query(Overtaken { shown }): Query<Overtaken>,
) -> Result<Response, Problem> {
    viewer.needs(Right::Write)?;
    let version = number(&name, &version)?;
    let function = app.engine.get(&name)?;
    if function.active_version == version {
        return Ok(Redirect::to(&format!("/functions/{name}/versions")).into_response());
    }
    app.engine.code(&name, Some(version)).await?;
    let problem = match shown {
        None => None,
        Some(shown) => {
            let since = Meanwhile::since(&app, &Revision::named(&shown), &function).await?;
            Some(DeployProblem {
                title: format!("{} Nothing was changed.", since.title),
                detail: since.changes,
                ..DeployProblem::default()
            })
        }
    };
    let page = VersionActivatePage {
        problem,
        chrome: viewer.chrome(),
        head: view::head(&app, &function).await?,
        version,
    };
    Ok(respond::page(StatusCode::OK, &page))
}

/// `POST /functions/{name}/versions/{version}/activate`.
pub async fn activate(
    State(app): State<App>,
    Path((name, version)): Path<(String, String)>,
    submitted: Submitted,
) -> Result<Response, Problem> {
    submitted.viewer.needs(Right::Write)?;
    let version = number(&name, &version)?;
    let audit = submitted.viewer.audit();
    let meant = meanwhile::meant(&submitted.form);
    let overrides = submitted.form.trimmed("override_gate") == "true";
    if overrides {
        submitted.viewer.needs(Right::Admin)?;
    }
    let by = submitted.viewer.caller();
    let page = match app.lab.activate(&name, version, meant, by, overrides).await {
        Ok(deployed) => {
            audit.detail(gate::detail(&deployed));
            let notice = match deployed {
                Deployed::Active { .. } => "activated",
                Deployed::Gated(_) => "gated",
            };
            format!("/functions/{name}/versions?notice={notice}")
        }
        Err(LabError::Engine(EngineError::Changed(_))) => {
            audit.nothing_changed();
            // Invalid revisions are not repeated in URLs.
            let shown = submitted.form.trimmed("revision");
            let shown = shown.replace(|c: char| !c.is_ascii_digit() && c != '.', "");
            format!("/functions/{name}/versions/{version}/activate?shown={shown}")
        }
        Err(error) => return Err(error.into()),
    };
    Ok(go(&submitted.headers, &page))
}

fn number(name: &str, version: &str) -> Result<u32, Problem> {
    version
        .parse()
        .map_err(|_| Problem::not_found(format_args!("version {version:?} of \"{name}\"")))
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use crate::model::ActorKind;

    fn version(number: u32, seconds: i64) -> VersionView {
        serde_json::from_value(serde_json::json!({
            "version": number, "active": false, "code_sha256": "", "code_bytes": 0, "handler": "main.handler",
            "memory_mb": 128, "timeout_ms": 1, "max_concurrency": 1, "idle_timeout_s": 1, "min_instances": 0,
            "keep_warm": false, "template_idle_timeout_s": 0, "start": "auto", "starts_by": "fork", "start_reason": null,
            "network": "none", "body": "base64", "public": false, "triggers": [], "port_limits": {}, "env": {}, "secrets": [],
            "notes": [], "created_at": Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds),
        }))
        .expect("a version")
    }

    fn record(actor: &str, action: &str, detail: &str, seconds: i64) -> AuditRecord {
        AuditRecord {
            id: seconds,
            time: Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds),
            actor_kind: ActorKind::User,
            actor: actor.into(),
            action: action.into(),
            target: "f".into(),
            address: String::new(),
            request_id: String::new(),
            detail: detail.into(),
        }
    }

    #[test]
    fn a_version_is_whose_change_made_it() {
        let mut records = vec![
            record("former", "function.deploy", "version 2", 5),
            record("ada", "function.create", "", 11),
            record("grace", "function.deploy", "version 2", 21),
            record("edsger", "function.activate", "version 1", 30),
            record("edsger", "function.activate", "version 2", 31),
            record(
                "tony",
                "function.settings",
                "memory_mb, env, version 13",
                41,
            ),
        ];
        records.reverse();
        let found = |number, seconds| author(&version(number, seconds), &records);
        assert_eq!(found(1, 10).as_deref(), Some("ada"));
        assert_eq!(found(2, 20).as_deref(), Some("grace"));
        assert_eq!(found(13, 40).as_deref(), Some("tony"));
        assert_eq!(found(3, 40), None);
    }
}
