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
use tokio::net::TcpStream;
use tower::Service;

use super::edge::For;
use super::functions::invoke;
use super::problem::Problem;
use super::{App, finish, inbound, router, trigger};
use crate::serve::{Answers, RequestPart};

/// Answers requests. Cheap to clone: each connection has its own.
#[derive(Clone)]
pub struct Front {
    app: App,
    router: Router,
    serves: Serves,
}

/// What is behind a listener.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Serves {
    /// Console, API and functions.
    All,
    /// Functions below `/fn/`.
    Functions,
    /// The function that has the port to which a client has connected: 0 before one has.
    Port(u16),
}

impl Front {
    /// All that the server answers.
    pub fn new(app: App) -> Self {
        Self {
            router: router(app.clone()),
            app,
            serves: Serves::All,
        }
    }

    /// The same for a listener of which the whole origin is functions'.
    pub fn for_functions(app: App) -> Self {
        Self {
            router: Router::new(),
            app,
            serves: Serves::Functions,
        }
    }

    /// The same for a listener that receives the connections to functions' ports.
    pub fn for_ports(app: App) -> Self {
        Self {
            router: Router::new(),
            app,
            serves: Serves::Port(0),
        }
    }
}

impl Answers for Front {
    fn accepted(&self, stream: &TcpStream) -> Self {
        let mut front = self.clone();
        if let Serves::Port(port) = &mut front.serves {
            *port = stream.local_addr().map_or(0, |address| address.port());
        }
        front
    }

    async fn answer(
        &self,
        request: hyper::Request<Incoming>,
        part: RequestPart,
        peer: SocketAddr,
    ) -> Response {
        let mut request = request.map(|incoming| inbound::body(incoming, part));
        if self.is_plain_invoke(&request) {
            return finish::around(request, async |request, _| {
                let answer = invoke::invoke(State(self.app.clone()), request).await;
                answer.into_response()
            })
            .await;
        }
        if let Serves::Port(port) = self.serves {
            return self.at_port(port, request, peer).await;
        }
        match self.app.edge.receive(&mut request, peer) {
            Ok(For::Console) if self.serves == Serves::Functions => {
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

impl Front {
    /// Answers for the function that has the port.
    async fn at_port(&self, port: u16, mut request: Request, peer: SocketAddr) -> Response {
        let received = self.app.edge.receive_at_port(&mut request, peer);
        finish::around(request, async |mut request, id| {
            if let Err(problem) = received {
                return problem.into_response();
            }
            // Each request again: the connection may be older than the port's owner.
            let Some(function) = self.app.engine.ingress().owner(port) else {
                return Problem::not_found("function at this port").into_response();
            };
            request.extensions_mut().insert(id.clone());
            trigger::own_port(&self.app, function, request).await
        })
        .await
    }

    /// Whether nothing but the handler has to look at this request. A session's needs to be known to have come by TLS.
    fn is_plain_invoke(&self, request: &Request) -> bool {
        self.serves == Serves::All
            && request.method() == Method::POST
            && invoke::name_in(request.uri().path()).is_some()
            && request.headers().contains_key(header::AUTHORIZATION)
            && self.app.edge.is_plainly_for_the_console(request)
    }
}
