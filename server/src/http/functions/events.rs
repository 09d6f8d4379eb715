//! `GET /api/v1/functions/{name}/events`: server-sent events.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::response::Sse;
use axum::response::sse::{Event as SseEvent, KeepAlive};
use futures_util::{Stream, stream};
use serde::Serialize;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Interval, MissedTickBehavior};
use utoipa::ToSchema;

use super::{id_of, is_alive};
use crate::history::{Event, LiveHistogram};
use crate::http::App;
use crate::http::auth::{Allowed, Proof, Read};
use crate::http::path::Path;
use crate::http::problem::Problem;
use crate::model::{InstanceCounts, InvocationRecord, Stats};

/// Between two `stats` events.
const PERIOD: Duration = Duration::from_secs(1);
/// Window of the statistics in a `stats` event.
const WINDOW: Duration = Duration::from_secs(60);
/// Most `invocation` events in one period: a browser draws no more, and a busy function would flood the connection.
const MAX_INVOCATIONS: u32 = 50;

/// The data of a `stats` event.
#[derive(Debug, Serialize, ToSchema)]
pub struct StatsEvent {
    /// Latencies since the server started.
    pub histogram: LiveHistogram,
    /// The last 60 seconds.
    pub stats: Stats,
    /// Live instances by state.
    pub instances: InstanceCounts,
    /// Requests waiting for an instance.
    pub queued: u32,
    /// Invocations since the last `stats` event that were not sent because there were more than 50.
    pub skipped: u64,
}

/// Stream a function's events (server-sent events).
///
/// Sends `stats` once per second (see `StatsEvent`) and `invocation` for each finished invocation (see
/// `InvocationRecord`, without log lines), at most 50 per second. Ends when the function is deleted or the server shuts
/// down.
#[utoipa::path(
    get,
    path = "/api/v1/functions/{name}/events",
    tag = "history",
    operation_id = "function_events",
    security(("bearer" = ["read"])),
    params(("name" = String, Path, description = "Name of the function")),
    responses((status = 200, description = "Events", body = StatsEvent, content_type = "text/event-stream")),
    extensions(("x-errors" = json!(["not_found"]))),
)]
pub async fn events(
    asked: Allowed<Read>,
    State(app): State<App>,
    Path(name): Path<String>,
) -> Result<Sse<impl Stream<Item = Result<SseEvent, Infallible>>>, Problem> {
    let id = id_of(&app, &name)?;
    let mut ticks = tokio::time::interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let feed = Feed {
        receiver: app.history.subscribe(id),
        ticks,
        sent: 0,
        skipped: 0,
        app,
        name,
        id,
        proof: asked.proof,
    };
    let events = stream::unfold(feed, |mut feed| async move {
        let event = feed.next().await?;
        Some((Ok(event), feed))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::default()))
}

struct Feed {
    receiver: broadcast::Receiver<Event>,
    ticks: Interval,
    /// `invocation` events in this period.
    sent: u32,
    /// Those that were left out.
    skipped: u64,
    app: App,
    name: String,
    id: i64,
    proof: Proof,
}

impl Feed {
    /// The next event; None at the end.
    async fn next(&mut self) -> Option<SseEvent> {
        loop {
            tokio::select! {
                // The clock first, so that a busy function cannot starve its statistics.
                biased;
                _ = self.ticks.tick() => return self.stats().await,
                event = self.receiver.recv() => match event {
                    Ok(Event::Finished(record)) if self.sent < MAX_INVOCATIONS => {
                        self.sent += 1;
                        if let Some(event) = invocation(&record) {
                            return Some(event);
                        }
                    }
                    Ok(Event::Finished(_)) => self.skipped += 1,
                    Ok(Event::Log(_)) => {}
                    Err(RecvError::Lagged(count)) => self.skipped += count,
                    Err(RecvError::Closed) => return None,
                },
            }
        }
    }

    async fn stats(&mut self) -> Option<SseEvent> {
        if !is_alive(&self.app, &self.name, self.id, &self.proof).await {
            return None;
        }
        let view = self.app.engine.get(&self.name).ok()?;
        let stats = match self.app.history.stats(self.id, WINDOW).await {
            Ok(stats) => stats,
            Err(error) => {
                tracing::warn!(function = self.name, %error, "cannot read statistics");
                Stats::default()
            }
        };
        let data = StatsEvent {
            histogram: self.app.history.live(self.id),
            stats,
            instances: view.instances,
            queued: view.queued,
            skipped: std::mem::take(&mut self.skipped),
        };
        self.sent = 0;
        SseEvent::default().event("stats").json_data(data).ok()
    }
}

fn invocation(record: &InvocationRecord) -> Option<SseEvent> {
    let short = InvocationRecord {
        logs: Vec::new(),
        function: record.function.clone(),
        error: record.error.clone(),
        chain: record.chain.clone(),
        ..*record
    };
    SseEvent::default()
        .event("invocation")
        .json_data(short)
        .ok()
}
