//! Authentication and authorisation: a bearer token, or the console's session cookie with its CSRF token.
//!
//! A token may be scoped to some functions. [`Allowed`] rejects a scoped token on every route that is not about one of
//! these functions, so new routes are closed to it by default; a handler that applies the scope itself, such as a list,
//! takes [`Scoped`] instead.

use std::fmt;
use std::marker::PhantomData;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};

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

/// What a request proved its right with. A stream outlives its request's check: it asks again now and then, so that what
/// is revoked, expired or logged out stops there too.
#[derive(Clone)]
pub struct Proof {
    secret: Secret,
    right: Right,
}

#[derive(Clone)]
enum Secret {
    Token(String),
    Session(String),
}

/// Secrets are not for logs.
impl fmt::Debug for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proof")
            .field("right", &self.right)
            .finish_non_exhaustive()
    }
}

impl Proof {
    fn of(headers: &HeaderMap, right: Right) -> Self {
        let secret = match headers.get(header::AUTHORIZATION) {
            Some(value) => Secret::Token(bearer(value).unwrap_or_default().to_owned()),
            None => Secret::Session(cookies::session(headers).unwrap_or_default().to_owned()),
        };
        Self { secret, right }
    }

    /// Refuses a session that has not entered its password lately: what is asked for outlasts it. A token has no session.
    pub async fn is_fresh(&self, app: &App) -> Result<(), Problem> {
        let Secret::Session(cookie) = &self.secret else {
            return Ok(());
        };
        match app.store.peek_session(cookie).await? {
            Some(session) if app.accounts.is_fresh(session.id) => Ok(()),
            _ => Err(Problem::new(
                ProblemCode::Forbidden,
                "this requires a recent log-in; use the console, which asks for your password again, or a token",
            )),
        }
    }

    /// Whether it still grants the right. Remains true while the database does not respond, so that this ends no
    /// session.
    pub async fn holds(&self, app: &App) -> bool {
        match &self.secret {
            Secret::Token(secret) => app
                .store
                .find_token(secret)
                .is_some_and(|token| token.rights.contains(&self.right)),
            Secret::Session(cookie) => match app.store.peek_session(cookie).await {
                Ok(session) => session.is_some_and(|session| session.caller.may(self.right)),
                Err(_) => true,
            },
        }
    }
}

/// The function that an address of the API is about, as it is written there: names need no escapes, and one that is
/// written with them is not taken for it.
fn function_in(path: &str) -> Option<&str> {
    let rest = path.strip_prefix("/api/v1/functions/")?;
    rest.split('/').next().filter(|name| !name.is_empty())
}

/// Refuses a caller whose scope does not hold this function.
pub fn reach(caller: &Caller, function: &str) -> Result<(), Problem> {
    match caller.reaches(function) {
        true => Ok(()),
        false => Err(out_of_scope(caller)),
    }
}

/// 403 that names the scope.
fn out_of_scope(caller: &Caller) -> Problem {
    let scope = caller.scope().unwrap_or_default();
    let names: Vec<String> = scope.iter().map(|name| format!("\"{name}\"")).collect();
    Problem::new(
        ProblemCode::Forbidden,
        format!(
            "the token \"{}\" is limited to the functions {}",
            caller.name(),
            names.join(", ")
        ),
    )
    .with("scope", scope)
    .header(
        header::WWW_AUTHENTICATE,
        HeaderValue::from_static("Bearer realm=\"hearth\", error=\"insufficient_scope\""),
    )
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

/// Refuses a caller who lacks the right, naming the right.
pub fn check(caller: &Caller, right: Right) -> Result<(), Problem> {
    if caller.may(right) {
        return Ok(());
    }
    let name = right.name();
    let who = match caller {
        Caller::User(user) => format!("the user \"{}\" ({})", user.name, user.role.name()),
        Caller::Token(token) => format!("the token \"{}\"", token.name),
    };
    let challenge =
        format!("Bearer realm=\"hearth\", error=\"insufficient_scope\", scope=\"{name}\"");
    let problem = Problem::new(
        ProblemCode::Forbidden,
        format!("{who} lacks the right \"{name}\""),
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
    Problem::new(ProblemCode::Unauthorized, detail).header(
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::response::IntoResponse;
    use jiff::Timestamp;

    use super::*;
    use crate::model::{Role, TokenView, UserView};

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

    fn token(scope: Option<&[&str]>) -> Caller {
        let names = |scope: &[&str]| scope.iter().map(|name| (*name).to_owned()).collect();
        Caller::Token(Arc::new(TokenView {
            id: 1,
            name: "ci".into(),
            rights: vec![Right::Read],
            scope: scope.map(names),
            created_at: Timestamp::UNIX_EPOCH,
            last_used_at: None,
            expires_at: None,
        }))
    }

    #[test]
    fn a_missing_right_is_named() {
        let token = token(None);
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
        let user = Caller::User(Arc::new(UserView {
            id: 1,
            name: "ada".into(),
            role: Role::Viewer,
            disabled: false,
            created_at: Timestamp::UNIX_EPOCH,
            last_login_at: None,
            sessions: 0,
        }));
        assert_eq!(
            check(&user, Right::Invoke).unwrap_err().detail(),
            "the user \"ada\" (viewer) lacks the right \"invoke\""
        );
    }

    #[test]
    fn a_scope_is_named_and_holds_whole_names() {
        assert!(reach(&token(None), "anything").is_ok());
        let token = token(Some(&["a", "b-c"]));
        assert!(reach(&token, "a").is_ok() && reach(&token, "b-c").is_ok());
        for outside in ["", "b", "ab", "A", "a "] {
            let problem = reach(&token, outside).unwrap_err();
            assert_eq!(problem.code(), ProblemCode::Forbidden);
            assert!(problem.detail().contains("\"a\", \"b-c\""));
        }
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
