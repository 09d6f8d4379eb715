//! Records every change that is carried out in the audit log, whoever makes it, through the API or the console.
//!
//! It is one layer around the API and the console ([`record`]) instead of a call in each handler, so that a new route
//! cannot forget it: every request with a changing method that was not rejected is recorded. The layer gets what it
//! cannot know from three places:
//!
//! * **What** was done is looked up by method and route in [`actions`]; a missing route is recorded as `other`, and a
//!   test that reads the route tables fails.
//! * **Who** did it is reported by [`auth`](super::auth) and the console's guard.
//! * **On what** comes from the path or the `Location` of the response; **details** are added by the handler through
//!   the [`Audit`] of its request ([`Allowed`](super::auth::Allowed) and the console's `Viewer` have it).
//!
//! A record is written before the response is sent, on its own task, so a client that disconnects cannot prevent it. If
//! the record cannot be written, the change stays and the server log says so.

pub(super) mod actions;
mod list;
mod origin;
mod routes;

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::{FromRequestParts, MatchedPath, Request, State};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use parking_lot::Mutex;
use percent_encoding::percent_decode_str;

use super::App;
use super::console::HX_REDIRECT;
use super::problem::Problem;
use crate::model::{ActorKind, Caller};
use crate::store::NewAudit;

pub use actions::{ALL as ACTIONS, Known};
pub use list::{__path_audit, audit, filter};
pub use origin::Origin;

/// Longest name of an actor or a target: both may be unauthenticated input.
const MAX_NAME_CHARS: usize = 64;
/// Longest detail: names of fields, not their values.
const MAX_DETAIL_CHARS: usize = 500;

/// What is going to be recorded about a request. Cheap to clone; all clones speak of the same request.
#[derive(Debug, Clone, Default)]
pub struct Audit {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    origin: Origin,
    /// Held for a push only.
    pending: Mutex<Pending>,
}

#[derive(Debug, Default)]
struct Pending {
    actor: Option<(ActorKind, String)>,
    action: Option<&'static str>,
    target: Option<String>,
    details: Vec<String>,
    nothing_changed: bool,
    even_if_refused: bool,
}

impl Audit {
    fn new(origin: Origin) -> Self {
        Self {
            shared: Arc::new(Shared {
                origin,
                pending: Mutex::default(),
            }),
        }
    }

    /// Where the request comes from.
    pub fn origin(&self) -> &Origin {
        &self.shared.origin
    }

    /// Who does it.
    pub fn by(&self, caller: &Caller) {
        let kind = match caller {
            Caller::User(_) => ActorKind::User,
            Caller::Token(_) => ActorKind::Token,
        };
        self.shared.pending.lock().actor = Some((kind, caller.name().to_owned()));
    }

    /// An unauthenticated client gave this name.
    pub fn by_unauthenticated(&self, name: &str) {
        self.shared.pending.lock().actor = Some((ActorKind::Nobody, name.to_owned()));
    }

    /// It is this rather than what its route is listed for.
    pub fn action(&self, action: &'static str) {
        debug_assert!(actions::ALL.contains(&action), "{action} is not listed");
        self.shared.pending.lock().action = Some(action);
    }

    /// On what, when the address does not say it.
    pub fn target(&self, name: impl Into<String>) {
        self.shared.pending.lock().target = Some(name.into());
    }

    /// A few words more: a version, names of changed fields. Never a secret, never what was typed into a field.
    pub fn detail(&self, detail: impl Into<String>) {
        self.shared.pending.lock().details.push(detail.into());
    }

    /// The request turned out to change nothing: it is not recorded.
    pub fn nothing_changed(&self) {
        self.shared.pending.lock().nothing_changed = true;
    }

    /// It is recorded whatever the answer's status is: a failed log-in.
    pub fn even_if_refused(&self) {
        self.shared.pending.lock().even_if_refused = true;
    }

    /// The record, complete now that the response is known.
    fn finish(&self, action: &'static str, route: Route, response: &Response) -> Option<NewAudit> {
        let mut pending = std::mem::take(&mut *self.shared.pending.lock());
        let status = response.status();
        let failed = status == StatusCode::INTERNAL_SERVER_ERROR;
        let done = !status.is_client_error() && !status.is_server_error();
        if pending.nothing_changed || !(done || failed || pending.even_if_refused) {
            return None;
        }
        let action = pending.action.unwrap_or(action);
        if action == actions::OTHER {
            pending.details.push(route.described);
        }
        if failed {
            pending
                .details
                .push("failed with status 500; may be partly applied".to_owned());
        }
        let (actor_kind, actor) = pending.actor.unwrap_or((ActorKind::Nobody, String::new()));
        let made = || (action == "function.create").then(|| led_to(response))?;
        let target = pending.target.or(route.target).or_else(made);
        Some(NewAudit {
            actor_kind,
            actor: cut(&actor, MAX_NAME_CHARS),
            action,
            target: cut(&target.unwrap_or_default(), MAX_NAME_CHARS),
            address: self.shared.origin.address.to_string(),
            request_id: self.shared.origin.request_id.clone(),
            detail: cut(&pending.details.join(", "), MAX_DETAIL_CHARS),
        })
    }
}

fn cut(text: &str, chars: usize) -> String {
    text.chars()
        .filter(|c| !c.is_control())
        .take(chars)
        .collect()
}

/// The request's, put there by [`record`]; of a request that changes nothing, one that goes nowhere.
impl<S: Sync> FromRequestParts<S> for Audit {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or_default())
    }
}

/// What the address says.
struct Route {
    /// Method and pattern.
    described: String,
    /// The first part of the address that names something.
    target: Option<String>,
}

impl Route {
    fn of(request: &Request, pattern: &str) -> Self {
        let named = pattern
            .split('/')
            .zip(request.uri().path().split('/'))
            .find(|(part, _)| part.starts_with('{'))
            .map(|(_, value)| percent_decode_str(value).decode_utf8_lossy().into_owned());
        Self {
            described: format!("{} {pattern}", request.method()),
            target: named,
        }
    }
}

/// The function that a redirect or a `Location` leads to.
fn led_to(response: &Response) -> Option<String> {
    let headers = response.headers();
    let address = headers
        .get(header::LOCATION)
        .or_else(|| headers.get(HX_REDIRECT))?;
    let address = address.to_str().ok()?;
    let (_, name) = address.split_once("/functions/")?;
    name.split(['/', '?']).next().map(str::to_owned)
}

/// The layer; see the module. Around every route but those that invoke functions.
pub async fn record(State(app): State<App>, mut request: Request, next: Next) -> Response {
    if request.method().is_safe() {
        return next.run(request).await;
    }
    let matched = request.extensions().get::<MatchedPath>().cloned();
    let pattern = matched.as_ref().map_or("", MatchedPath::as_str);
    let action = match actions::of(request.method(), pattern) {
        Known::NoChange => return next.run(request).await,
        Known::Change(action) => action,
    };
    let route = Route::of(&request, pattern);
    let audit = Audit::new(Origin::of(&request));
    request.extensions_mut().insert(audit.clone());
    let change = tokio::spawn(async move {
        let response = next.run(request).await;
        if let Some(record) = audit.finish(action, route, &response)
            && let Err(error) = app.store.record_audit(&record).await
        {
            tracing::error!(%error, ?record, "a change is missing from the audit log");
        }
        response
    });
    match change.await {
        Ok(response) => response,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(error) => Problem::internal(error).into_response(),
        },
    }
}

#[cfg(test)]
mod tests;
