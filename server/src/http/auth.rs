//! Authentication and authorisation: a bearer token, or the console's session cookie with its CSRF token.
//!
//! A token may be scoped to some functions. [`Allowed`] rejects a scoped token on every route that is not about one of
//! these functions, so new routes are closed to it by default; a handler that applies the scope itself, such as a list,
//! takes [`Scoped`] instead.
//!
//! `refusal.rs` checks rights and scopes and words the refusals; `proof.rs` is for streams, which outlive their check.

mod proof;
mod refusal;

use std::marker::PhantomData;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};

pub use proof::Proof;
use refusal::out_of_scope;
pub use refusal::{check, reach, reach_all, unauthorized};

use super::App;
use super::audit::Audit;
use super::cookies;
use super::csrf;
use super::problem::{Problem, ProblemCode};
use crate::model::{Caller, Right};

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
    /// Manage users and tokens, see the audit log.
    Admin;
}

/// Extractor for handlers whose caller needs the right `N`; runs before the body is read. A scoped caller is accepted
/// only on the paths of its functions.
#[derive(Debug)]
pub struct Allowed<N> {
    /// Who asks.
    pub caller: Caller,
    /// The request's audit details.
    pub audit: Audit,
    /// Lets long-running responses check that the caller is still authorised.
    pub proof: Proof,
    right: PhantomData<N>,
}

impl<N: Needs> FromRequestParts<App> for Allowed<N> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let asked = Scoped::<N>::from_request_parts(parts, app).await?;
        let Scoped {
            caller,
            audit,
            proof,
            ..
        } = asked;
        let inside = caller.scope().is_none()
            || function_in(parts.uri.path()).is_some_and(|name| caller.reaches(name));
        if !inside {
            return Err(out_of_scope(&caller));
        }
        Ok(Self {
            caller,
            audit,
            proof,
            right: PhantomData,
        })
    }
}

/// As [`Allowed`], for handlers that keep to the caller's scope themselves.
#[derive(Debug)]
pub struct Scoped<N> {
    /// Who asks.
    pub caller: Caller,
    /// The request's audit details.
    pub audit: Audit,
    /// Lets long-running responses check that the caller is still authorised.
    pub proof: Proof,
    right: PhantomData<N>,
}

impl<N: Needs> FromRequestParts<App> for Scoped<N> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let caller = require(app, &parts.method, &parts.headers, N::RIGHT).await?;
        let audit = parts.extensions.get::<Audit>().cloned().unwrap_or_default();
        audit.by(&caller);
        Ok(Self {
            caller,
            audit,
            proof: Proof::of(&parts.headers, N::RIGHT),
            right: PhantomData,
        })
    }
}

/// The function that an address of the API is about, as it is written there: names need no escapes, and one that is
/// written with them is not taken for it.
fn function_in(path: &str) -> Option<&str> {
    let rest = path.strip_prefix("/api/v1/functions/")?;
    rest.split('/').next().filter(|name| !name.is_empty())
}

/// The caller if it has `right`; 401 or 403 otherwise.
pub async fn require(
    app: &App,
    method: &Method,
    headers: &HeaderMap,
    right: Right,
) -> Result<Caller, Problem> {
    if let Some(value) = headers.get(header::AUTHORIZATION) {
        return require_bearer(app, value, right);
    }
    let Some(secret) = cookies::session(headers) else {
        return Err(unauthorized("send Authorization: Bearer TOKEN", false));
    };
    let caller = of_session(app, secret, method, headers)
        .await?
        .ok_or_else(|| unauthorized("your session has ended; log in again", true))?;
    check(&caller, right)?;
    Ok(caller)
}

/// The token in an `Authorization` header if it has `right`. Answered from memory.
pub fn require_bearer(app: &App, value: &HeaderValue, right: Right) -> Result<Caller, Problem> {
    let caller = bearer(value)
        .and_then(|secret| app.store.find_token(secret))
        .map(Caller::Token)
        .ok_or_else(|| unauthorized("the token is unknown or has expired", true))?;
    check(&caller, right)?;
    Ok(caller)
}

/// The caller behind a session cookie. What could be forged by another site needs the session's CSRF token as well.
async fn of_session(
    app: &App,
    secret: &str,
    method: &Method,
    headers: &HeaderMap,
) -> Result<Option<Caller>, Problem> {
    let Some(session) = app.store.find_session(secret).await? else {
        return Ok(None);
    };
    if !method.is_safe() {
        let sent = headers
            .get(X_CSRF_TOKEN)
            .map_or(&b""[..], HeaderValue::as_bytes);
        if !csrf::fits(sent, &session.csrf) {
            return Err(Problem::new(
                ProblemCode::Forbidden,
                "requests that change something in a session require its X-CSRF-Token header",
            ));
        }
    }
    Ok(Some(session.caller))
}

/// The secret of `Authorization: Bearer SECRET`; the scheme's case does not matter (RFC 9110, 11.1).
pub fn bearer(value: &HeaderValue) -> Option<&str> {
    let (scheme, secret) = value.to_str().ok()?.split_once(' ')?;
    let secret = secret.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !secret.is_empty()).then_some(secret)
}

#[cfg(test)]
mod tests {
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
    fn the_function_of_an_address_is_found() {
        assert_eq!(function_in("/api/v1/functions/a/stats"), Some("a"));
        assert_eq!(function_in("/api/v1/functions/a"), Some("a"));
        for other in [
            "/api/v1/functions",
            "/api/v1/functions/",
            "/api/v1/tokens/a",
            "/functions/a",
        ] {
            assert_eq!(function_in(other), None, "{other}");
        }
    }
}
