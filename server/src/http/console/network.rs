//! `/functions/{name}/network`: the function's own ports, and traffic and refused destinations, which one click allows.

use std::net::IpAddr;

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use hearth_web::format;
use hearth_web::pages::{
    DestinationRow, Moment, NetworkPage, OwnPorts, OwnPortsPartial, ReachedRow,
};
use hearth_web::respond;
use jiff::Timestamp;

use crate::http::App;
use crate::http::problem::Problem;
use crate::model::{FunctionView, InvalidField, Protocol, Right, Rule};
use crate::network::{DestinationView, Outcome, ReachedView};

use super::form::Submitted;
use super::function::{FunctionNotice, notice};
use super::guard::{go, is_htmx};
use super::session::Viewer;
use super::{ports_view, view};

/// `GET /functions/{name}/network`: the page, or for htmx the ports.
pub async fn page(
    State(app): State<App>,
    Extension(viewer): Extension<Viewer>,
    Path(name): Path<String>,
    Query(query): Query<FunctionNotice>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    viewer.needs(Right::Read)?;
    let ports = OwnPorts {
        can_admin: viewer.may(Right::Admin),
        ..ports_view::function_ports(&app.engine, &name, &app.engine.function_ingress(&name)?)
    };
    if is_htmx(&headers) {
        return Ok(respond::partial(&OwnPortsPartial { ports }));
    }
    let function = app.engine.get(&name)?;
    let seen = app.engine.network(&name).await?;
    let mut chrome = viewer.chrome();
    chrome.notice = notice(&query.notice, &function);
    let totals = seen.totals;
    let page = NetworkPage {
        chrome,
        head: view::head(&app, &function).await?,
        ports,
        policy: seen.network.to_string(),
        dry_run: seen.network.policy().is_some_and(|policy| policy.dry_run),
        is_open: seen.network.is_open(),
        figures: vec![
            ("Sent", format::bytes(totals.bytes_out)),
            ("Received", format::bytes(totals.bytes_in)),
            ("Connections", format::count(totals.connections)),
            ("Refused packets", format::count(totals.refused_packets)),
            ("Names looked up", format::count(totals.names_asked)),
            ("Names refused", format::count(totals.names_refused)),
        ],
        reached: seen.reached.iter().map(reached).collect(),
        destinations: seen.destinations.iter().map(row).collect(),
        suggested: seen.suggested_allow,
    };
    Ok(respond::page(StatusCode::OK, &page))
}

/// The name of a destination and its address, or the address alone.
fn place(name: Option<&str>, address: Option<IpAddr>) -> (String, String) {
    let address = address.map(|address| address.to_string());
    let address = address.unwrap_or_default();
    match name {
        Some(name) => (name.to_owned(), address),
        None => (address, String::new()),
    }
}

fn moment(at: Timestamp) -> Moment {
    Moment {
        at,
        now: Timestamp::now(),
    }
}

fn reached(seen: &ReachedView) -> ReachedRow {
    let (place, address) = place(seen.name.as_deref(), Some(seen.address));
    ReachedRow {
        place,
        address,
        port: format!("{}/{}", seen.port, Protocol::as_str(seen.protocol)),
        connections: format::count(seen.connections),
        sent: format::bytes(seen.bytes_out),
        received: format::bytes(seen.bytes_in),
        last: moment(seen.last_seen),
    }
}

fn row(seen: &DestinationView) -> DestinationRow {
    let (place, address) = place(seen.name.as_deref(), seen.address);
    DestinationRow {
        place,
        address,
        port: match (seen.port, seen.protocol) {
            (Some(port), Some(protocol)) => format!("{port}/{}", Protocol::as_str(protocol)),
            _ => String::new(),
        },
        outcome: match seen.outcome {
            Outcome::Refused => "refused",
            Outcome::Forbidden => "refused: private or reserved",
            Outcome::Limited => "refused: over the limit",
            Outcome::DryRun => "allowed by the dry run",
        },
        count: format::count(seen.count),
        last: moment(seen.last_seen),
        rule: seen.rule.clone().unwrap_or_default(),
    }
}

/// `POST /functions/{name}/network/allow`.
pub async fn allow(
    State(app): State<App>,
    Path(name): Path<String>,
    submitted: Submitted,
) -> Result<Response, Problem> {
    let Submitted {
        viewer,
        form,
        headers,
        ..
    } = submitted;
    viewer.needs(Right::Write)?;
    let text = form.trimmed("rule");
    let rule: Rule = text.parse().map_err(|error| InvalidField {
        field: "rule".into(),
        value: text.clone(),
        rule: format!("{error}"),
    })?;
    let function = app.engine.allow(&name, rule).await?;
    noted(&viewer, &function);
    Ok(go(
        &headers,
        &format!("/functions/{name}/network?notice=saved"),
    ))
}

/// `POST /functions/{name}/network/end-dry-run`.
pub async fn end_dry_run(
    State(app): State<App>,
    Path(name): Path<String>,
    submitted: Submitted,
) -> Result<Response, Problem> {
    let Submitted {
        viewer, headers, ..
    } = submitted;
    viewer.needs(Right::Write)?;
    let function = app.engine.end_dry_run(&name).await?;
    noted(&viewer, &function);
    Ok(go(
        &headers,
        &format!("/functions/{name}/network?notice=saved"),
    ))
}

fn noted(viewer: &Viewer, function: &FunctionView) {
    viewer.audit().detail("network".to_owned());
    let version = function.active_version;
    viewer.audit().detail(format!("version {version}"));
}
