//! Accepts the connections of one TCP port, or of all those that the kernel steers, for whoever has the port at that
//! time.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};

use super::{Triggers, mqtt, streams};
use crate::http::PortFront;
use crate::model::{Port, PortTrigger, Protocol, StreamMode};
use crate::ports::Opened;
use crate::serve;

/// Pause after a failed accept: the process may be out of descriptors for a moment.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Until nobody has the port any more, or the server stops.
pub(super) async fn serve(triggers: Triggers, opened: Opened) -> io::Result<()> {
    let Opened {
        port,
        socket,
        closed,
        ..
    } = opened;
    let listener = TcpListener::from_std(socket.into())?;
    tokio::select! {
        () = accept(&triggers, &listener, |_| Some(port)) => {}
        () = closed.cancelled() => {}
    }
    Ok(())
}

/// The same for a listener that gets the connections to all ports which the kernel steers.
pub(super) async fn serve_steered(triggers: Triggers, socket: OwnedFd) -> io::Result<()> {
    let listener = TcpListener::from_std(socket.into())?;
    let port = |stream: &TcpStream| {
        Some(Port {
            protocol: Protocol::Tcp,
            number: stream.local_addr().ok()?.port(),
        })
    };
    accept(&triggers, &listener, port).await;
    Ok(())
}

/// Until the server stops.
async fn accept(
    triggers: &Triggers,
    listener: &TcpListener,
    port: impl Fn(&TcpStream) -> Option<Port>,
) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = triggers.stopping.cancelled() => return,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection to a port");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        if let Some(port) = port(&stream) {
            begin(triggers, port, stream, peer);
        }
    }
}

fn begin(triggers: &Triggers, port: Port, stream: TcpStream, peer: SocketAddr) {
    let trigger = triggers.target(port).map(|target| target.trigger);
    match trigger {
        Some(PortTrigger::Tcp {
            mode: StreamMode::Raw,
            ..
        }) => streams::begin(triggers, port, stream, peer),
        Some(PortTrigger::Mqtt { .. }) => mqtt::begin(triggers, port, stream, peer),
        Some(_) => {
            let front = PortFront::new(triggers.app.clone(), port);
            serve::connection(&triggers.connections, stream, peer, front);
        }
        // Taken away just now.
        None => {}
    }
}
