//! Serves the ports of functions and chains: HTTP and byte streams over TCP, datagrams over UDP; and subscribes for them to
//! brokers.
//!
//! - [`connections`]: accepts TCP connections. HTTP goes to [`crate::http::PortFront`].
//! - [`streams`]: byte streams. [`datagrams`]: datagrams, over [`socket`].
//! - [`target`]: who gets what comes. [`event`]: what that looks like, and the answers.
//!
//! `server/docs/ports.md` explains the events.

mod coap;
mod connections;
mod datagrams;
mod event;
mod mqtt;
mod socket;
mod streams;
mod target;

use std::os::fd::OwnedFd;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::engine::Engine;
use crate::http::App;
use crate::model::Protocol;
use crate::ports::Begun;
use crate::serve::Connections;

pub use mqtt::broker::Reach;

/// What serves a port.
#[derive(Clone)]
pub struct Triggers {
    /// Runs functions, and knows who has which port.
    pub engine: Engine,
    /// Answers HTTP, and knows chains.
    pub app: App,
    /// All TCP connections of the server.
    pub connections: Connections,
    /// What connections to brokers need.
    pub reach: Reach,
    /// Cancelled when the server stops: nothing new is taken then.
    pub stopping: CancellationToken,
}

impl Triggers {
    /// Serves ports and subscriptions as they begin, and the connections that come to these listeners from all others, until
    /// the server stops.
    pub async fn run(self, mut begun: mpsc::UnboundedReceiver<Begun>, steered: Vec<OwnedFd>) {
        for listener in steered {
            let served = connections::serve_steered(self.clone(), listener);
            tokio::spawn(async move {
                if let Err(error) = served.await {
                    tracing::error!(%error, "cannot serve the ports of functions and chains");
                }
            });
        }
        loop {
            let next = tokio::select! {
                next = begun.recv() => next,
                () = self.stopping.cancelled() => None,
            };
            let opened = match next {
                Some(Begun::Port(opened)) => opened,
                Some(Begun::Link(link)) => {
                    mqtt::broker::begin(&self, link);
                    continue;
                }
                None => return,
            };
            let triggers = self.clone();
            tokio::spawn(async move {
                let port = opened.port;
                let served = match port.protocol {
                    Protocol::Tcp => connections::serve(triggers, opened).await,
                    Protocol::Udp => datagrams::serve(triggers, opened).await,
                };
                if let Err(error) = served {
                    tracing::error!(%port, %error, "cannot serve a port");
                }
            });
        }
    }
}
