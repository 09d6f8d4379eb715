//! `/functions/{name}/logs`: follows and searches a function's log.

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use hearth_web::pages::{LogLineRow, LogsPage, LogsPartial, LogsView};
use hearth_web::respond;
use serde::Deserialize;

use crate::history::SearchText;
use crate::http::App;
use crate::http::functions::no_function;
use crate::http::problem::Problem;
use crate::http::spec;
use crate::model::{InvocationId, LogEntry, Right};

use super::guard::{is_htmx, push_url};
use super::session::Viewer;
use super::view;

/// Lines the page begins with before it follows.
const NEWEST: u32 = 200;
/// Lines of a page of a search.
const FOUND: u32 = 100;
/// Most lines shown of one invocation.
const OF_INVOCATION: u32 = 2000;

/// The page's query.
#[derive(Debug, Default, Deserialize)]
pub struct LogQuery {
    #[serde(default)]
    q: String,
    invocation: Option<String>,
    before: Option<String>,
}

/// `GET /functions/{name}/logs`: the page, or its lines alone for htmx.
pub async fn page(
    State(app): State<App>,
    Extension(viewer): Extension<Viewer>,
    Path(name): Path<String>,
    Query(query): Query<LogQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    viewer.needs(Right::Read)?;
    let logs = find(&app, &name, query).await?;
    if !is_htmx(&headers) {
        let function = app.engine.get(&name)?;
        let page = LogsPage {
            chrome: viewer.chrome(),
            head: view::head(&app, &function).await?,
            logs: logs.0,
        };
        return Ok(respond::page(StatusCode::OK, &page));
    }
    let (logs, before) = logs;
    let address = logs.address(before.as_deref());
    let mut response = respond::partial(&LogsPartial { logs });
    push_url(&headers, &address, &mut response);
    Ok(response)
}

/// The lines, and the key they begin before.
async fn find(
    app: &App,
    name: &str,
    query: LogQuery,
) -> Result<(LogsView, Option<String>), Problem> {
    let id = app.engine.id_of(name).ok_or_else(|| no_function(name))?;
    let before = query.before.filter(|before| !before.is_empty());
    let invocation = query.invocation.filter(|id| !id.is_empty());
    let key = match invocation.as_deref().map(str::parse) {
        None => None,
        Some(Ok(key)) => Some(InvocationId(key)),
        Some(Err(_)) => {
            return Err(Problem::not_found("invocation with this id"));
        }
    };
    let mut view = LogsView {
        function: name.to_owned(),
        query: query.q.trim().to_owned(),
        invocation,
        wrong: None,
        lines: Vec::new(),
        is_older: before.is_some(),
        next: None,
    };
    match (view.query.as_str(), key) {
        ("", None) => {
            let lines = app.history.logs(id, NEWEST).await?;
            view.lines = lines.into_iter().map(whole).collect();
        }
        ("", Some(key)) => {
            let lines = app.history.logs_of(id, key, OF_INVOCATION).await?;
            view.lines = lines.into_iter().map(whole).collect();
        }
        (typed, key) => match SearchText::parse(typed) {
            Err(error) => view.wrong = Some(error.to_string()),
            Ok(text) => {
                let page = app
                    .history
                    .search(id, &text, key, before.as_deref(), FOUND)
                    .await?;
                let page = page.ok_or_else(|| {
                    let value = before.as_deref().unwrap_or_default().into();
                    spec::invalid(
                        "before",
                        &value,
                        "must be a key returned with an earlier page",
                    )
                })?;
                view.next = page.next;
                let found = page.items.into_iter();
                view.lines = found.map(|line| row(line.entry, line.pieces)).collect();
            }
        },
    }
    Ok((view, before))
}

fn whole(entry: LogEntry) -> LogLineRow {
    let pieces = vec![(false, entry.line.text.clone())];
    row(entry, pieces)
}

fn row(entry: LogEntry, pieces: Vec<(bool, String)>) -> LogLineRow {
    LogLineRow {
        invocation: entry.invocation.map(|id| id.to_string()),
        line: view::log(entry.line),
        pieces,
    }
}
