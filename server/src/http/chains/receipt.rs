//! The headers of every response to a chain's request.

use std::fmt::Write as _;

use axum::http::{HeaderMap, HeaderValue};

use crate::catalog::ChainReceipt;
use crate::http::answer::{SERVER_TIMING, X_HEARTH_INVOCATION_ID, X_HEARTH_VERSION};
use crate::http::trace::TRACEPARENT;

/// Most hops that `Server-Timing` has an entry for: a longer route's header would exceed what clients take. The history has
/// all of them.
const MAX_ENTRIES: usize = 64;

/// Adds id, version, the times of the hops and the trace parent. Adds nothing else if the request reached no version.
pub fn stamp(headers: &mut HeaderMap, receipt: &ChainReceipt, traceparent: Option<&str>) {
    if let Some(value) = traceparent.and_then(|text| HeaderValue::from_str(text).ok()) {
        headers.insert(TRACEPARENT, value);
    }
    let Some(version) = receipt.version else {
        return;
    };
    if let Ok(id) = HeaderValue::try_from(receipt.id.to_string()) {
        headers.insert(X_HEARTH_INVOCATION_ID, id);
    }
    headers.insert(X_HEARTH_VERSION, HeaderValue::from(version));
    if let Ok(timing) = HeaderValue::try_from(server_timing(receipt)) {
        // Appended: a chain behind HTTP may have timings of its own.
        headers.append(SERVER_TIMING, timing);
    }
}

/// `cart;dur=0.012;desc="3", pay;dur=0.040;desc="4", total;dur=0.071`: an entry for each hop, in milliseconds, with the number
/// of the instance. A hop that was not left has no duration.
fn server_timing(receipt: &ChainReceipt) -> String {
    let mut text = String::with_capacity(40 * (receipt.hops.len().min(MAX_ENTRIES) + 1));
    for hop in receipt.hops.iter().take(MAX_ENTRIES) {
        text.push_str(&hop.member);
        if let Some(us) = hop.duration_us() {
            push_millis(&mut text, us);
        }
        let _ = write!(text, ";desc=\"{}\", ", hop.instance);
    }
    text.push_str("total");
    push_millis(&mut text, receipt.total_us);
    text
}

fn push_millis(text: &mut String, us: u64) {
    // A `String` takes whatever is written.
    let _ = write!(text, ";dur={}.{:03}", us / 1000, us % 1000);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::InvocationId;
    use crate::model::chain::TraceHop;

    fn receipt(hops: usize) -> ChainReceipt {
        let hop = |at: usize| TraceHop {
            member: format!("m{at}"),
            instance: 3,
            is_call: false,
            entered_us: 10,
            left_us: (at != 1).then_some(1022),
        };
        ChainReceipt {
            id: InvocationId::default(),
            version: Some(2),
            hops: (0..hops).map(hop).collect(),
            total_us: 2071,
        }
    }

    #[test]
    fn each_hop_has_an_entry() {
        let mut headers = HeaderMap::new();
        let receipt = receipt(2);
        stamp(&mut headers, &receipt, Some("00-a"));
        assert_eq!(headers["x-hearth-invocation-id"], receipt.id.to_string());
        assert_eq!(headers["x-hearth-version"], "2");
        assert_eq!(headers["traceparent"], "00-a");
        let timing = "m0;dur=1.012;desc=\"3\", m1;desc=\"3\", total;dur=2.071";
        assert_eq!(headers["server-timing"], timing);
    }

    #[test]
    fn a_long_route_has_a_header_of_bounded_length() {
        let timing = server_timing(&receipt(256));
        assert_eq!(timing.matches("desc").count(), MAX_ENTRIES);
        assert!(timing.len() < 4096 && timing.ends_with("total;dur=2.071"));
    }
}
