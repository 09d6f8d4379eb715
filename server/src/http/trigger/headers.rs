//! Filters a function's response headers by what they can do to an origin.
//!
//! On a shared host, only headers known to affect just the response or its page are sent. This is an allowlist, because
//! browsers keep adding headers that affect a whole origin. `X-` headers are application-defined and pass.
//! `X-Hearth-Withheld-Headers` names the headers that were dropped.

use axum::http::{HeaderName, HeaderValue, Method, header};

use super::cookies;
use super::site::Site;

/// Names what was held back.
pub(super) const X_HEARTH_WITHHELD: HeaderName =
    HeaderName::from_static("x-hearth-withheld-headers");

/// Headers that belong to the connection and not to the message (RFC 9110, 7.6.1), and those this server answers itself.
/// `content-length` is among them: the body is streamed, and a wrong length would cut it or break the connection.
const CONNECTION: [&str; 12] = [
    "connection",
    "content-length",
    "date",
    "keep-alive",
    "proxy-authenticate",
    "proxy-connection",
    "te",
    "traceparent",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "x-request-id",
];
/// Orders to a reverse proxy in front, which would serve files or other servers' answers of its own for them.
const PROXY_ORDERS: [&str; 6] = [
    "x-accel-redirect",
    "x-lighttpd-send-file",
    "x-lighttpd-send-tempfile",
    "x-litespeed-location",
    "x-reproxy-url",
    "x-sendfile",
];
/// Headers that only Hearth may set.
const RESERVED_PREFIX: &str = "x-hearth-";
/// What concerns the message or the page made of it and nothing else of its origin. In alphabetical order.
const OF_THE_MESSAGE: [&str; 66] = [
    "accept-patch",
    "accept-post",
    "accept-query",
    "accept-ranges",
    "age",
    "allow",
    "apigw-requestid",
    "baggage",
    "cache-control",
    "cache-status",
    "cdn-cache-control",
    "content-digest",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-location",
    "content-md5",
    "content-range",
    "content-security-policy",
    "content-security-policy-report-only",
    "content-type",
    "correlation-id",
    "cross-origin-embedder-policy",
    "cross-origin-embedder-policy-report-only",
    "cross-origin-opener-policy",
    "cross-origin-opener-policy-report-only",
    "cross-origin-resource-policy",
    "dav",
    "deprecation",
    "digest",
    "document-policy",
    "etag",
    "expires",
    "idempotency-key",
    "last-modified",
    "link",
    "location",
    "lock-token",
    "mime-version",
    "ms-author-via",
    "permissions-policy",
    "pragma",
    "preference-applied",
    "priority",
    "proxy-status",
    "ratelimit",
    "referrer-policy",
    "refresh",
    "repr-digest",
    "request-id",
    "retry-after",
    "server",
    "server-timing",
    "signature",
    "signature-input",
    "sunset",
    "surrogate-control",
    "surrogate-key",
    "timing-allow-origin",
    "traceresponse",
    "tracestate",
    "vary",
    "via",
    "want-content-digest",
    "want-repr-digest",
    "warning",
];
/// Families of the same: an application's own, CORS, quotas, gRPC's status, htmx.
const FAMILIES_OF_THE_MESSAGE: [&str; 5] = ["x-", "access-control-", "ratelimit-", "grpc-", "hx-"];
/// Ways to log in for which a browser asks in a window of its own, naming the host, and whose secrets it then sends to the
/// whole origin.
const ASKED_BY_BROWSERS: [&str; 4] = ["basic", "digest", "negotiate", "ntlm"];

const CLEAR_SITE_DATA: &str = "clear-site-data";
/// What of `Clear-Site-Data` ends at the origin. `"cookies"` and `"*"` clear the cookies of the whole registrable domain
/// (Clear Site Data, 3.1), in which the console may be.
const OWN_SITE_DATA: [&[u8]; 4] = [
    b"\"cache\"",
    b"\"executionContexts\"",
    b"\"prefetchCache\"",
    b"\"storage\"",
];

/// What becomes of a header.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Sent with this value.
    Sent(HeaderValue),
    /// Never a function's to set.
    Dropped,
    /// Not on this site: the answer says so.
    Withheld,
}

/// Judges one header of an answer of the function `function` to a request of this method.
pub(super) fn judge(
    name: &HeaderName,
    value: HeaderValue,
    method: &Method,
    site: Site,
    function: &str,
) -> Verdict {
    let text = name.as_str();
    if CONNECTION.contains(&text) {
        // The answer to HEAD has no body, so its length can only be the function's word.
        let length_of_head = *method == Method::HEAD
            && *name == header::CONTENT_LENGTH
            && value.as_bytes().iter().all(u8::is_ascii_digit);
        return match length_of_head {
            true => Verdict::Sent(value),
            false => Verdict::Dropped,
        };
    }
    if text.starts_with(RESERVED_PREFIX) {
        return Verdict::Dropped;
    }
    if PROXY_ORDERS.contains(&text) {
        return Verdict::Withheld;
    }
    if *name == header::SET_COOKIE {
        return cookies::confine(&value, site, function).map_or(Verdict::Withheld, Verdict::Sent);
    }
    if site == Site::Own {
        return match text == CLEAR_SITE_DATA {
            true => own_site_data(&value).map_or(Verdict::Withheld, Verdict::Sent),
            false => Verdict::Sent(value),
        };
    }
    let passes = match *name == header::WWW_AUTHENTICATE {
        true => !makes_browsers_ask(&value),
        false => is_of_the_message(text),
    };
    match passes {
        true => Verdict::Sent(value),
        false => Verdict::Withheld,
    }
}

