//! What a connection talks to: axum's router, and a shorter way to the address that carries the load.
//!
//! For every request the router boxes each layer's service and future anew and keeps what it found in the address for
//! extractors. The handler of an invocation extracts nothing, so its `POST` goes to it directly, inside the same
//! outermost layer; the route stands in the table all the same, for other methods and for the documentation.

use std::net::SocketAddr;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, State};
use axum::http::Method;
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use tower::Service;

use super::functions::invoke;
use super::{App, finish, router};

/// Answers requests. Cheap to clone: each connection has its own.
#[derive(Clone)]
pub struct Front {
    app: App,
    router: Router,
}

impl Front {
    /// All that the server answers.
    pub fn new(app: App) -> Self {
        Self {
            router: router(app.clone()),
            app,
        }
    }

    /// Answers one request of a client at this address.
    pub async fn answer(&self, request: hyper::Request<Incoming>, peer: SocketAddr) -> Response {
        let mut request = request.map(Body::new);
        if request.method() == Method::POST && invoke::name_in(request.uri().path()).is_some() {
            return finish::around(request, async |request, _| {
                let answer = invoke::invoke(State(self.app.clone()), request).await;
                answer.into_response()
            })
            .await;
        }
        request.extensions_mut().insert(ConnectInfo(peer));
        let answer = self.router.clone().call(request).await;
        answer.unwrap_or_else(|never| match never {})
    }
}
