//! HTTP: the REST API, the HTTP trigger and the console's routes. Handlers parse, call the engine, answer.

use std::sync::Arc;
use std::time::Instant;

use crate::engine::Engine;
use crate::history::History;
use crate::store::Store;

/// What every handler can reach. Cheap to clone.
#[derive(Clone)]
pub struct App {
    /// Deploys and invokes.
    pub engine: Engine,
    /// The database.
    pub store: Store,
    /// Finished invocations.
    pub history: History,
    /// When the server started.
    pub started: Arc<Instant>,
}