/// What is left of a `Clear-Site-Data`.
fn own_site_data(value: &HeaderValue) -> Option<HeaderValue> {
    let kept: Vec<&[u8]> = value
        .as_bytes()
        .split(|&byte| byte == b',')
        .map(<[u8]>::trim_ascii)
        .filter(|part| OWN_SITE_DATA.contains(part))
        .collect();
    if kept.is_empty() {
        return None;
    }
    HeaderValue::from_bytes(&kept.join(&b", "[..])).ok()
}

fn is_of_the_message(name: &str) -> bool {
    OF_THE_MESSAGE.binary_search(&name).is_ok()
        || FAMILIES_OF_THE_MESSAGE
            .iter()
            .any(|family| name.starts_with(family))
}

/// Whether one of the challenges in a `WWW-Authenticate` is a browser's to answer. Every comma may begin a challenge: one
/// in a quoted text that looks like it is taken for it.
fn makes_browsers_ask(value: &HeaderValue) -> bool {
    value.as_bytes().split(|&byte| byte == b',').any(|part| {
        let scheme = part
            .trim_ascii()
            .split(|byte| byte.is_ascii_whitespace())
            .next()
            .unwrap_or_default();
        ASKED_BY_BROWSERS
            .iter()
            .any(|asked| scheme.eq_ignore_ascii_case(asked.as_bytes()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(name: &'static str, value: &'static str) -> Verdict {
        let name = HeaderName::from_static(name);
        let value = HeaderValue::from_static(value);
        judge(&name, value, &Method::GET, Site::Console, "f")
    }

    #[test]
    fn the_list_can_be_searched() {
        assert!(OF_THE_MESSAGE.is_sorted());
    }

    #[test]
    fn a_shared_origin_hears_nothing_that_speaks_for_all_of_it() {
        for name in [
            "nel",
            "report-to",
            "reporting-endpoints",
            "accept-ch",
            "accept-ch-lifetime",
            "critical-ch",
            "alt-svc",
            "attribution-reporting-register-source",
            "attribution-reporting-register-trigger",
            "activate-storage-access",
            "available-dictionary",
            "clear-site-data",
            "expect-ct",
            "no-vary-search",
            "observe-browsing-topics",
            "origin-agent-cluster",
            "origin-trial",
            "public-key-pins",
            "public-key-pins-report-only",
            "service-worker-allowed",
            "set-login",
            "sourcemap",
            "speculation-rules",
            "strict-transport-security",
            "supports-loading-mode",
            "use-as-dictionary",
            "never-heard-of",
            "x-accel-redirect",
            "x-sendfile",
        ] {
            assert_eq!(shared(name, "x"), Verdict::Withheld, "{name}");
        }
    }

    #[test]
    fn what_is_the_messages_or_the_applications_passes() {
        for name in [
            "content-type",
            "cache-control",
            "content-security-policy",
            "permissions-policy",
            "access-control-allow-origin",
            "location",
            "link",
            "x-anything",
            "x-frame-options",
            "x-accel-buffering",
            "hx-redirect",
            "ratelimit-remaining",
        ] {
            let sent = Verdict::Sent(HeaderValue::from_static("x"));
            assert_eq!(shared(name, "x"), sent, "{name}");
        }
        for name in [
            "transfer-encoding",
            "content-length",
            "x-hearth-role",
            "date",
        ] {
            assert_eq!(shared(name, "1"), Verdict::Dropped, "{name}");
        }
    }

    #[test]
    fn a_functions_own_origin_is_its_own_to_speak_for() {
        let own = |name: &'static str, value: &'static str| {
            let name = HeaderName::from_static(name);
            let value = HeaderValue::from_static(value);
            judge(&name, value, &Method::GET, Site::Own, "f")
        };
        let sent = |value| Verdict::Sent(HeaderValue::from_static(value));
        for name in [
            "nel",
            "accept-ch",
            "service-worker-allowed",
            "tomorrows-header",
            "www-authenticate",
        ] {
            assert_eq!(own(name, "Basic"), sent("Basic"), "{name}");
        }
        assert_eq!(own("x-hearth-role", "1"), Verdict::Dropped);
        assert_eq!(own("x-sendfile", "1"), Verdict::Withheld);
        let clear = "\"cache\", \"cookies\",\"storage\", \"*\"";
        assert_eq!(
            own("clear-site-data", clear),
            sent("\"cache\", \"storage\"")
        );
        assert_eq!(own("clear-site-data", "\"*\""), Verdict::Withheld);
    }

    #[test]
    fn browsers_ask_for_no_password_in_the_consoles_name() {
        for challenge in [
            "Basic realm=\"Hearth\"",
            "basic",
            "Bearer realm=\"a\", BASIC realm=\"b\"",
            "Bearer,Digest realm=\"b\"",
            "Negotiate",
            "\tNTLM",
        ] {
            let verdict = shared("www-authenticate", challenge);
            assert_eq!(verdict, Verdict::Withheld, "{challenge}");
        }
        for challenge in [
            "Bearer realm=\"basic\"",
            "DPoP algs=\"ES256\"",
            "AWS4-HMAC-SHA256",
        ] {
            let verdict = shared("www-authenticate", challenge);
            assert!(matches!(verdict, Verdict::Sent(_)), "{challenge}");
        }
    }
}
