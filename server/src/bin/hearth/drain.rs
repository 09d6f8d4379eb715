//! How the server ends: when it is told to, and what it does with what runs.

use std::time::{Duration, Instant};

use hearth::catalog::Catalog;
use hearth::engine::Engine;
use hearth::limits::CUT_OFF;
use hearth::serve::Connections;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::task::TaskTracker;

/// Lets what runs finish, `limit` long in all; cuts off the rest, and sees to it that the history says so.
pub(crate) async fn drain(
    engine: &Engine,
    catalog: &Catalog,
    connections: &Connections,
    at_brokers: &TaskTracker,
    limit: Duration,
) {
    let deadline = Instant::now() + limit;
    engine.begin_drain();
    connections.drain();
    let cut_off = engine.finish_drain(deadline).await;
    catalog.shut_down().await;
    if cut_off > 0 {
        let seconds = limit.as_secs();
        tracing::warn!(cut_off, "aborted requests still running after {seconds} s");
    }
    // Lets aborted requests get their error response, for a moment.
    let gone = deadline.max(Instant::now() + CUT_OFF / 2);
    connections.gone(gone).await;
    // Confirms to brokers what has run.
    at_brokers.close();
    let _ = tokio::time::timeout_at(gone.into(), at_brokers.wait()).await;
    connections.cut();
    engine.shut_down(Instant::now() + CUT_OFF).await;
}

/// Completes at SIGTERM or ctrl-C.
pub(crate) fn stop_signal() -> std::io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("stopping: no new requests; running ones may finish");
    })
}
