//! `/functions/{name}/versions`: what every version changed, any two compared, the way back to any of them.

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use hearth_web::pages::{Moment, VersionActivatePage, VersionDiffPage, VersionRow, VersionsPage};
use hearth_web::respond;
use jiff::Timestamp;
use serde::Deserialize;

use crate::engine::VersionChange;
use crate::http::App;
use crate::http::functions::version_code;
use crate::http::problem::Problem;
use crate::model::Right;

use super::code_files::blocking;
use super::form::Submitted;
use super::function::{Notice, notice};
use super::guard::go;
use super::session::Viewer;
use super::{commands, diff, view};

/// `GET /functions/{name}/versions`.
pub async fn page(
    State(app): State<App>,
    Extension(viewer): Extension<Viewer>,
    Path(name): Path<String>,
    Query(query): Query<Notice>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    viewer.needs(Right::Read)?;
    let function = app.engine.get(&name).await?;
    let mut chrome = viewer.chrome();
    chrome.notice = notice(&query.notice, &function);
    let now = Timestamp::now();
    let versions = app.engine.version_changes(&name).await?;
    let page = VersionsPage {
        chrome,
        head: view::head(&app, &function).await?,
        versions: versions
            .into_iter()
            .map(|change| row(change, now))
            .collect(),
        commands: commands::versions(&headers, &function),
    };
    Ok(respond::page(StatusCode::OK, &page))
}

fn row(change: VersionChange, now: Timestamp) -> VersionRow {
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
        author: None,
        code_sha256: version.code_sha256,
        code_bytes: version.code_bytes,
        before,
        code,
        settings: diff::settings(settings),
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
    let function = app.engine.get(&name).await?;
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

/// `GET /functions/{name}/versions/{version}/activate`: asks.
pub async fn ask(
    State(app): State<App>,
    Extension(viewer): Extension<Viewer>,
    Path((name, version)): Path<(String, String)>,
) -> Result<Response, Problem> {
    viewer.needs(Right::Write)?;
    let version = number(&name, &version)?;
    let function = app.engine.get(&name).await?;
    if function.active_version == version {
        return Ok(Redirect::to(&format!("/functions/{name}/versions")).into_response());
    }
    app.engine.code(&name, Some(version)).await?;
    let page = VersionActivatePage {
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
    app.engine.activate(&name, version).await?;
    let page = format!("/functions/{name}/versions?notice=activated");
    Ok(go(&submitted.headers, &page))
}

fn number(name: &str, version: &str) -> Result<u32, Problem> {
    version
        .parse()
        .map_err(|_| Problem::not_found(format_args!("version {version:?} of \"{name}\"")))
}
