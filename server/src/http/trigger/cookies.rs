//! Cookies of functions: which ones a function receives, and which it may set.
//!
//! Cookies are scoped by host and path, not by origin or port. On a host that a function shares with the console or
//! other functions, its cookies are therefore confined to its own path.
//!
//! Lines are edited as bytes, not parsed into `cookie::Cookie`: that drops attributes it does not know, rewrites dates and
//! refuses what is nameless or not UTF-8, and a function's cookies are to pass unchanged.

use axum::http::{HeaderMap, HeaderValue, header};

use super::site::Site;

/// What the names of the console's cookies begin with, after a prefix such as `__Host-`. Compared without regard to case,
/// as browsers compare the prefixes.
const RESERVED: &[u8] = b"hearth_";

/// Whether a cookie of this name is the console's.
pub(in crate::http) fn is_reserved(name: &[u8]) -> bool {
    let starts = |name: &[u8]| {
        name.get(..RESERVED.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(RESERVED))
    };
    // `__Host-`, `__Secure-`, `__Http-`, and whatever comes to be after them.
    let bare = name.strip_prefix(b"__").and_then(|rest| {
        let dash = rest.iter().rposition(|&byte| byte == b'-')?;
        rest.get(dash + 1..)
    });
    starts(name) || bare.is_some_and(starts)
}

/// Takes the console's cookies out of a request.
pub(super) fn hide(headers: &mut HeaderMap) {
    if !headers.contains_key(header::COOKIE) {
        return;
    }
    let mut kept = Vec::new();
    for line in headers.get_all(header::COOKIE) {
        for pair in line.as_bytes().split(|&byte| byte == b';') {
            let pair = pair.trim_ascii();
            let name = pair.split(|&byte| byte == b'=').next().unwrap_or(pair);
            if pair.is_empty() || is_reserved(name.trim_ascii()) {
                continue;
            }
            if !kept.is_empty() {
                kept.extend_from_slice(b"; ");
            }
            kept.extend_from_slice(pair);
        }
    }
    headers.remove(header::COOKIE);
    if let Ok(line) = HeaderValue::from_bytes(&kept)
        && !kept.is_empty()
    {
        headers.insert(header::COOKIE, line);
    }
}

/// A `Set-Cookie` of the function `name` as it may be sent, read as browsers read it (RFC 6265bis, 5.6); `None` when it
/// must not be. `Domain` goes: it could only widen the cookie to other hosts. On a shared host `Path` stays below
/// `/fn/{name}`.
pub(super) fn confine(value: &HeaderValue, site: Site, name: &str) -> Option<HeaderValue> {
    if site == Site::Port {
        // No path is the function's alone there, and browsers send a host's cookies to all of its ports.
        return None;
    }
    let mut parts = value.as_bytes().split(|&byte| byte == b';');
    let pair = parts.next().unwrap_or_default();
    // Without a name a cookie is sent as its bare value, which may look like any other cookie.
    let equals = pair.iter().position(|&byte| byte == b'=')?;
    let cookie = pair[..equals].trim_ascii();
    if cookie.is_empty() || is_reserved(cookie) {
        return None;
    }
    let shared = site != Site::Own;
    // These have to have the path `/`, which is not the function's.
    if shared && starts_with_ignore_case(cookie, b"__host-") {
        return None;
    }
    let own = format!("/fn/{name}");
    let mut path = own.as_bytes();
    let mut confined = pair.trim_ascii().to_vec();
    for part in parts {
        let split = part.iter().position(|&byte| byte == b'=');
        let (key, given) = match split {
            Some(at) => (&part[..at], &part[at + 1..]),
            None => (part, &b""[..]),
        };
        match key.trim_ascii() {
            key if key.eq_ignore_ascii_case(b"domain") => {}
            // Of several the last counts.
            key if shared && key.eq_ignore_ascii_case(b"path") => {
                let given = given.trim_ascii();
                let below = given
                    .strip_prefix(own.as_bytes())
                    .is_some_and(|rest| rest.first().is_none_or(|&next| next == b'/'));
                path = if below { given } else { own.as_bytes() };
            }
            _ => {
                confined.push(b';');
                confined.extend_from_slice(part);
            }
        }
    }
    if shared {
        confined.extend_from_slice(b"; Path=");
        confined.extend_from_slice(path);
    }
    HeaderValue::from_bytes(&confined).ok()
}

