//! A rendered template as an HTTP response, with the headers every page of the console carries.

use askama::Template;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

/// What a page may load and do: named files of its own and nothing else, no inline script or style, no frame around it.
/// Images may be in the page itself (`data:`), which loads nothing.
///
/// Two policies, both of which hold: the first limits a page to its own origin, the second to what lies below `/static/`,
/// because functions answer below `/fn/` of the same origin. A source with a path has to name a host, and the name by which
/// a browser knows this server is lost where a proxy replaces it.
pub const CSP: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
     font-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none', \
     script-src *:*/static/; style-src *:*/static/; img-src *:*/static/ data:; font-src *:*/static/; worker-src 'none'";

const HEADERS: [(HeaderName, &str); 8] = [
    (CONTENT_TYPE, "text/html; charset=utf-8"),
    (CONTENT_SECURITY_POLICY, CSP),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
    // Not `no-referrer`: with it browsers send `Origin: null` on the console's own forms.
    (REFERRER_POLICY, "same-origin"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    // Pages of other origins, functions' among them, do not get a page's bytes into their process.
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
    // Pages show a user's data and hold the session's CSRF token.
    (CACHE_CONTROL, "no-store"),
];

/// A whole page.
pub fn page(status: StatusCode, template: &impl Template) -> Response {
    match template.render() {
        Ok(html) => with_headers(status, html),
        // A template of ours fails only when formatting one of its values does, which none of them does.
        Err(error) => with_headers(
            StatusCode::INTERNAL_SERVER_ERROR,
            format!(
                "<!doctype html><title>Hearth</title><p>The page could not be rendered: {error}.\n"
            ),
        ),
    }
}

/// A fragment that htmx swaps into a page. Same headers: a fragment's URL can be opened as well.
pub fn partial(template: &impl Template) -> Response {
    page(StatusCode::OK, template)
}

/// A fragment as text, for a stream. One of ours fails only when formatting one of its values does, which none does.
pub fn fragment(template: &impl Template) -> String {
    template.render().unwrap_or_default()
}

fn with_headers(status: StatusCode, html: String) -> Response {
    let mut response = (status, html).into_response();
    for (name, value) in HEADERS {
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    response
}
