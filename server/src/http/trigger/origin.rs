//! Keeping a function's pages away from the console, whose origin they share.
//!
//! A page below `/fn/` could read and press what the console shows to whoever is logged in there. To a browser that is
//! logged in, answers therefore carry a sandbox (Content Security Policy level 3, 6.3.2) without `allow-same-origin`:
//! scripts run, in an origin of their own that has neither the console's cookies nor its pages. All others get what the
//! function answered. Service workers would outlive that choice, so their scripts are not served at all.
//!
//! A page that was opened before the log-in and is still open is not reached by this. Who lets people deploy whom they do
//! not trust gives the console a host name of its own, in a proxy in front.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::http::auth::{SESSION_COOKIE, cookie};
use crate::http::problem::{Code, Problem};

/// Set by browsers on the request for a service worker's script (Service Workers, 4.1).
const SERVICE_WORKER: HeaderName = HeaderName::from_static("service-worker");
/// What a page may still do: everything but to be of this origin and to take the whole window elsewhere.
const SANDBOX: HeaderValue = HeaderValue::from_static(
    "sandbox allow-downloads allow-forms allow-modals allow-popups allow-scripts",
);

/// Whether the request comes from a browser with a session of the console.
pub(super) fn has_session(headers: &HeaderMap) -> bool {
    cookie(headers, SESSION_COOKIE).is_some()
}

/// Gives the answer's page an origin of its own, whatever policy it has besides.
pub(super) fn isolate(headers: &mut HeaderMap) {
    headers.append(header::CONTENT_SECURITY_POLICY, SANDBOX);
}

/// Refuses the script of a service worker.
pub(super) fn refuse_service_worker(headers: &HeaderMap) -> Result<(), Problem> {
    if headers.contains_key(SERVICE_WORKER) {
        let detail = "functions share the console's origin, where there are no service workers";
        return Err(Problem::new(Code::Forbidden, detail));
    }
    Ok(())
}
