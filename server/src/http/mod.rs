//! HTTP: the REST API, the HTTP trigger and the console's routes. Handlers parse, call the engine and respond.
//!
//! Folders mirror the addresses: `functions/invoke.rs` is `POST /api/v1/functions/{name}/invoke`, `trigger/` is `/fn/`.
//! [`router`] has the route table; errors become responses in `problem/convert.rs` and nowhere else.

mod answer;
pub mod audit;
pub mod auth;
mod body;
mod chains;
pub mod console;
mod cookies;
mod csrf;
pub mod edge;
mod etag;
mod experiments;
mod filter;
mod finish;
mod front;
mod functions;
mod health;
mod inbound;
mod ingress;
mod invocations;
mod linger;
mod metrics;
mod node;
mod openapi;
mod path;
pub mod problem;
mod query;
pub mod request_id;
mod retention;
mod router;
mod secrets;
pub mod spec;
mod tokens;
mod trace;
mod trigger;
mod users;

use std::ops::Deref;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::middleware::from_fn_with_state;

pub use front::{Front, PortFront};

use crate::accounts::Accounts;
use crate::catalog::Catalog;
use crate::engine::Engine;
use crate::history::History;
use crate::lab::Lab;
use crate::live::Sampler;
use crate::retention::Retainer;
use crate::store::Store;
use crate::tail::Tail;
use crate::uploads::Uploads;

/// What every handler can reach. Cheap to clone: a request does so more than once, on any core.
#[derive(Clone)]
pub struct App(Arc<Parts>);

/// The parts of an [`App`].
pub struct Parts {
    /// Deploys and invokes.
    pub engine: Engine,
    /// Chains of functions.
    pub catalog: Catalog,
    /// Experiments.
    pub lab: Lab,
    /// The database.
    pub store: Store,
    /// Finished invocations.
    pub history: History,
    /// Removes what is too old.
    pub retention: Retainer,
    /// Passwords, the first set-up, limits on log-ins.
    pub accounts: Arc<Accounts>,
    /// What the console shows as it changes.
    pub live: Sampler,
    /// Explains slow invocations.
    pub tail: Tail,
    /// Uploads of code on their way in.
    pub uploads: Uploads,
    /// Which hosts and proxies there are.
    pub edge: edge::Edge,
    /// When the server started.
    pub started: Instant,
}

impl From<Parts> for App {
    fn from(parts: Parts) -> Self {
        Self(Arc::new(parts))
    }
}

impl Deref for App {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

/// Everything the server answers over HTTP, but for the way round it that [`Front`] knows.
fn router(app: App) -> Router {
    let changes = router::api().merge(console::router(app.clone()));
    let recorded = changes.layer(from_fn_with_state(app.clone(), audit::record));
    router::wrap(recorded.merge(router::invocations())).with_state(app)
}
