//! Middleware of every page: checks the session and the origin of changing requests, and renders problems as pages.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use hearth_web::chrome::Chrome;
use hearth_web::format::encode;
use hearth_web::pages::ErrorPage;
use hearth_web::respond;

use crate::http::App;
use crate::http::audit::Audit;
use crate::http::cookies;
use crate::http::problem::{Problem, ProblemCode};
use crate::http::request_id::RequestId;

use super::session::{Viewer, local_path};

/// Set by htmx on each of its requests.
const HX_REQUEST: HeaderName = HeaderName::from_static("hx-request");
/// The page a request of htmx was made from.
const HX_CURRENT_URL: HeaderName = HeaderName::from_static("hx-current-url");
/// Set by `poll.js`: nobody asked for it, a page that is open did.
const POLL: HeaderName = HeaderName::from_static("x-hearth-poll");
/// What the browser's address bar is to say, with an entry in its history.
const HX_PUSH_URL: HeaderName = HeaderName::from_static("hx-push-url");
/// What it is to say, without one.
const HX_REPLACE_URL: HeaderName = HeaderName::from_static("hx-replace-url");
/// Sends the whole page elsewhere.
pub const HX_REDIRECT: HeaderName = HeaderName::from_static("hx-redirect");
/// Set by browsers: how the page that makes a request relates to us.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Whether htmx asks, so that a partial is wanted.
pub fn is_htmx(headers: &HeaderMap) -> bool {
    headers.contains_key(HX_REQUEST)
}

/// Redirects, with and without htmx.
pub fn go(headers: &HeaderMap, path: &str) -> Response {
    match HeaderValue::try_from(path) {
        Ok(value) if is_htmx(headers) => (StatusCode::OK, [(HX_REDIRECT, value)]).into_response(),
        _ => Redirect::to(path).into_response(),
    }
}

/// Says what the browser's address bar is to hold after a swap. An address that it holds already gets no second entry in the
/// history: *Back* would seem dead.
pub fn push_url(headers: &HeaderMap, address: &str, response: &mut Response) {
    let current = headers
        .get(HX_CURRENT_URL)
        .and_then(|url| url.to_str().ok())
        .and_then(path_of);
    let name = match current == Some(address) {
        true => HX_REPLACE_URL,
        false => HX_PUSH_URL,
    };
    if let Ok(address) = HeaderValue::try_from(address) {
        response.headers_mut().insert(name, address);
    }
}

/// Lets requests with a session through, with their [`Viewer`]; sends others to the login.
pub async fn sessions(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let id = request_id(&request);
    let htmx = is_htmx(request.headers());
    if let Err(problem) = same_origin(&request) {
        return present(problem, None, htmx, &id);
    }
    let found = match cookies::session(request.headers()) {
        // An open page is not a user: it does not extend the session.
        Some(secret) if request.headers().contains_key(POLL) => {
            app.store.peek_session(secret).await
        }
        Some(secret) => app.store.find_session(secret).await,
        None => Ok(None),
    };
    let viewer = match found {
        Ok(Some(session)) => {
            let audit = request.extensions().get::<Audit>().cloned();
            Viewer::new(session, id.clone(), audit.unwrap_or_default())
                .at(request.uri().path(), request.headers())
        }
        Ok(None) => return to_login(&request),
        Err(error) => return present(error.into(), None, htmx, &id),
    };
    let chrome = viewer.chrome();
    request.extensions_mut().insert(viewer);
    let response = next.run(request).await;
    pages_for_problems(response, Some(chrome), htmx, &id)
}

/// For the login page: no session, but the same care for where a request comes from.
pub async fn unauthenticated(request: Request, next: Next) -> Response {
    let id = request_id(&request);
    let htmx = is_htmx(request.headers());
    if let Err(problem) = same_origin(&request) {
        return present(problem, None, htmx, &id);
    }
    let response = next.run(request).await;
    pages_for_problems(response, None, htmx, &id)
}

/// A page for an address that does not exist, if a browser is looking for a page.
pub fn not_found(request: &Request) -> Option<Response> {
    let wants_page = request.method().is_safe()
        && !is_htmx(request.headers())
        && request
            .headers()
            .get(header::ACCEPT)
            .and_then(|accept| accept.to_str().ok())
            .is_some_and(|accept| accept.contains("text/html"));
    wants_page.then(|| {
        let problem = Problem::not_found("page at this address");
        present(problem, None, false, &request_id(request))
    })
}

fn request_id(request: &Request) -> String {
    request
        .extensions()
        .get::<RequestId>()
        .map_or_else(String::new, |id| id.as_str().to_owned())
}

fn pages_for_problems(
    mut response: Response,
    chrome: Option<Chrome>,
    htmx: bool,
    id: &str,
) -> Response {
    match response.extensions_mut().remove::<Problem>() {
        Some(problem) => present(problem, chrome, htmx, id),
        // An address that exists, but not for this method: the router's own answer has no body.
        None if response.status() == StatusCode::METHOD_NOT_ALLOWED => present(
            Problem::new(
                ProblemCode::MethodNotAllowed,
                "this page does not support this method",
            ),
            chrome,
            htmx,
            id,
        ),
        None => response,
    }
}

/// A problem as a page; for htmx as it is, to be shown as a toast.
fn present(problem: Problem, chrome: Option<Chrome>, htmx: bool, id: &str) -> Response {
    if htmx {
        return problem.into_response();
    }
    if let Some(cause) = problem.cause() {
        tracing::error!(request_id = id, cause, "request failed");
    }
    let code = problem.code();
    let page = ErrorPage {
        chrome,
        status: code.status().as_u16(),
        title: match code {
            ProblemCode::NotFound => "Not found".to_owned(),
            ProblemCode::Forbidden => "Not allowed".to_owned(),
            _ => code.title().to_owned(),
        },
        detail: sentence(problem.detail()),
        request_id: id.to_owned(),
    };
    respond::page(code.status(), &page)
}

