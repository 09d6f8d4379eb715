//! Accepts the connections of one TCP port, for whichever function has it at that time.

use std::io;
use std::time::Duration;

use tokio::net::TcpListener;

use super::{Triggers, streams};
use crate::http::PortFront;
use crate::model::{PortTrigger, StreamMode};
use crate::ports::Opened;
use crate::serve;

/// Pause after a failed accept: the process may be out of descriptors for a moment.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Until no function has the port any more, or the server stops.
pub(super) async fn serve(triggers: Triggers, opened: Opened) -> io::Result<()> {
    let Opened {
        port,
        socket,
        closed,
    } = opened;
    let listener = TcpListener::from_std(socket.into())?;
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = closed.cancelled() => return Ok(()),
            () = triggers.stopping.cancelled() => return Ok(()),
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%port, %error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        match triggers.engine.port_owner(port) {
            Some((
                _,
                PortTrigger::Tcp {
                    mode: StreamMode::Raw,
                    ..
                },
            )) => streams::begin(&triggers, port, stream, peer),
            Some(_) => {
                let front = PortFront::new(triggers.app.clone(), port);
                serve::connection(&triggers.connections, stream, peer, front);
            }
            // Taken away just now.
            None => {}
        }
    }
}
