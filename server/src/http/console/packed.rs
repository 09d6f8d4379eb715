//! Compresses pages for browsers that accept gzip. Streams, files and responses of functions are not handled here.
//!
//! A page contains the session's CSRF token beside text that an attacker may choose, such as a search in its URL. The
//! length of a compressed page would leak the token (BREACH), so it is masked differently in each page
//! ([`csrf`](crate::http::csrf)).

use axum::http::{Extensions, HeaderMap, StatusCode, Version, header};
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{And, Predicate, SizeAbove};

/// Shorter pages fit into one packet uncompressed.
const FROM_BYTES: u64 = 1024;
/// Most of the gain at a third of the cost of the best level.
const LEVEL: i32 = 4;

type IsPage = fn(StatusCode, Version, &HeaderMap, &Extensions) -> bool;

/// Compresses the pages among the responses.
pub fn layer() -> CompressionLayer<And<SizeAbove, IsPage>> {
    CompressionLayer::new()
        .quality(CompressionLevel::Precise(LEVEL))
        .compress_when(SizeAbove::new(FROM_BYTES).and(is_page as IsPage))
}

fn is_page(_: StatusCode, _: Version, headers: &HeaderMap, _: &Extensions) -> bool {
    headers
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"))
}
