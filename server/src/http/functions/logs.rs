//! `GET /api/v1/functions/{name}/logs`.

use std::collections::HashMap;
use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use serde_json::json;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Interval;

use super::{id_of, is_alive};
use crate::history::{Event, SearchText};
use crate::http::App;
use crate::http::auth::{Allowed, Proof, Read};
use crate::http::path::Path;
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::http::spec::invalid;
use crate::model::{InvalidField, InvocationId, LogEntry};

/// Most stored lines in one answer.
const MAX_LIMIT: u32 = 10_000;
const DEFAULT_LIMIT: u32 = 1000;
/// Where a search continues.
const X_HEARTH_NEXT: HeaderName = HeaderName::from_static("x-hearth-next");
/// How often a follower looks whether the function is still there.
const ALIVE_CHECK: Duration = Duration::from_secs(1);

/// Get log lines, oldest first, one JSON object per line.
///
/// With `follow=true`, new lines follow the stored ones as they are written, until the function is deleted. A reader
/// that is too slow misses lines and gets an object `{"skipped": n}` instead.
///
/// With `q`, returns the newest `limit` lines that contain all search terms: words, `"phrases"` and prefixes of at
/// least three letters (`conn*`). If there are older ones, the header `X-Hearth-Next` holds the value to pass as
/// `before`. `invocation` restricts the result to one invocation.
#[utoipa::path(
    get,
    path = "/api/v1/functions/{name}/logs",
    tag = "history",
    operation_id = "function_logs",
    security(("bearer" = ["read"])),
    params(
        ("name" = String, Path, description = "Name of the function"),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 10000, description = "Maximum number of stored lines, 1000 by default"),
        ("follow" = Option<bool>, Query, description = "Follow new lines; not with q, invocation or before"),
        ("q" = Option<String>, Query, pattern = "[\\p{L}\\p{N}]", description = "Search terms"),
        ("invocation" = Option<uuid::Uuid>, Query, description = "Only lines of this invocation"),
        ("before" = Option<String>, Query, description = "`X-Hearth-Next` of the previous response to the same q"),
    ),
    responses((status = 200, description = "Lines", body = LogEntry, content_type = "application/x-ndjson")),
    extensions(("x-errors" = json!(["not_found", "invalid_field"]))),
)]
pub async fn logs(
    asked: Allowed<Read>,
    State(app): State<App>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, Problem> {
    let id = id_of(&app, &name)?;
    let known = ["limit", "follow", "q", "invocation", "before"];
    let query = Query::parse(query.as_deref(), &known)?;
    let limit = query.number("limit", 1, MAX_LIMIT, DEFAULT_LIMIT)?;
    let follow = query.flag("follow")?;
    let alone = known[2..].iter().find(|name| query.text(name).is_some());
    if let Some(name) = alone.filter(|_| follow) {
        let rule = format!("cannot be combined with {name}");
        return Err(invalid("follow", &"true".into(), rule).into());
    }
    let invocation = query.text("invocation").map(invocation_id).transpose()?;
    if let Some(typed) = query.text("q") {
        return search(&app, id, typed, invocation, query.text("before"), limit).await;
    }
    if let Some(before) = query.text("before") {
        return Err(invalid("before", &before.into(), "needs q").into());
    }
    if let Some(invocation) = invocation {
        let lines = app.history.logs_of(id, invocation, limit).await?;
        return Ok(answer(Body::from(text_of(&lines))));
    }
    // Listening starts before reading, so that no line falls between; what comes twice is dropped again.
    let receiver = follow.then(|| app.history.subscribe(id));
    let stored = app.history.logs(id, limit).await?;
    let text = text_of(&stored);
    let body = match receiver {
        None => Body::from(text),
        Some(receiver) => {
            let first = stream::iter((!text.is_empty()).then(|| Ok(Bytes::from(text))));
            let follower = Follower {
                seen: seen(&stored),
                receiver,
                ticks: tokio::time::interval(ALIVE_CHECK),
                app,
                name,
                id,
                proof: asked.proof,
            };
            Body::from_stream(first.chain(follower.lines()))
        }
    };
    Ok(answer(body))
}

/// The newest lines that have all words, oldest first.
async fn search(
    app: &App,
    function: i64,
    typed: &str,
    invocation: Option<InvocationId>,
    before: Option<&str>,
    limit: u32,
) -> Result<Response, Problem> {
    let text =
        SearchText::parse(typed).map_err(|error| invalid("q", &typed.into(), error.to_string()))?;
    let page = app
        .history
        .search(function, &text, invocation, before, limit)
        .await?;
    let Some(mut page) = page else {
        let sent = before.unwrap_or_default().into();
        return Err(invalid(
            "before",
            &sent,
            "must be the X-Hearth-Next header of an earlier response",
        )
        .into());
    };
    page.items.reverse();
    let lines: Vec<LogEntry> = page.items.into_iter().map(|line| line.entry).collect();
    let mut response = answer(Body::from(text_of(&lines)));
    if let Some(next) = page.next.and_then(|next| HeaderValue::try_from(next).ok()) {
        response.headers_mut().insert(X_HEARTH_NEXT, next);
    }
    Ok(response)
}

fn invocation_id(text: &str) -> Result<InvocationId, InvalidField> {
    match text.parse() {
        Ok(id) => Ok(InvocationId(id)),
        Err(_) => Err(invalid(
            "invocation",
            &text.into(),
            "must be the id of an invocation",
        )),
    }
}

fn text_of(entries: &[LogEntry]) -> Vec<u8> {
    let mut text = Vec::new();
    for entry in entries {
        push_line(&mut text, entry);
    }
    text
}

fn answer(body: Body) -> Response {
    let mut response = Response::new(body);
    let kind = HeaderValue::from_static("application/x-ndjson");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

fn push_line(text: &mut Vec<u8>, value: &impl serde::Serialize) {
    // Log entries are strings, numbers and times, and a Vec takes all: this cannot fail.
    if serde_json::to_writer(&mut *text, value).is_ok() {
        text.push(b'\n');
    }
}

type Key = (Option<uuid::Uuid>, i64, String);

fn key(entry: &LogEntry) -> Key {
    let micros = entry.line.time.as_microsecond();
    let text = entry.line.text.clone();
    (entry.invocation.map(|id| id.0), micros, text)
}

/// How often each stored line occurs.
fn seen(stored: &[LogEntry]) -> HashMap<Key, u32> {
    let mut seen = HashMap::new();
    for entry in stored {
        *seen.entry(key(entry)).or_default() += 1;
    }
    seen
}

struct Follower {
    seen: HashMap<Key, u32>,
    receiver: broadcast::Receiver<Event>,
    ticks: Interval,
    app: App,
    name: String,
    id: i64,
    proof: Proof,
}

impl Follower {
    fn lines(self) -> impl Stream<Item = Result<Bytes, Infallible>> {
        stream::unfold(self, |mut this| async move {
            let line = this.next().await?;
            Some((Ok(line), this))
        })
    }

    /// The next line; None at the end.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            tokio::select! {
                event = self.receiver.recv() => match event {
                    Ok(Event::Log(entry)) if self.is_new(&entry) => {
                        let mut text = Vec::new();
                        push_line(&mut text, &*entry);
                        return Some(text.into());
                    }
                    Ok(_) => {}
                    Err(RecvError::Lagged(count)) => {
                        let mut text = Vec::new();
                        push_line(&mut text, &json!({"skipped": count}));
                        return Some(text.into());
                    }
                    Err(RecvError::Closed) => return None,
                },
                _ = self.ticks.tick() => {
                    if !is_alive(&self.app, &self.name, self.id, &self.proof).await {
                        return None;
                    }
                }
            }
        }
    }

    fn is_new(&mut self, entry: &LogEntry) -> bool {
        if self.seen.is_empty() {
            return true;
        }
        match self.seen.get_mut(&key(entry)) {
            Some(count) if *count > 0 => {
                *count -= 1;
                false
            }
            _ => true,
        }
    }
}
