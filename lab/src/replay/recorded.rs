//! Arrivals from a function's history.

use std::time::Duration;

use hyper::Method;
use jiff::Timestamp;
use serde_json::Value;

use super::run::ReplayError;
use super::traffic::{ARRIVALS_MAX, Arrival, Traffic};
use crate::duet::events::{Event, is_replayed, kept, takes_bytes};
use crate::platform::client::Client;

/// Invocations of a page.
const PAGE: usize = 1_000;

/// Invocations that are asked for their events: one request each, and up to 64 KiB of an event.
const ASKED_MAX: usize = 1_000;

/// An invocation as far as it is replayed.
struct Invocation {
    id: String,
    at: Timestamp,
    bytes: u64,
    /// Its event can be sent by an invoke.
    is_replayed: bool,
    run_ns: Option<f64>,
    total_ns: Option<f64>,
}

/// The invocations of a function within a time, with the events that were kept. Those whose event was not get the kept one whose size is
/// nearest, and `{}` if there is none. [`Traffic::source`] says where credentials are hidden.
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
    let takes_bytes = takes_bytes(client, function).await?;
    let events = events(client, &found, takes_bytes).await?;
    Ok(events.sent_to(format!("{function} from {from} to {to}"), &found))
}

/// What the history has of the events of some invocations.
struct Events {
    /// Different ones.
    events: Vec<Event>,
    /// For each invocation, where its own was kept, which it is.
    own: Vec<Option<Own>>,
}

/// An invocation's own event.
#[derive(Clone, Copy)]
struct Own {
    index: usize,
    is_hidden: bool,
}

impl Events {
    /// The invocations, of which there is one at least, as arrivals with these events. Appends to `source` how many have credentials
    /// hidden.
    fn sent_to(self, mut source: String, found: &[Invocation]) -> Traffic {
        let Self { mut events, own } = self;
        let nearest = |bytes: u64| {
            let sized = events.iter().enumerate();
            let nearest = sized.min_by_key(|(_, event)| bytes.abs_diff(event.text.len() as u64));
            nearest.map_or(0, |(index, _)| index)
        };
        let begin = found[0].at;
        let arrivals = found.iter().zip(&own).map(|(one, own)| {
            // With another event it is another request, and without its credentials, too.
            let same = own.filter(|own| !own.is_hidden);
            Arrival {
                at: Duration::try_from(one.at.duration_since(begin)).unwrap_or_default(),
                event: own.map_or_else(|| nearest(one.bytes), |own| own.index),
                recorded_run_ns: same.and(one.run_ns),
                recorded_total_ns: same.and(one.total_ns),
            }
        });
        let arrivals = arrivals.collect();
        let own = || own.iter().flatten();
        let hidden = own().filter(|own| own.is_hidden).count();
        if hidden > 0 {
            source += &format!(", credentials of {hidden} hidden");
        }
        if events.is_empty() {
            events.push(Event::empty());
        }
        let mut traffic = Traffic {
            source,
            arrivals,
            events,
            own_events: own().count(),
        };
        traffic.settle();
        traffic
    }
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
        is_replayed: is_replayed(item),
        run_ns: stage("run"),
        total_ns: stage("total"),
    })
}

/// Asks for the events of invocations.
async fn events(
    client: &Client,
    found: &[Invocation],
    takes_bytes: bool,
) -> Result<Events, ReplayError> {
    let mut events: Vec<Event> = Vec::new();
    let mut own = vec![None; found.len()];
    // Spread over the window, where there are more.
    let step = found.len().div_ceil(ASKED_MAX).max(1);
    for (one, own) in found.iter().zip(&mut own).step_by(step) {
        if !one.is_replayed {
            continue;
        }
        let path = format!("/api/v1/invocations/{}", one.id);
        let whole = client.send(Method::GET, &path, None).await?.json();
        let Some(kept) = kept(&whole, takes_bytes) else {
            continue;
        };
        let known = events.iter().position(|event| event.text == kept.text);
        let index = known.unwrap_or_else(|| {
            events.push(Event {
                name: one.id.clone(),
                text: kept.text,
            });
            events.len() - 1
        });
        *own = Some(Own {
            index,
            is_hidden: kept.is_hidden,
        });
    }
    Ok(Events { events, own })
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

    #[test]
    fn what_lacks_its_event_or_its_credentials_is_not_set_beside_what_was_recorded() {
        let event = |text: &str| Event {
            name: "one".to_owned(),
            text: text.to_owned(),
        };
        let found: Vec<Invocation> = [10, 10, 40, 4]
            .into_iter()
            .zip(0..)
            .map(|(bytes, second)| Invocation {
                id: String::new(),
                at: Timestamp::from_second(second).expect("a time"),
                bytes,
                is_replayed: true,
                run_ns: Some(7.0),
                total_ns: Some(9.0),
            })
            .collect();
        let own = |index, is_hidden| Some(Own { index, is_hidden });
        let events = Events {
            events: vec![event("[1]"), event(&"1".repeat(30))],
            own: vec![own(1, false), own(1, true), None, None],
        };
        let traffic = events.sent_to("x".to_owned(), &found);
        assert_eq!(
            (traffic.source.as_str(), traffic.own_events),
            ("x, credentials of 1 hidden", 2)
        );
        let sent = traffic.arrivals.iter();
        let sent: Vec<_> = sent
            .map(|one| (one.at.as_secs(), one.event, one.recorded_run_ns))
            .collect();
        assert_eq!(
            sent,
            [(0, 1, Some(7.0)), (1, 1, None), (2, 1, None), (3, 0, None)]
        );
        let events = Events {
            events: Vec::new(),
            own: vec![None; 4],
        };
        let traffic = events.sent_to("x".to_owned(), &found);
        assert_eq!((traffic.source.as_str(), traffic.own_events), ("x", 0));
        assert_eq!(traffic.events, [Event::empty()]);
    }
}
