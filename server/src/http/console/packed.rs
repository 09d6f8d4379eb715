//! Compresses pages for browsers that accept gzip. Streams, files and responses of functions are not handled here.
//!
//! A page contains the session's CSRF token beside text that an attacker may choose, such as a search in its URL. The
//! length of a compressed page would leak the token (BREACH), so it is masked differently in each page
//! ([`csrf`](crate::http::csrf)).

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;
use hearth_web::compress;

/// Longer pages are compressed on a thread that may block: some milliseconds of work are not for one that serves others.
const BLOCKING_FROM_BYTES: usize = 16 << 10;

/// Compresses the page that the request is answered with.
pub async fn pack(request: Request, next: Next) -> Response {
    let accepted = compress::accepts_gzip(request.headers());
    let mut response = next.run(request).await;
    let is_page = response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
    if !is_page {
        return response;
    }
    response
        .headers_mut()
        .append(header::VARY, HeaderValue::from_static("accept-encoding"));
    if !accepted {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    // However long: it is one piece and in memory already.
    let Ok(page) = to_bytes(body, usize::MAX).await else {
        return Response::from_parts(parts, Body::empty());
    };
    let packed = match page.len() {
        ..BLOCKING_FROM_BYTES => compress::page(&page),
        _ => {
            let page = page.clone();
            let work = tokio::task::spawn_blocking(move || compress::page(&page));
            work.await.ok().flatten()
        }
    };
    let Some(packed) = packed else {
        return Response::from_parts(parts, Body::from(page));
    };
    parts.headers.remove(header::CONTENT_LENGTH);
    parts
        .headers
        .insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    Response::from_parts(parts, Body::from(packed))
}
