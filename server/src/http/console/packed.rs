//! Compresses pages for browsers that accept gzip. Streams, files and responses of functions are not handled here.
//!
//! A page contains the session's CSRF token beside text that an attacker may choose, such as a search in its URL. The
//! length of a compressed page would leak the token (BREACH), so it is masked differently in each page
//! ([`csrf`](crate::http::csrf)).

use axum::http::{Response, header};
use http_body::Body;
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::Predicate;

/// Shorter pages fit into one packet uncompressed.
const FROM_BYTES: u64 = 1024;
/// Longer pages, such as one with a large result, go as they are: compressing runs on a worker of the runtime, which answers
/// no other request meanwhile, 3 ms for a page of this length.
const UP_TO_BYTES: u64 = 512 << 10;

/// Compresses the pages among the responses. The fastest level takes less than half of level 4's time for half as many bytes
/// again, which matter little on the local network that most pages cross.
pub fn layer() -> CompressionLayer<IsPage> {
    CompressionLayer::new()
        .quality(CompressionLevel::Fastest)
        .compress_when(IsPage)
}

/// Whether a response is a page of a length that is worth it.
#[derive(Debug, Clone, Copy)]
pub struct IsPage;

impl Predicate for IsPage {
    fn should_compress<B: Body>(&self, response: &Response<B>) -> bool {
        let length = response.body().size_hint().exact();
        length.is_some_and(|length| (FROM_BYTES..=UP_TO_BYTES).contains(&length))
            && response
                .headers()
                .get(header::CONTENT_TYPE)
                .is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_compressed_unless_they_are_tiny_or_huge() {
        let compresses = |kind: &str, length: u64| {
            let body = axum::body::Body::from(vec![b'x'; length as usize]);
            let response = Response::builder().header("content-type", kind);
            IsPage.should_compress(&response.body(body).expect("a response"))
        };
        let html = "text/html; charset=utf-8";
        for (length, expected) in [
            (FROM_BYTES - 1, false),
            (FROM_BYTES, true),
            (UP_TO_BYTES, true),
            (UP_TO_BYTES + 1, false),
        ] {
            assert_eq!(compresses(html, length), expected, "{length}");
            assert!(!compresses("application/json", length));
        }
        let stream = axum::body::Body::from_stream(futures_util::stream::pending::<
            Result<bytes::Bytes, std::io::Error>,
        >());
        let response = Response::builder().header("content-type", html);
        assert!(!IsPage.should_compress(&response.body(stream).expect("a response")));
    }
}