/// Starts with a capital and ends with a full stop.
pub fn sentence(text: &str) -> String {
    let text = text.trim();
    let mut chars = text.chars();
    let mut out: String = match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => return String::new(),
    };
    if !out.ends_with(['.', '?', '!', '…']) {
        out.push('.');
    }
    out
}

fn to_login(request: &Request) -> Response {
    let headers = request.headers();
    // The page shows a log-in dialog: leaving it would lose the input.
    if is_htmx(headers) {
        return Problem::new(
            ProblemCode::Unauthorized,
            "your session has ended; log in again",
        )
        .into_response();
    }
    let next = match request.uri().path_and_query() {
        Some(path) if request.method().is_safe() => local_path(path.as_str()),
        _ => "/",
    };
    match next {
        "/" => Redirect::to("/login").into_response(),
        next => Redirect::to(&format!("/login?next={}", encode(next))).into_response(),
    }
}

/// `/path?query` of an absolute URL.
fn path_of(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    rest.find('/').map(|slash| &rest[slash..])
}

/// Refuses a changing request that another site's page makes the browser send. Browsers say so in `Sec-Fetch-Site`, or
/// at least in `Origin`; what says neither is no browser, and still needs the session's CSRF token.
fn same_origin(request: &Request) -> Result<(), Problem> {
    if request.method().is_safe() {
        return Ok(());
    }
    let headers = request.headers();
    let text = |name: HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let same = match (text(SEC_FETCH_SITE), text(header::ORIGIN)) {
        (Some(site), _) => matches!(site, "same-origin" | "none"),
        (None, Some(origin)) => {
            let host = text(header::HOST).or(request.uri().authority().map(|a| a.as_str()));
            let origin_host = origin.split_once("://").map(|(_, host)| host);
            origin_host.is_some() && origin_host == host
        }
        (None, None) => true,
    };
    if same {
        return Ok(());
    }
    Err(Problem::new(
        ProblemCode::Forbidden,
        "the request comes from another site",
    ))
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn post(headers: &[(&'static str, &'static str)]) -> Request {
        let mut request = Request::builder().method("POST").uri("/logout");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(Body::empty()).expect("a request")
    }

    #[test]
    fn requests_of_other_sites_are_refused() {
        for good in [
            &[][..],
            &[("sec-fetch-site", "same-origin")],
            &[("host", "h:1"), ("origin", "http://h:1")],
            // A browser that says both decides by the stricter one it computed itself.
            &[
                ("sec-fetch-site", "same-origin"),
                ("host", "inner"),
                ("origin", "https://outer"),
            ],
        ] {
            assert!(same_origin(&post(good)).is_ok(), "{good:?}");
        }
        for bad in [
            &[("sec-fetch-site", "cross-site")][..],
            &[("sec-fetch-site", "same-site")],
            &[("host", "h:1"), ("origin", "http://h:2")],
            &[("host", "h:1"), ("origin", "null")],
            &[("origin", "http://h")],
            &[
                ("sec-fetch-site", "cross-site"),
                ("host", "h"),
                ("origin", "http://h"),
            ],
        ] {
            assert!(same_origin(&post(bad)).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn an_address_is_pushed_once() {
        let pushed = |current: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(HX_CURRENT_URL, HeaderValue::from_static(current));
            let mut response = StatusCode::OK.into_response();
            push_url(&headers, "/functions/f/logs?q=a%20b", &mut response);
            let of = |name: &HeaderName| response.headers().get(name).cloned();
            (of(&HX_PUSH_URL).is_some(), of(&HX_REPLACE_URL).is_some())
        };
        assert_eq!(pushed("http://h:1/functions/f/logs"), (true, false));
        assert_eq!(pushed("http://h:1/functions/f/logs?q=a%20b"), (false, true));
        assert_eq!(pushed("not an address"), (true, false));
    }

    #[test]
    fn only_browsers_get_a_page_for_a_missing_address() {
        let ask = |accept: &str| {
            Request::builder()
                .uri("/nope")
                .header("accept", accept)
                .body(Body::empty())
                .expect("a request")
        };
        let page = not_found(&ask("text/html,*/*")).expect("a page");
        assert_eq!(page.status(), StatusCode::NOT_FOUND);
        assert!(not_found(&ask("*/*")).is_none());
    }

    #[test]
    fn an_expired_session_takes_no_page_away() {
        let inside = to_login(&post(&[
            ("hx-request", "true"),
            ("hx-current-url", "http://h:1/functions/a/code"),
        ]));
        assert_eq!(inside.status(), StatusCode::UNAUTHORIZED);
        assert!(!inside.headers().contains_key(HX_REDIRECT));
        let mut page = Request::new(Body::empty());
        *page.uri_mut() = "/functions/a?status=failed".parse().expect("an address");
        assert_eq!(
            to_login(&page).headers()[header::LOCATION],
            "/login?next=%2Ffunctions%2Fa%3Fstatus%3Dfailed"
        );
        *page.uri_mut() = "//evil.example/".parse().expect("an address");
        assert_eq!(to_login(&page).headers()[header::LOCATION], "/login");
    }

    #[test]
    fn sentences_are_whole() {
        assert_eq!(sentence("there is no page"), "There is no page.");
        assert_eq!(sentence("Really?"), "Really?");
        assert_eq!(sentence(" "), "");
    }
}
