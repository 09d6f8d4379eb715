//! `GET /live`: live updates of the open page, one stream per page.
//!
//! The query says what the page shows: `overview=1`, `list=1&q=…` (the list's own query), `function=NAME` (the head of
//! a function's pages), `latency=NAME&window=5m`, or `alive=1` for the connection alone. Once a second the stream sends
//! what changed. It takes the newest sample whenever the connection can accept data, so that a slow client queues
//! nothing. It ends when the server drains or the session ends.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;

use axum::Extension;
use axum::extract::{Query, State};
use axum::http::HeaderMap;
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use futures_util::{Stream, stream};
use hearth_web::live::Values;
use hearth_web::pages::FunctionHeadPartial;
use hearth_web::respond::fragment;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::history::LatencyReader;
use crate::http::App;
use crate::http::cookies;
use crate::http::functions::no_function;
use crate::http::functions::stats::{DEFAULT_WINDOW, window};
use crate::http::problem::Problem;
use crate::live::Sample;
use crate::model::{HeatColumn, Latency, Right};

use super::functions::{Followed, FunctionsQuery};
use super::session::Viewer;
use super::view;
use super::{latency, overview};

/// Seconds between two looks at whether the session still lives.
const SESSION_CHECK: u32 = 3;

/// What the page shows.
#[derive(Debug, Default, Deserialize)]
pub struct Topics {
    overview: Option<String>,
    list: Option<String>,
    function: Option<String>,
    latency: Option<String>,
    window: Option<String>,
}

/// `GET /live`.
pub async fn stream(
    State(app): State<App>,
    Extension(viewer): Extension<Viewer>,
    Query(topics): Query<Topics>,
    Query(list): Query<FunctionsQuery>,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Problem> {
    viewer.needs(Right::Read)?;
    // The page reconnects when its stream ends and must then learn that the function is gone.
    if let Some(name) = &topics.function
        && app.engine.id_of(name).is_none()
    {
        return Err(no_function(name));
    }
    let mut samples = app.live.watch();
    // The newest one is news.
    samples.mark_changed();
    let latency = topics
        .latency
        .map(|name| {
            let window = window(topics.window.as_deref().unwrap_or(DEFAULT_WINDOW))?;
            let id = app.engine.id_of(&name).ok_or_else(|| no_function(&name))?;
            Ok::<_, Problem>(LatencyFeed {
                reader: app.history.latency(id, window),
                sent: HashMap::new(),
            })
        })
        .transpose()?;
    let followed = topics
        .list
        .map(|_| Followed::new(&app.live.board_now(), &list));
    let feed = Feed {
        samples,
        secret: cookies::session(&headers).unwrap_or_default().to_owned(),
        overview: topics.overview.is_some(),
        followed,
        function: topics.function,
        finished: None,
        latency,
        sent: Values::default(),
        sent_stale: false,
        seconds: 0,
        waiting: vec![hello(&app)],
        app,
    };
    let events = stream::unfold(feed, |mut feed| async move {
        let event = feed.next().await?;
        Some((Ok(event), feed))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::default()))
}

/// The first event: which run of the server this is.
fn hello(app: &App) -> Event {
    let started = app.live.started().as_microsecond();
    Event::default().event("hello").data(started.to_string())
}

struct Feed {
    app: App,
    samples: watch::Receiver<Arc<Sample>>,
    /// The session's cookie.
    secret: String,
    overview: bool,
    followed: Option<Followed>,
    function: Option<String>,
    /// Invocations of the function that ever finished.
    finished: Option<u64>,
    latency: Option<LatencyFeed>,
    /// The last values sent to the page.
    sent: Values,
    sent_stale: bool,
    /// Samples that were sent.
    seconds: u32,
    /// Events of this second, last first.
    waiting: Vec<Event>,
}

impl Feed {
    /// The next event; None at the end.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.waiting.pop() {
                return Some(event);
            }
            self.samples.changed().await.ok()?;
            if self.app.engine.is_draining() || !self.is_alive().await {
                return None;
            }
            let sample = self.samples.borrow_and_update().clone();
            self.fill(&sample).await?;
            self.seconds = self.seconds.wrapping_add(1);
        }
    }

    /// Whether the session still is one.
    async fn is_alive(&self) -> bool {
        if !self.seconds.is_multiple_of(SESSION_CHECK) {
            return true;
        }
        // A database that does not answer ends no session.
        !matches!(self.app.store.peek_session(&self.secret).await, Ok(None))
    }

    /// Puts the events of a sample into `waiting`; None when what the page shows is gone.
    async fn fill(&mut self, sample: &Sample) -> Option<()> {
        let board = self.app.live.board(sample);
        let mut values = Values::default();
        if self.overview {
            values.extend(overview::values(&self.app, sample, &board));
            let last = sample.seconds.last().copied().unwrap_or_default();
            let all = (self.seconds == 0).then_some(&sample.seconds);
            self.send("traffic", &Traffic { all, last });
        }
        if let Some(followed) = &self.followed {
            let (cells, stale) = followed.values(&board);
            values.extend(cells);
            if stale && !self.sent_stale {
                self.sent_stale = true;
                self.send("stale", &());
            }
        }
        let mut called = false;
        if let Some(name) = &self.function {
            let function = self.app.engine.get(name).ok()?;
            let head = view::head(&self.app, &function).await.ok()?;
            let finished = self
                .app
                .engine
                .id_of(name)
                .map(|id| self.app.history.lifetime_of(id).0);
            if self.seconds > 0 && finished != self.finished {
                called = true;
            }
            self.finished = finished;
            values.set_html("function-head", fragment(&FunctionHeadPartial { head }));
        }
        if called {
            // Lists of finished invocations fetch new rows.
            self.send("called", &());
        }
        if let Some(latency) = &mut self.latency {
            match latency.next().await {
                Ok(latency) => {
                    values.extend(latency::values(&latency));
                    self.send("latency", &latency);
                }
                Err(error) => tracing::warn!(%error, "cannot read latencies"),
            }
        }
        // Also when nothing changed, so that the page knows that the connection lives.
        self.send("values", &values.since(&self.sent));
        self.sent = values;
        self.waiting.reverse();
        Some(())
    }

    fn send(&mut self, event: &str, data: &impl Serialize) {
        match Event::default().event(event).json_data(data) {
            Ok(event) => self.waiting.push(event),
            Err(error) => tracing::error!(%error, "cannot write an event"),
        }
    }
}

/// Requests and errors in the last second; all of the last minutes at first.
#[derive(Serialize)]
struct Traffic<'s> {
    all: Option<&'s Vec<(u32, u32)>>,
    last: (u32, u32),
}

/// The latency tab: everything once a second, but of the heat map only the columns that changed.
struct LatencyFeed {
    reader: LatencyReader,
    /// Invocations in each column when it was sent.
    sent: HashMap<Timestamp, u64>,
}

impl LatencyFeed {
    async fn next(&mut self) -> Result<Latency, crate::store::StoreError> {
        let mut latency = self.reader.read().await?;
        let columns = std::mem::take(&mut latency.heat_map.columns);
        let mut counts = HashMap::with_capacity(columns.len());
        for column in columns {
            let count = count(&column);
            counts.insert(column.from, count);
            if self.sent.get(&column.from) != Some(&count) {
                latency.heat_map.columns.push(column);
            }
        }
        self.sent = counts;
        Ok(latency)
    }
}

fn count(column: &HeatColumn) -> u64 {
    column.counts.iter().map(|(_, count)| count).sum()
}
