//! Keeps the pages of functions away from the console's.
//!
//! A page runs in the origin of its URL. Below `/fn/` on the console's host that is the console's origin, so every
//! response there, including errors, gets a sandbox (Content Security Policy level 3, 6.3.2) without
//! `allow-same-origin`: scripts run, in an opaque origin that has neither the console's cookies nor its pages. This
//! does not depend on the request, because browsers omit `SameSite=Strict` cookies from exactly the requests that
//! matter. See `server/docs/origins.md`.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::http::problem::{Problem, ProblemCode};

/// Whose origin an answer is served from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) enum Site {
    /// `/fn/{name}` on the console's host.
    Console,
    /// `/fn/{name}` on the listener that belongs to functions, which share its origin with each other.
    Functions,
    /// The function's own host, of which it has all paths.
    Own,
    /// A port of the function's own: an origin of its own, but cookies and orders to browsers are the host's, which it shares.
    Port,
}

/// Set by browsers on the request for a service worker's script (Service Workers, 4.1).
const SERVICE_WORKER: HeaderName = HeaderName::from_static("service-worker");
/// Set by browsers: how the page that makes a request relates to its target (Fetch Metadata, 2.3).
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// Set by browsers: what the answer will be used as (Fetch Metadata, 2.1).
const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");
/// What a page may still do: everything but to be of this origin and to take the whole window elsewhere.
const SANDBOX: HeaderValue = HeaderValue::from_static(
    "sandbox allow-downloads allow-forms allow-modals allow-popups allow-scripts",
);

impl Site {
    /// Gives the answer's page an origin of its own, whatever policy it has besides.
    pub(super) fn isolate(self, headers: &mut HeaderMap) {
        match self {
            Self::Console => {
                headers.append(header::CONTENT_SECURITY_POLICY, SANDBOX);
                // What is not called a script or a style sheet is not used as one.
                let nosniff = HeaderValue::from_static("nosniff");
                headers.insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
            }
            Self::Functions | Self::Own | Self::Port => {}
        }
    }

    /// Refuses what would make the answer part of something else than a page of its own: a service worker, which would
    /// answer for the whole origin, and what a page of the console loads into itself. A sandboxed page is another origin.
    pub(super) fn check(self, path: &str, headers: &HeaderMap) -> Result<(), Problem> {
        let is = |name: &HeaderName, text: &str| {
            headers
                .get(name)
                .is_some_and(|value| value.as_bytes() == text.as_bytes())
        };
        let detail = match self {
            Self::Console if headers.contains_key(SERVICE_WORKER) => {
                "functions share the console's origin here, so service workers are not allowed"
            }
            Self::Console
                if is(&SEC_FETCH_SITE, "same-origin") && !is(&SEC_FETCH_DEST, "document") =>
            {
                "console pages do not load resources from functions"
            }
            // Its scope is the folder of its script: that of `/fn/name` holds all functions.
            Self::Functions
                if headers.contains_key(SERVICE_WORKER)
                    && !path.trim_start_matches("/fn/").contains('/') =>
            {
                "a service worker's script must be below the function's own path"
            }
            Self::Console | Self::Functions | Self::Own | Self::Port => return Ok(()),
        };
        Err(Problem::new(ProblemCode::Forbidden, detail))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(headers: &[(&'static str, &'static str)]) -> bool {
        let headers = headers
            .iter()
            .map(|(name, value)| {
                (
                    HeaderName::from_static(name),
                    HeaderValue::from_static(value),
                )
            })
            .collect();
        Site::Console.check("/fn/f/x", &headers).is_ok()
    }

    #[test]
    fn the_consoles_pages_load_nothing_from_functions() {
        for fine in [
            &[][..],
            &[
                ("sec-fetch-site", "same-origin"),
                ("sec-fetch-dest", "document"),
            ],
            &[("sec-fetch-site", "none"), ("sec-fetch-dest", "document")],
            // A sandboxed page is of no origin: what it loads comes from another site.
            &[
                ("sec-fetch-site", "cross-site"),
                ("sec-fetch-dest", "script"),
            ],
        ] {
            assert!(checked(fine), "{fine:?}");
        }
        for dest in [
            "script",
            "style",
            "worker",
            "sharedworker",
            "iframe",
            "empty",
        ] {
            let headers = [("sec-fetch-site", "same-origin"), ("sec-fetch-dest", dest)];
            assert!(!checked(&headers), "{dest}");
        }
        assert!(!checked(&[("sec-fetch-site", "same-origin")]));
        assert!(!checked(&[("service-worker", "script")]));
        let worker = HeaderMap::from_iter([(SERVICE_WORKER, HeaderValue::from_static("script"))]);
        assert!(Site::Functions.check("/fn/f", &worker).is_err());
        assert!(Site::Functions.check("/fn/f/", &worker).is_ok());
        assert!(Site::Own.check("/", &worker).is_ok());
    }
}
