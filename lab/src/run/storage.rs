//! Whether functions of a server can use the object store at all, before an experiment relies on it.

use std::time::Duration;

use super::RunError;
use crate::platform::client::Client;
use crate::platform::hearth::{Function, Hearth};
use crate::platform::transfer::Transfer;
use crate::store::{Running, Source};

/// Starts the store, and has a function use it. Both are gone afterwards.
///
/// # Errors
/// What keeps functions from it.
pub async fn check(client: &Client, store: &Source, prefix: &str) -> Result<(), RunError> {
    let store = Running::start(store).await?;
    let hearth = Hearth::new(client.clone());
    let name = format!("{prefix}-store");
    let function = Function {
        source: "hellopy".to_owned(),
        memory_mb: 128,
        image_mb: 0.0,
        concurrency: 1,
        busy: Duration::ZERO,
        idle_timeout_s: 0,
        transfer: Some(Transfer {
            store: store.access().clone(),
            bytes: 1,
            functions: 1,
        }),
    };
    let checked = async {
        store.note(&name, 1);
        hearth.deploy(&name, &function).await?;
        let bucket = &store.access().bucket;
        hearth.check_transfer(&name, bucket).await
    };
    let checked = checked.await;
    let removed = hearth.remove_all().await;
    let stopped = store.stop().await;
    checked?;
    removed.and(stopped).map_err(RunError::LeftBehind)
}
