//! `/chains` and `/chains/{name}`: the list, and a chain with its graph, requests and versions.

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use hearth_web::pages::{
    ChainPage, ChainRow, ChainVersionRow, ChainsPage, Moment, OwnPorts, OwnPortsPartial,
};
use hearth_web::respond;
use jiff::Timestamp;
use serde::Deserialize;

use crate::catalog::CatalogError;
use crate::http::App;
use crate::http::problem::Problem;
use crate::model::chain::{Hop, View};
use crate::model::{Changed, Right};

use super::chain_view::{self, state};
use super::form::Submitted;
use super::guard::{go, is_htmx, sentence};
use super::meanwhile;
use super::ports_view;
use super::session::Viewer;
use super::view;

/// Which part is refreshed, and what the last change did.
#[derive(Debug, Default, Deserialize)]
pub struct ChainQuery {
    #[serde(default)]
    part: String,
    #[serde(default)]
    notice: String,
}

/// `GET /chains`.
pub async fn list(
    State(app): State<App>,
    Extension(viewer): Extension<Viewer>,
    Query(query): Query<ChainQuery>,
) -> Result<Response, Problem> {
    viewer.needs(Right::Read)?;
    let mut page = all(&app, &viewer);
    page.chrome.notice = (query.notice == "deleted").then(|| "Chain deleted.".to_owned());
    Ok(respond::page(StatusCode::OK, &page))
}

/// The list.
pub(super) fn all(app: &App, viewer: &Viewer) -> ChainsPage {
    let now = Timestamp::now();
    let row = |chain: View| ChainRow {
        state: state(chain.state),
        reason: chain.state_reason.clone().unwrap_or_default(),
        version: chain.active_version,
        members: chain.settings.members.keys().cloned().collect(),
        routes: chain.settings.routes.keys().cloned().collect(),
        recent: view::recent_of(app, -chain.id),
        updated: Moment {
            at: chain.updated_at,
            now,
        },
        name: chain.name,
    };
    ChainsPage {
        chrome: viewer.chrome(),
        chains: app.catalog.list().into_iter().map(row).collect(),
        workloads: super::workloads::cards(),
        problem: String::new(),
    }
}

/// `GET /chains/{name}`: the page, or for htmx one of its parts.
pub async fn page(
    State(app): State<App>,
    Extension(viewer): Extension<Viewer>,
    Path(name): Path<String>,
    Query(query): Query<ChainQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    viewer.needs(Right::Read)?;
    let chain = app.catalog.get(&name)?;
    if is_htmx(&headers) {
        return Ok(match query.part.as_str() {
            "live" => respond::partial(&chain_view::live(&chain)),
            "requests" => respond::partial(&chain_view::requests(&app, &chain).await?),
            "ports" => respond::partial(&OwnPortsPartial {
                ports: ports(&app, &viewer, &name)?,
            }),
            _ => return Err(Problem::not_found("part of this page")),
        });
    }
    let mut page = one(&app, &viewer, &headers, &chain).await?;
    page.chrome.notice = match query.notice.as_str() {
        "created" => Some("Chain created.".to_owned()),
        "changed" => Some("Settings saved.".to_owned()),
        "activated" => Some("Version activated.".to_owned()),
        _ => None,
    };
    Ok(respond::page(StatusCode::OK, &page))
}

async fn one(
    app: &App,
    viewer: &Viewer,
    headers: &HeaderMap,
    chain: &View,
) -> Result<ChainPage, Problem> {
    let now = Timestamp::now();
    let versions = app.catalog.versions(&chain.name).await?;
    let routes = &chain.settings.routes;
    let route = routes.keys().next().map_or("", String::as_str);
    let hops = |hops: &Vec<Hop>| hops.iter().map(|hop| hop.as_str().to_owned()).collect();
    Ok(ChainPage {
        chrome: viewer.chrome(),
        live: chain_view::live(chain),
        requests: chain_view::requests(app, chain).await?,
        routes: routes
            .iter()
            .map(|(name, route)| (name.clone(), hops(route)))
            .collect(),
        ports: ports(app, viewer, &chain.name)?,
        versions: versions
            .into_iter()
            .map(|version| ChainVersionRow {
                version: version.version,
                active: version.active,
                created: Moment {
                    at: version.created_at,
                    now,
                },
            })
            .collect(),
        revision: chain.revision().to_string(),
        curl: format!(
            "curl {}/api/v1/chains/{}/routes/{route}/invoke -H \"Authorization: Bearer $HEARTH_TOKEN\" -d '{{}}'",
            view::base_url(headers),
            chain.name
        ),
        problem: String::new(),
    })
}

/// The chain's own ports.
fn ports(app: &App, viewer: &Viewer, name: &str) -> Result<OwnPorts, Problem> {
    Ok(OwnPorts {
        can_admin: viewer.may(Right::Admin),
        ..ports_view::chain_ports(&app.engine, name, &app.catalog.ingress(name)?)
    })
}

/// `POST /chains/{name}/versions/{version}/activate`.
pub async fn activate(
    State(app): State<App>,
    Path((name, version)): Path<(String, u32)>,
    submitted: Submitted,
) -> Result<Response, Problem> {
    submitted.viewer.needs(Right::Write)?;
    submitted
        .viewer
        .audit()
        .detail(format!("version {version}"));
    let meant = meanwhile::meant(&submitted.form);
    match app.catalog.activate(&name, version, meant).await {
        Ok(_) => {
            let next = format!("/chains/{name}?notice=activated");
            Ok(go(&submitted.headers, &next))
        }
        Err(error) => refused(&app, &submitted, &name, error).await,
    }
}

/// `POST /chains/{name}/delete`.
pub async fn delete(
    State(app): State<App>,
    Path(name): Path<String>,
    submitted: Submitted,
) -> Result<Response, Problem> {
    submitted.viewer.needs(Right::Write)?;
    app.catalog.get(&name)?;
    if submitted.form.trimmed("confirm") != name {
        let what = "Type the chain's name to confirm that it is to be deleted.";
        return with_problem(&app, &submitted, &name, what.to_owned()).await;
    }
    let meant = meanwhile::meant(&submitted.form);
    match app.catalog.delete(&name, meant).await {
        Ok(()) => Ok(go(&submitted.headers, "/chains?notice=deleted")),
        Err(error) => refused(&app, &submitted, &name, error).await,
    }
}

/// The page again with the reason, where there is something that the user can do about it.
async fn refused(
    app: &App,
    submitted: &Submitted,
    name: &str,
    error: CatalogError,
) -> Result<Response, Problem> {
    match error {
        CatalogError::Changed(Changed { .. }) => {
            let what = "The chain has changed since this page was loaded. Check it and try again.";
            with_problem(app, submitted, name, what.to_owned()).await
        }
        CatalogError::Invalid(_) | CatalogError::NotStarted(_) | CatalogError::HostExhausted(_) => {
            with_problem(app, submitted, name, sentence(&error.to_string())).await
        }
        other => Err(other.into()),
    }
}

async fn with_problem(
    app: &App,
    submitted: &Submitted,
    name: &str,
    problem: String,
) -> Result<Response, Problem> {
    let chain = app.catalog.get(name)?;
    let mut page = one(app, &submitted.viewer, &submitted.headers, &chain).await?;
    page.problem = problem;
    Ok(respond::page(StatusCode::UNPROCESSABLE_ENTITY, &page))
}
