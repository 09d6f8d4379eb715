//! Request ids: taken from a valid `x-request-id`, otherwise generated; every response has one.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::{HeaderMap, HeaderName, HeaderValue};

/// `x-request-id`.
pub const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Longest id taken over: enough for a UUID or a trace id, too short to fill a log with.
const MAX_ID_BYTES: usize = 128;

/// The id of a request, also found in its extensions.
#[derive(Debug, Clone)]
pub struct RequestId(HeaderValue);

impl RequestId {
    /// The client's id if it is 1 to 128 of `[A-Za-z0-9._~:/+=-]`, else a new one.
    pub fn of(headers: &HeaderMap) -> Self {
        match headers.get(X_REQUEST_ID) {
            Some(value) if is_sane(value.as_bytes()) => Self(value.clone()),
            _ => Self::new(),
        }
    }

    /// A new id: unique over restarts by its first half, within one run by its second.
    fn new() -> Self {
        static RUN: OnceLock<u64> = OnceLock::new();
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let run = *RUN.get_or_init(|| uuid::Uuid::now_v7().as_u64_pair().1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let text = uuid::Uuid::from_u64_pair(run, number).simple();
        let mut buffer = uuid::Uuid::encode_buffer();
        let text: &str = text.encode_lower(&mut buffer);
        // Hexadecimal digits are a valid header value.
        Self(HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static("unknown")))
    }

    /// As text.
    pub fn as_str(&self) -> &str {
        self.0.to_str().unwrap_or("unknown")
    }

    /// As a header.
    pub fn header(&self) -> HeaderValue {
        self.0.clone()
    }
}

fn is_sane(id: &[u8]) -> bool {
    (1..=MAX_ID_BYTES).contains(&id.len())
        && id
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || b"._~:/+=-".contains(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(id: &'static str) -> RequestId {
        let mut headers = HeaderMap::new();
        headers.insert(X_REQUEST_ID, HeaderValue::from_static(id));
        RequestId::of(&headers)
    }

    #[test]
    fn sane_ids_are_kept_and_others_replaced() {
        assert_eq!(of("abc-123").as_str(), "abc-123");
        for odd in ["", "a b", "<script>", "\"x\""] {
            assert_eq!(of(odd).as_str().len(), 32, "{odd}");
        }
        let (one, two) = (RequestId::new(), RequestId::new());
        assert_ne!(one.as_str(), two.as_str());
    }
}
