//! MQTT at a TCP port, or of a broker ([`broker`]), versions 3.1.1 and 5: what clients publish is an event of the function, or of the chain's route that the
//! topic's filter names; its result is a message to the same client. `server/docs/protocols.md` says how.
//!
//! At a port it is no broker: clients get nothing of each other's, and nothing is kept for them.

mod admission;
mod answers;
pub(super) mod broker;
mod frames;
mod introduction;
mod message;
mod packets;
mod patience;
mod publication;
mod session;
mod subscriptions;

use std::net::SocketAddr;

use tokio::net::TcpStream;

use super::Triggers;
use crate::model::Port;

use session::Session;

/// Serves a connection on a task of its own, unless there are too many.
pub(super) fn begin(triggers: &Triggers, port: Port, stream: TcpStream, peer: SocketAddr) {
    let Some(counters) = triggers.engine.port_counters(port) else {
        return;
    };
    let Some(held) = triggers.connections.hold(peer) else {
        counters.refused();
        tracing::debug!(%peer, "too many connections");
        return;
    };
    // A packet is written whole: waiting for more would only delay it.
    let _ = stream.set_nodelay(true);
    let session = Session {
        triggers: triggers.clone(),
        port,
        peer,
        counters,
    };
    let place = held.connection();
    let task = tokio::spawn(async move {
        let _held = held;
        if let Err(error) = session.serve(stream).await {
            tracing::debug!(%peer, %port, %error, "an MQTT session has ended");
        }
    });
    place.runs_in(task.abort_handle());
}
