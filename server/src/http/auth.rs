//! Who is asking, and what they may do: a bearer token, or the console's session cookie with its CSRF token.

use std::marker::PhantomData;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use subtle::ConstantTimeEq;

use super::App;
use super::problem::{Code, Problem};
use crate::model::{Right, TokenView};

/// The console's session cookie. It opens the API too, for the console's own scripts.
pub const SESSION_COOKIE: &str = "hearth_session";
/// Header in which a session's changing requests carry its CSRF token.
pub const X_CSRF_TOKEN: HeaderName = HeaderName::from_static("x-csrf-token");

/// A right as a type, for [`Allowed`].
pub trait Needs {
    /// The right.
    const RIGHT: Right;
}

macro_rules! rights {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $($(#[$doc])* #[derive(Debug)] pub struct $name;
        impl Needs for $name {
            const RIGHT: Right = Right::$name;
        })*
    };
}

rights! {
    /// See functions, history, logs, the node.
    Read;
    /// Deploy, change and delete functions.
    Write;
    /// Manage tokens.
    Admin;
}

/// Extracted by handlers whose caller needs the right `N`; runs before the body is read.
#[derive(Debug)]
pub struct Allowed<N> {
    /// The caller's token.
    pub token: TokenView,
    right: PhantomData<N>,
}

impl<N: Needs> FromRequestParts<App> for Allowed<N> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let token = require(app, &parts.method, &parts.headers, N::RIGHT).await?;
        Ok(Self {
            token,
            right: PhantomData,
        })
    }
}

/// The caller's token if it has `right`; 401 or 403 otherwise.
pub async fn require(
    app: &App,
    method: &Method,
    headers: &HeaderMap,
    right: Right,
) -> Result<TokenView, Problem> {
    if let Some(value) = headers.get(header::AUTHORIZATION) {
        return require_bearer(app, value, right);
    }
    let Some(secret) = cookie(headers, SESSION_COOKIE) else {
        return Err(unauthorized("send Authorization: Bearer TOKEN", false));
    };
    let token = of_session(app, secret, method, headers)
        .await?
        .ok_or_else(|| unauthorized("the session has ended; log in again", true))?;
    check(&token, right)?;
    Ok(token)
}

/// The token in an `Authorization` header if it has `right`. Answered from memory.
pub fn require_bearer(app: &App, value: &HeaderValue, right: Right) -> Result<TokenView, Problem> {
    let token = bearer(value)
        .and_then(|secret| app.store.find_token(secret))
        .ok_or_else(|| unauthorized("the token is not known", true))?;
    check(&token, right)?;
    Ok(token)
}

/// The token behind a session cookie. What could be forged by another site needs the session's CSRF token as well.
async fn of_session(
    app: &App,
    secret: &str,
    method: &Method,
    headers: &HeaderMap,
) -> Result<Option<TokenView>, Problem> {
    let Some(session) = app.store.find_session(secret).await? else {
        return Ok(None);
    };
    if !method.is_safe() {
        let sent = headers
            .get(X_CSRF_TOKEN)
            .map_or(&b""[..], HeaderValue::as_bytes);
        if !bool::from(sent.ct_eq(session.csrf.as_bytes())) {
            return Err(Problem::new(
                Code::Forbidden,
                "a session's changing requests need its X-CSRF-Token",
            ));
        }
    }
    Ok(Some(session.token))
}

/// Refuses a token that lacks the right, naming the right.
pub fn check(token: &TokenView, right: Right) -> Result<(), Problem> {
    if token.rights.contains(&right) {
        return Ok(());
    }
    let name = name(right);
    let challenge =
        format!("Bearer realm=\"hearth\", error=\"insufficient_scope\", scope=\"{name}\"");
    let problem = Problem::new(
        Code::Forbidden,
        format!("the token \"{}\" lacks the right \"{name}\"", token.name),
    )
    .with("right", name);
    Err(match HeaderValue::try_from(challenge) {
        Ok(challenge) => problem.header(header::WWW_AUTHENTICATE, challenge),
        Err(_) => problem,
    })
}

/// 401, with the challenge RFC 6750 asks for.
pub fn unauthorized(detail: &str, sent_one: bool) -> Problem {
    let challenge = if sent_one {
        "Bearer realm=\"hearth\", error=\"invalid_token\""
    } else {
        "Bearer realm=\"hearth\""
    };
    Problem::new(Code::Unauthorized, detail).header(
        header::WWW_AUTHENTICATE,
        HeaderValue::from_static(challenge),
    )
}

/// The secret of `Authorization: Bearer SECRET`; the scheme's case does not matter (RFC 9110, 11.1).
pub fn bearer(value: &HeaderValue) -> Option<&str> {
    let (scheme, secret) = value.to_str().ok()?.split_once(' ')?;
    let secret = secret.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !secret.is_empty()).then_some(secret)
}

/// The value of a cookie.
pub fn cookie<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find_map(|(key, value)| (key == name).then_some(value))
}

/// A right as the API spells it.
pub fn name(right: Right) -> &'static str {
    match right {
        Right::Read => "read",
        Right::Invoke => "invoke",
        Right::Write => "write",
        Right::Admin => "admin",
    }
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse;
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn bearer_is_read_as_rfc_9110_says() {
        let secret =
            |text: &'static str| bearer(&HeaderValue::from_static(text)).map(str::to_owned);
        assert_eq!(secret("Bearer abc").as_deref(), Some("abc"));
        assert_eq!(secret("bearer  abc").as_deref(), Some("abc"));
        for wrong in ["Basic abc", "Bearer", "Bearer ", "abc", ""] {
            assert_eq!(secret(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn cookies_are_found_among_others() {
        let mut headers = HeaderMap::new();
        headers.append(
            "cookie",
            HeaderValue::from_static("a=1; hearth_session=s=x"),
        );
        assert_eq!(cookie(&headers, "hearth_session"), Some("s=x"));
        assert_eq!(cookie(&headers, "session"), None);
    }

    #[test]
    fn a_missing_right_is_named() {
        let token = TokenView {
            id: 1,
            name: "ci".into(),
            rights: vec![Right::Read],
            created_at: Timestamp::UNIX_EPOCH,
        };
        assert!(check(&token, Right::Read).is_ok());
        let problem = check(&token, Right::Write).unwrap_err();
        assert_eq!(
            problem.detail(),
            "the token \"ci\" lacks the right \"write\""
        );
        let response = problem.into_response();
        assert_eq!(response.status(), 403);
        assert!(
            response.headers()["www-authenticate"]
                .to_str()
                .unwrap()
                .contains("scope=\"write\"")
        );
    }
}
