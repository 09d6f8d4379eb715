//! The service of a connection: axum's router, with a fast path for invocations.
//!
//! For every request the router boxes each layer's service and future and stores path parameters for extractors. The
//! invocation handler uses no extractors, so its `POST` is called directly, inside the same outermost layer; the route
//! table lists it nevertheless, for other methods and for the documentation.

use std::net::SocketAddr;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{Method, header};
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use tower::Service;

use super::edge::For;
use super::functions::invoke;
use super::problem::Problem;
use super::{App, chains, finish, inbound, router, trigger};
use crate::model::{Port, PortOwner};
use crate::serve::{Answers, RequestPart};

/// Answers requests. Cheap to clone: each connection has its own.
#[derive(Clone)]
pub struct Front {
    app: App,
    router: Router,
    /// Whether console and API are behind it, or functions only.
    console: bool,
}

impl Front {
    /// All that the server answers.
    pub fn new(app: App) -> Self {
        Self {
            router: router(app.clone()),
            app,
            console: true,
        }
    }

    /// The same for a listener of which the whole origin is functions'.
    pub fn for_functions(app: App) -> Self {
        Self {
            router: Router::new(),
            app,
            console: false,
        }
    }
}

impl Answers for Front {
    async fn answer(
        &self,
        request: hyper::Request<Incoming>,
        part: RequestPart,
        peer: SocketAddr,
    ) -> Response {
        let mut request = request.map(|incoming| inbound::body(incoming, part));
        match self.plain_invoke(&request) {
            Some(Invoked::Function) => {
                return finish::around(request, async |request, _| {
                    let answer = invoke::invoke(State(self.app.clone()), request).await;
                    answer.into_response()
                })
                .await;
            }
            Some(Invoked::Chain) => {
                return finish::around(request, async |request, _| {
                    let answer = chains::invoke::invoke(State(self.app.clone()), request).await;
                    answer.into_response()
                })
                .await;
            }
            None => {}
        }
        match self.app.edge.receive(&mut request, peer) {
            Ok(For::Console) if !self.console => {
                finish::around(request, async |mut request, id| {
                    request.extensions_mut().insert(id.clone());
                    trigger::functions_only(&self.app, request).await
                })
                .await
            }
            Ok(For::Console) => {
                let answer = self.router.clone().call(request).await;
                answer.unwrap_or_else(|never| match never {})
            }
            Ok(For::Function(name)) => {
                finish::around(request, async |mut request, id| {
                    request.extensions_mut().insert(id.clone());
                    trigger::own_host(&self.app, &name, request).await
                })
                .await
            }
            Err(problem) => finish::around(request, async |_, _| problem.into_response()).await,
        }
    }
}

/// What a request to the API invokes.
enum Invoked {
    Function,
    Chain,
}

impl Front {
    /// What a request invokes that nothing but the handler has to look at. A session's needs to be known to have come by TLS.
    fn plain_invoke(&self, request: &Request) -> Option<Invoked> {
        let path = request.uri().path();
        if !self.console || request.method() != Method::POST || !path.ends_with("/invoke") {
            return None;
        }
        let invoked = match invoke::name_in(path) {
            Some(_) => Invoked::Function,
            None => chains::invoke::names_in(path).map(|_| Invoked::Chain)?,
        };
        let is_plain = request.headers().contains_key(header::AUTHORIZATION)
            && self.app.edge.is_plainly_for_the_console(request);
        is_plain.then_some(invoked)
    }
}

/// Answers requests on a port of a function's or chain's own, by whoever has it at that time.
#[derive(Clone)]
pub struct PortFront {
    app: App,
    port: Port,
}

impl PortFront {
    /// For this port.
    pub fn new(app: App, port: Port) -> Self {
        Self { app, port }
    }

    async fn respond(&self, request: Request) -> Response {
        match self.app.engine.port_owner(self.port) {
            Some((PortOwner::Function(name), _)) => {
                trigger::own_port(&self.app, name, request).await
            }
            Some((PortOwner::Chain(name), _)) => {
                trigger::own_chain_port(&self.app, &name, self.port, request).await
            }
            None => Problem::not_found("function or chain on this port").into_response(),
        }
    }
}

impl Answers for PortFront {
    async fn answer(
        &self,
        request: hyper::Request<Incoming>,
        part: RequestPart,
        peer: SocketAddr,
    ) -> Response {
        let mut request = request.map(|incoming| inbound::body(incoming, part));
        match self.app.edge.receive_any(&mut request, peer) {
            Ok(_) => {
                finish::around(request, async |mut request, id| {
                    request.extensions_mut().insert(id.clone());
                    self.respond(request).await
                })
                .await
            }
            Err(problem) => finish::around(request, async |_, _| problem.into_response()).await,
        }
    }
}
