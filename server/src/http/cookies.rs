//! The console's own cookies: the session's, and those of settings such as the theme.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, header};
use cookie::{Cookie, CookieBuilder, SameSite};

use super::edge::is_https;
use super::problem::Problem;

/// The session cookie over plain HTTP. It opens the API too, for the console's own scripts.
const SESSION: &str = "hearth_session";
/// The same over TLS. Browsers take a cookie of this name from its own host only, over TLS, for all paths: no other host
/// of the same site can slip in one of its own.
const SECURE_SESSION: &str = "__Host-hearth_session";

/// What the session's cookie is called on the connection a request came by.
fn session_name(headers: &HeaderMap) -> &'static str {
    match is_https(headers) {
        true => SECURE_SESSION,
        false => SESSION,
    }
}

/// The secret in the session's cookie. If there are several with different values, none is accepted, because at most one
/// is ours.
pub fn session(headers: &HeaderMap) -> Option<&str> {
    let mut all = values(headers, session_name(headers));
    let first = all.next()?;
    all.all(|other| other == first).then_some(first)
}

/// The value of a cookie.
pub fn value<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    values(headers, name).next()
}

fn values<'h>(headers: &'h HeaderMap, name: &str) -> impl Iterator<Item = &'h str> {
    headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|line| line.to_str().ok())
        .flat_map(Cookie::split_parse)
        .filter_map(Result::ok)
        .filter(move |cookie| cookie.name() == name)
        .filter_map(|cookie| cookie.value_raw())
}

/// The `Set-Cookie` that gives the browser a session. Scripts cannot read it.
pub fn set_session(
    secret: &str,
    lifetime: Duration,
    headers: &HeaderMap,
) -> Result<HeaderValue, Problem> {
    let cookie = Cookie::build((session_name(headers), secret)).http_only(true);
    line(cookie, lifetime, headers)
}

/// The `Set-Cookie` of a setting that the console's scripts read, too.
pub fn set(
    name: &str,
    value: &str,
    lifetime: Duration,
    headers: &HeaderMap,
) -> Result<HeaderValue, Problem> {
    line(Cookie::build((name, value)), lifetime, headers)
}

fn line(
    cookie: CookieBuilder<'_>,
    lifetime: Duration,
    headers: &HeaderMap,
) -> Result<HeaderValue, Problem> {
    let cookie = cookie
        .path("/")
        .same_site(SameSite::Strict)
        .max_age(lifetime.try_into().map_err(Problem::internal)?)
        .secure(is_https(headers));
    HeaderValue::try_from(cookie.build().to_string()).map_err(Problem::internal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::SESSION_ABSOLUTE;

    #[test]
    fn cookies_are_found_among_others() {
        let mut headers = HeaderMap::new();
        headers.append(
            "cookie",
            HeaderValue::from_static("a=1; hearth_session=s=x"),
        );
        assert_eq!(value(&headers, "hearth_session"), Some("s=x"));
        assert_eq!(value(&headers, "session"), None);
    }

    #[test]
    fn what_is_no_cookie_hides_none() {
        let mut headers = HeaderMap::new();
        for line in ["nameless; =x;; hearth_theme=\"dark\"", "b=%41", "c=\u{e4}"] {
            headers.append("cookie", HeaderValue::try_from(line).unwrap());
        }
        assert_eq!(value(&headers, "hearth_theme"), Some("\"dark\""));
        assert_eq!(value(&headers, "b"), Some("%41"));
        assert_eq!(value(&headers, "c"), None);
        assert_eq!(value(&headers, ""), None);
    }

    #[test]
    fn a_session_has_one_cookie_and_over_tls_only_the_one_that_no_other_host_can_set() {
        let found = |scheme: &str, line: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("x-forwarded-proto", HeaderValue::try_from(scheme).unwrap());
            headers.insert("cookie", HeaderValue::try_from(line).unwrap());
            session(&headers).map(str::to_owned)
        };
        let both = "hearth_session=plain; __Host-hearth_session=secure";
        assert_eq!(found("https", both).as_deref(), Some("secure"));
        assert_eq!(found("http", both).as_deref(), Some("plain"));
        assert_eq!(found("https", "hearth_session=plain"), None);
        assert_eq!(found("https", "__host-hearth_session=x"), None);
        assert_eq!(found("http", "__Host-hearth_session=secure"), None);
        // A page of a neighbouring host or port can add one, with a longer path so that it comes first.
        let two = "hearth_session=theirs; hearth_session=mine";
        assert_eq!(found("http", two), None);
        let same = "hearth_session=mine; hearth_session=mine";
        assert_eq!(found("http", same).as_deref(), Some("mine"));
    }

    #[test]
    fn sessions_are_hidden_from_scripts_and_other_sites() {
        let mut headers = HeaderMap::new();
        let plain = set_session("s", SESSION_ABSOLUTE, &headers).expect("a cookie");
        assert_eq!(
            plain,
            "hearth_session=s; HttpOnly; SameSite=Strict; Path=/; Max-Age=43200"
        );
        headers.insert("x-forwarded-proto", HeaderValue::from_static("https"));
        let secure = set_session("", Duration::ZERO, &headers).expect("a cookie");
        assert_eq!(
            secure,
            "__Host-hearth_session=; HttpOnly; SameSite=Strict; Secure; Path=/; Max-Age=0"
        );
    }
}
