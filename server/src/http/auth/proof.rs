//! What keeps a stream authorised after its request was.

use std::fmt;

use axum::http::{HeaderMap, header};

use super::bearer;
use crate::http::App;
use crate::http::cookies;
use crate::http::problem::{Problem, ProblemCode};
use crate::model::Right;

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
    pub(super) fn of(headers: &HeaderMap, right: Right) -> Self {
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
