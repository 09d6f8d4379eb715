//! The session's user, its cookie, and log-out.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Redirect, Response};
use hearth_web::chrome::{Chrome, Section, Theme};

use crate::http::App;
use crate::http::audit::Audit;
use crate::http::auth;
use crate::http::cookies;
use crate::http::csrf;
use crate::http::problem::Problem;
use crate::model::{Caller, Right, SESSION_ABSOLUTE};
use crate::store::Session;

use super::form::Submitted;
use super::guard::is_htmx;

/// Longest path a login returns to: longer ones are not ours.
const MAX_NEXT_BYTES: usize = 2048;

/// The session of a request, added to its extensions by [`super::guard`].
#[derive(Debug, Clone)]
pub struct Viewer {
    session: Session,
    audit: Audit,
    /// The request's id, for messages.
    pub request_id: String,
    section: Section,
    theme: Theme,
}

impl Viewer {
    /// The viewer of a request.
    pub fn new(session: Session, request_id: String, audit: Audit) -> Self {
        audit.by(&session.caller);
        Self {
            session,
            audit,
            request_id,
            section: Section::default(),
            theme: Theme::default(),
        }
    }

    /// The same viewer, looking at this page with these headers: what the frame follows.
    pub fn at(mut self, path: &str, headers: &HeaderMap) -> Self {
        self.section = Section::of(path);
        self.theme = Theme::named(cookies::value(headers, Theme::COOKIE).unwrap_or_default());
        self
    }

    /// 403 unless the session's user or token has `right`.
    pub fn needs(&self, right: Right) -> Result<(), Problem> {
        auth::check(&self.session.caller, right)
    }

    /// Whether the session's user or token has `right`.
    pub fn may(&self, right: Right) -> bool {
        self.session.caller.may(right)
    }

    /// The user or the token.
    pub fn caller(&self) -> &Caller {
        &self.session.caller
    }

    /// The session's number.
    pub fn session_id(&self) -> i64 {
        self.session.id
    }

    /// Audit details of the request: every change is recorded, handlers add details.
    pub fn audit(&self) -> &Audit {
        &self.audit
    }

    /// The session's CSRF token.
    pub fn csrf(&self) -> &str {
        &self.session.csrf
    }

    /// The frame of a page.
    pub fn chrome(&self) -> Chrome {
        let name = self.session.caller.name().to_owned();
        let (user_name, token_name) = match &self.session.caller {
            Caller::User(_) => (name, String::new()),
            Caller::Token(_) => (String::new(), name),
        };
        Chrome {
            csrf: csrf::masked(&self.session.csrf),
            user_name,
            token_name,
            can_write: self.may(Right::Write),
            can_invoke: self.may(Right::Invoke),
            can_admin: self.may(Right::Admin),
            section: self.section,
            theme: self.theme,
            notice: None,
        }
    }
}

/// Opens a session for `caller` and responds with its cookie and a redirect to `next`. Ends the browser's previous
/// session, so that no cookie from before a log-in stays valid.
pub async fn open(
    app: &App,
    caller: &Caller,
    audit: &Audit,
    headers: &HeaderMap,
    next: &str,
) -> Result<Response, Problem> {
    if let Some(old) = cookies::session(headers) {
        app.store.delete_session(old).await?;
    }
    let origin = audit.origin();
    let address = origin.address.to_string();
    let secret = app
        .store
        .create_session(caller.owner(), &address, &origin.agent)
        .await?;
    // Who opens a session has just entered what opens it.
    let session = app.store.peek_session(&secret).await?;
    if let Some(session) = &session {
        app.accounts.proved(session.id);
    }
    let cookie = cookies::set_session(&secret, SESSION_ABSOLUTE, headers)?;
    if !is_htmx(headers) {
        return Ok(([(header::SET_COOKIE, cookie)], Redirect::to(next)).into_response());
    }
    // For the log-in dialog over a page whose session has ended: the page continues with the new session's CSRF token.
    let csrf = session.map_or_else(String::new, |session| csrf::masked(&session.csrf));
    let body = Json(serde_json::json!({ "csrf": csrf }));
    Ok(([(header::SET_COOKIE, cookie)], body).into_response())
}

/// `POST /logout`.
pub async fn logout(
    State(app): State<App>,
    headers: HeaderMap,
    _: Submitted,
) -> Result<Response, Problem> {
    if let Some(secret) = cookies::session(&headers) {
        app.store.delete_session(secret).await?;
    }
    let cookie = cookies::set_session("", Duration::ZERO, &headers)?;
    Ok(([(header::SET_COOKIE, cookie)], Redirect::to("/login?bye=1")).into_response())
}

/// `next` if it is a path of this server, else `/`: a login must not lead to another site.
pub fn local_path(next: &str) -> &str {
    let local = next.starts_with('/')
        && !next.starts_with("//")
        && next.len() <= MAX_NEXT_BYTES
        && next
            .bytes()
            .all(|b| (b'!'..=b'~').contains(&b) && b != b'\\');
    if local { next } else { "/" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logins_lead_to_this_server_only() {
        for good in ["/", "/functions/a?status=failed&before=x%20y"] {
            assert_eq!(local_path(good), good);
        }
        for bad in [
            "",
            "functions",
            "//evil.example",
            "/\\evil.example",
            "https://evil.example",
            "/a\r\nset-cookie: x",
            "/ä",
        ] {
            assert_eq!(local_path(bad), "/", "{bad}");
        }
        assert_eq!(local_path(&format!("/{}", "a".repeat(3000))), "/");
    }
}
