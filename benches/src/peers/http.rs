//! A bare axum server: the cost of an HTTP response in Rust.

use axum::Json;
use axum::routing::post;
use serde::{Deserialize, Serialize};

/// What goes to and fro as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Makes up the size.
    pub filler: String,
}

/// Its routes.
fn router() -> axum::Router {
    axum::Router::new()
        .route("/", post(|body: bytes::Bytes| async move { body }))
        .route(
            "/json",
            post(|Json(message): Json<Message>| async move { Json(message) }),
        )
        // The largest payload that is measured is 1 MiB; axum's limit is 2 MB.
        .layer(axum::extract::DefaultBodyLimit::disable())
}

/// Serves until the process is killed.
pub async fn serve(listener: tokio::net::TcpListener) -> anyhow::Result<()> {
    let listener =
        axum::serve::ListenerExt::tap_io(listener, |stream| drop(stream.set_nodelay(true)));
    axum::serve(listener, router()).await?;
    Ok(())
}
