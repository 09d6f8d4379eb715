//! Arrivals from a function's history.

use std::time::Duration;

use hyper::Method;
use jiff::Timestamp;
use serde_json::Value;

use super::run::ReplayError;
use super::traffic::{ARRIVALS_MAX, Arrival, Traffic};
use crate::duet::events::{EVENTS_MAX, Event, kept};
use crate::platform::client::Client;

/// Invocations of a page.
const PAGE: usize = 1_000;

/// Invocations that are asked for their events: one request each.
const ASKED_MAX: usize = 1_000;

/// An invocation as far as it is replayed.
struct Invocation {
    id: String,
    at: Timestamp,
    bytes: u64,
    is_invoke: bool,
    run_ns: Option<f64>,
    total_ns: Option<f64>,
}

/// The invocations of a function within a time, with the events that were kept. Those whose event was not get the kept one whose size is
/// nearest, and `{}` if there is none.
///
/// # Errors
/// No invocation, too many, or a server that refuses.
pub async fn read(
    client: &Client,
    function: &str,
    from: Timestamp,
    to: Timestamp,
) -> Result<Traffic, ReplayError> {
    let mut found = list(client, function, from, to).await?;
    if found.is_empty() {
        return Err(ReplayError::Empty(function.to_owned()));
    }
    found.reverse();
    let begin = found[0].at;
    let (events, own) = events(client, &found).await?;
    let mut own_events = 0;
    let nearest = |bytes: u64| {
        let sized = events.iter().enumerate();
        let nearest = sized.min_by_key(|(_, event)| bytes.abs_diff(event.text.len() as u64));
        nearest.map_or(0, |(index, _)| index)
    };
    let arrivals = found.iter().zip(&own).map(|(one, own)| {
        own_events += usize::from(own.is_some());
        Arrival {
            at: Duration::try_from(one.at.duration_since(begin)).unwrap_or_default(),
            event: own.unwrap_or_else(|| nearest(one.bytes)),
            // With another event it is another request.
            recorded_run_ns: own.and(one.run_ns),
            recorded_total_ns: own.and(one.total_ns),
        }
    });
    let mut traffic = Traffic {
        source: format!("{function} from {from} to {to}"),
        arrivals: arrivals.collect(),
        events: events.clone(),
        own_events: 0,
    };
    traffic.own_events = own_events;
    if traffic.events.is_empty() {
        traffic.events.push(Event::empty());
    }
    traffic.settle();
    Ok(traffic)
}

/// Newest first.
async fn list(
    client: &Client,
    function: &str,
    from: Timestamp,
    to: Timestamp,
) -> Result<Vec<Invocation>, ReplayError> {
    let mut found = Vec::new();
    let mut before = key(to);
    loop {
        let path = format!("/api/v1/functions/{function}/invocations?limit={PAGE}&before={before}");
        let page = client.send(Method::GET, &path, None).await?.json();
        for item in page["items"].as_array().into_iter().flatten() {
            let Some(one) = invocation(item) else {
                continue;
            };
            if one.at < from {
                return Ok(found);
            }
            if one.at >= to {
                continue;
            }
            if found.len() >= ARRIVALS_MAX {
                return Err(ReplayError::TooMany);
            }
            found.push(one);
        }
        match page["next"].as_str() {
            Some(next) => next.clone_into(&mut before),
            None => return Ok(found),
        }
    }
}

/// What begins a page at a time: ids are UUIDs of version 7, which begin with their time in ms.
fn key(time: Timestamp) -> String {
    let ms = u64::try_from(time.as_millisecond()).unwrap_or(0) & 0xffff_ffff_ffff;
    let (high, low) = (ms >> 16, ms & 0xffff);
    format!("{high:08x}-{low:04x}-7fff-bfff-ffffffffffff")
}

fn invocation(item: &Value) -> Option<Invocation> {
    let succeeded = item["status"] == "succeeded";
    let stage = |name: &str| {
        let us = item["stages_us"][name].as_f64();
        us.filter(|us| succeeded && *us > 0.0).map(|us| us * 1e3)
    };
    Some(Invocation {
        id: item["id"].as_str()?.to_owned(),
        at: item["received_at"].as_str()?.parse().ok()?,
        bytes: item["request_bytes"].as_u64().unwrap_or(0),
        is_invoke: item["trigger"] == "invoke",
        run_ns: stage("run"),
        total_ns: stage("total"),
    })
}

/// Different events that were kept whole, and for each invocation which of them is its own.
async fn events(
    client: &Client,
    found: &[Invocation],
) -> Result<(Vec<Event>, Vec<Option<usize>>), ReplayError> {
    let mut events: Vec<Event> = Vec::new();
    let mut own = vec![None; found.len()];
    // Spread over the window, where there are more.
    let step = found.len().div_ceil(ASKED_MAX).max(1);
    for (one, own) in found.iter().zip(&mut own).step_by(step) {
        // Others have events that only their trigger makes.
        if !one.is_invoke {
            continue;
        }
        let path = format!("/api/v1/invocations/{}", one.id);
        let whole = client.send(Method::GET, &path, None).await?.json();
        let Some(text) = kept(&whole) else {
            continue;
        };
        *own = match events.iter().position(|event| event.text == text) {
            Some(known) => Some(known),
            None if events.len() < EVENTS_MAX => {
                events.push(Event {
                    name: one.id.clone(),
                    text,
                });
                Some(events.len() - 1)
            }
            None => None,
        };
    }
    Ok((events, own))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_page_begins_at_a_time() {
        let time = Timestamp::from_millisecond(0x0190_b5a4_1234).expect("a time");
        assert_eq!(key(time), "0190b5a4-1234-7fff-bfff-ffffffffffff");
    }

    #[test]
    fn only_what_succeeded_has_a_duration() {
        let item = |status: &str| {
            let item = json!({"id": "x", "received_at": "2026-01-02T03:04:05Z", "status": status, "request_bytes": 7,
                "trigger": "invoke", "stages_us": {"run": 12, "total": 0}});
            invocation(&item).expect("an invocation")
        };
        let good = item("succeeded");
        assert_eq!(
            (good.run_ns, good.total_ns, good.bytes),
            (Some(12_000.0), None, 7)
        );
        assert_eq!(item("failed").run_ns, None);
        assert!(invocation(&json!({"id": "x"})).is_none());
    }
}
