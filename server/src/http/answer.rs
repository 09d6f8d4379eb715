//! The headers of every response to an invocation.

use axum::http::{HeaderMap, HeaderName, HeaderValue};

use super::trace::TRACEPARENT;
use crate::engine::Receipt;
use crate::model::StartKind;

/// `X-Hearth-Invocation-Id`.
pub const X_HEARTH_INVOCATION_ID: HeaderName = HeaderName::from_static("x-hearth-invocation-id");
/// `X-Hearth-Start`.
pub const X_HEARTH_START: HeaderName = HeaderName::from_static("x-hearth-start");
/// `X-Hearth-Version`.
pub const X_HEARTH_VERSION: HeaderName = HeaderName::from_static("x-hearth-version");
/// `Server-Timing`.
pub const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");

/// Adds id, start kind, version, stage times and the trace parent. Adds nothing if there was no invocation (version 0).
pub fn stamp(headers: &mut HeaderMap, receipt: &Receipt, traceparent: Option<&str>) {
    if let Some(value) = traceparent.and_then(|text| HeaderValue::from_str(text).ok()) {
        headers.insert(TRACEPARENT, value);
    }
    if receipt.version == 0 {
        return;
    }
    let mut buffer = uuid::Uuid::encode_buffer();
    let id: &str = receipt.id.0.hyphenated().encode_lower(&mut buffer);
    if let Ok(id) = HeaderValue::from_str(id) {
        headers.insert(X_HEARTH_INVOCATION_ID, id);
    }
    if let Some(start) = receipt.start {
        headers.insert(X_HEARTH_START, HeaderValue::from_static(start_kind(start)));
    }
    headers.insert(X_HEARTH_VERSION, HeaderValue::from(receipt.version));
    if let Ok(timing) = HeaderValue::try_from(server_timing(receipt)) {
        // Appended: a function behind the HTTP trigger may have timings of its own.
        headers.append(SERVER_TIMING, timing);
    }
}

/// The API's name of a start kind.
pub fn start_kind(start: StartKind) -> &'static str {
    match start {
        StartKind::Warm => "warm",
        StartKind::Fork => "fork",
        StartKind::Restore => "restore",
        StartKind::Boot => "boot",
    }
}

/// `queue;dur=0.012, start;dur=0.800;desc="fork", …` in milliseconds. While an answer streams, `recv` and `total` are
/// not known yet and are left out.
fn server_timing(receipt: &Receipt) -> String {
    let stages = &receipt.stages;
    let mut text = String::with_capacity(160);
    let mut add = |name: &str, micros: u64, desc: Option<&str>| {
        if !text.is_empty() {
            text.push_str(", ");
        }
        text.push_str(name);
        text.push_str(";dur=");
        push_millis(&mut text, micros);
        if let Some(desc) = desc {
            text.extend([";desc=\"", desc, "\""]);
        }
    };
    add("queue", stages.queue, None);
    add("start", stages.start, receipt.start.map(start_kind));
    add("send", stages.send, None);
    add("run", stages.run, None);
    if stages.total != 0 {
        add("recv", stages.recv, None);
        add("total", stages.total, None);
    }
    text
}

/// Microseconds as milliseconds with three decimals. Digit by digit: six times in every answer, formatting would cost more
/// than all other headers together.
fn push_millis(text: &mut String, micros: u64) {
    let mut digits = [0; 20];
    let (mut at, mut rest) = (digits.len(), micros);
    while rest > 0 || digits.len() - at < 4 {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    let point = digits.len() - 3;
    text.extend(digits[at..point].iter().map(|&digit| char::from(digit)));
    text.push('.');
    text.extend(digits[point..].iter().map(|&digit| char::from(digit)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{InvocationId, Stages};

    fn receipt() -> Receipt {
        Receipt {
            id: InvocationId::default(),
            version: 3,
            start: Some(StartKind::Fork),
            stages: Stages {
                queue: 0,
                start: 812,
                send: 15,
                run: 1_204_001,
                recv: 7,
                total: 1_204_850,
            },
        }
    }

    #[test]
    fn the_headers_are_the_contracts() {
        let mut headers = HeaderMap::new();
        let receipt = receipt();
        stamp(&mut headers, &receipt, Some("00-a"));
        assert_eq!(headers["x-hearth-invocation-id"], receipt.id.to_string());
        assert_eq!(headers["x-hearth-start"], "fork");
        assert_eq!(headers["x-hearth-version"], "3");
        assert_eq!(headers["traceparent"], "00-a");
        assert_eq!(
            headers["server-timing"],
            "queue;dur=0.000, start;dur=0.812;desc=\"fork\", send;dur=0.015, run;dur=1204.001, recv;dur=0.007, \
             total;dur=1204.850"
        );
    }

    #[test]
    fn milliseconds_have_three_decimals() {
        for micros in [0, 7, 999, 1000, 1001, 12_345_678, u64::MAX] {
            let mut text = String::new();
            push_millis(&mut text, micros);
            assert_eq!(text, format!("{}.{:03}", micros / 1000, micros % 1000));
        }
    }

    #[test]
    fn a_stream_has_no_total_yet_and_no_invocation_has_nothing() {
        let mut receipt = receipt();
        receipt.stages.total = 0;
        assert!(server_timing(&receipt).ends_with("run;dur=1204.001"));
        receipt.version = 0;
        let mut headers = HeaderMap::new();
        stamp(&mut headers, &receipt, None);
        assert!(headers.is_empty());
    }
}