fn starts_with_ignore_case(text: &[u8], start: &[u8]) -> bool {
    text.get(..start.len())
        .is_some_and(|begin| begin.eq_ignore_ascii_case(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(cookie: &'static str) -> Option<String> {
        let confined = confine(&HeaderValue::from_static(cookie), Site::Console, "shop");
        confined.map(|value| value.to_str().expect("text").to_owned())
    }

    #[test]
    fn a_cookie_of_the_console_is_not_set_however_it_is_written() {
        for cookie in [
            "hearth_session=stolen",
            " \thearth_session =stolen",
            "HEARTH_session=stolen",
            "__Host-hearth_session=stolen; Path=/; Secure",
            "__host-Hearth_session=stolen; Path=/; Secure",
            "__Secure-hearth_session=stolen; Secure",
            "__Host-Http-hearth_session=stolen; Path=/; Secure",
            "hearth_theme=dark",
            // Nameless: sent as "hearth_session=stolen".
            "=hearth_session=stolen",
            " = hearth_session=stolen",
            "\t=hearth_session=stolen",
            "==hearth_session=stolen",
            "hearth_session",
            "",
            ";a=1",
        ] {
            assert_eq!(shared(cookie), None, "{cookie:?}");
        }
    }

    #[test]
    fn on_a_shared_host_a_cookie_stays_below_its_functions_path() {
        for (cookie, confined) in [
            ("a=1", "a=1; Path=/fn/shop"),
            ("a=", "a=; Path=/fn/shop"),
            (" a = b=c ; HttpOnly", "a = b=c; HttpOnly; Path=/fn/shop"),
            ("a=1; Path=/; Secure", "a=1; Secure; Path=/fn/shop"),
            ("a=1; path = /fn/shop/cart", "a=1; Path=/fn/shop/cart"),
            ("a=1; Path=/fn/shop", "a=1; Path=/fn/shop"),
            ("a=1; Path=/fn/shopping", "a=1; Path=/fn/shop"),
            ("a=1; Path=/fn/shop; PATH=/", "a=1; Path=/fn/shop"),
            ("a=1; Path=/; path=/fn/shop/x", "a=1; Path=/fn/shop/x"),
            (
                "a=1; Domain=example.com; Max-Age=5",
                "a=1; Max-Age=5; Path=/fn/shop",
            ),
            ("a=1;DOMAIN = .example.com", "a=1; Path=/fn/shop"),
        ] {
            assert_eq!(shared(cookie).as_deref(), Some(confined), "{cookie:?}");
        }
        assert_eq!(shared("__Host-a=1; Path=/; Secure"), None);
    }

    #[test]
    fn on_its_own_host_a_function_sets_what_it_likes_for_that_host() {
        let own = |cookie: &'static str| {
            let confined = confine(&HeaderValue::from_static(cookie), Site::Own, "shop");
            confined.map(|value| value.to_str().expect("text").to_owned())
        };
        for (cookie, confined) in [
            ("a=1; Path=/", "a=1; Path=/"),
            ("__Host-a=1; Path=/; Secure", "__Host-a=1; Path=/; Secure"),
            ("a=1; Domain=example.com; Secure", "a=1; Secure"),
            ("a=1;domain=.fn.example.com", "a=1"),
            ("a=1; DOMAIN", "a=1"),
        ] {
            assert_eq!(own(cookie).as_deref(), Some(confined), "{cookie:?}");
        }
        assert_eq!(own("hearth_session=x; Domain=example.com"), None);
    }

    #[test]
    fn the_consoles_cookies_never_reach_a_function() {
        let mut headers = HeaderMap::new();
        for line in [
            "a=1; hearth_session=s; b=2",
            "__Host-hearth_session=s;c",
            "__host-HEARTH_x=1",
        ] {
            headers.append(header::COOKIE, HeaderValue::from_static(line));
        }
        hide(&mut headers);
        let left: Vec<_> = headers.get_all(header::COOKIE).iter().collect();
        assert_eq!(left, ["a=1; b=2; c"]);
        headers.insert(header::COOKIE, HeaderValue::from_static("hearth_session=s"));
        hide(&mut headers);
        assert!(headers.is_empty());
    }
}
