//! Byte streams: each piece that a client sends is an event, one after the other, and what the function answers is sent
//! back.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::Triggers;
use super::event::{Reply, StreamEvent, StreamEventKind, reply};
use crate::engine::{Invocation, InvokeReply};
use crate::model::{InvocationId, Port, Trigger};

/// Most bytes of one event.
const PIECE: usize = 64 << 10;
/// A client that sends nothing for this long is given up.
const IDLE: Duration = Duration::from_secs(300);
/// A client that does not take an answer within this time is given up.
const WRITE: Duration = Duration::from_secs(30);

/// Serves a connection on a task of its own, unless there are too many.
pub(super) fn begin(triggers: &Triggers, port: Port, stream: TcpStream, peer: SocketAddr) {
    let Some(held) = triggers.connections.hold(peer) else {
        tracing::debug!(%peer, "too many connections");
        return;
    };
    // An answer is written whole: waiting for more would only delay it.
    let _ = stream.set_nodelay(true);
    let triggers = triggers.clone();
    let place = held.connection();
    let task = tokio::spawn(async move {
        let _held = held;
        let connection = Connection {
            id: InvocationId::new().to_string(),
            triggers,
            port,
            peer,
        };
        if let Err(error) = connection.serve(stream).await {
            tracing::debug!(%peer, %port, %error, "a stream has ended");
        }
    });
    place.runs_in(task.abort_handle());
}

/// One client.
struct Connection {
    id: String,
    triggers: Triggers,
    port: Port,
    peer: SocketAddr,
}

impl Connection {
    async fn serve(&self, mut stream: TcpStream) -> io::Result<()> {
        let mut goes_on = self.event(&mut stream, StreamEventKind::Open, &[]).await?;
        let mut piece = vec![0; PIECE];
        while goes_on {
            let read = tokio::select! {
                read = timeout(IDLE, stream.read(&mut piece)) => read.map_err(io::Error::from)??,
                () = self.triggers.stopping.cancelled() => break,
            };
            if read == 0 {
                break;
            }
            goes_on = self
                .event(&mut stream, StreamEventKind::Data, &piece[..read])
                .await?;
        }
        if goes_on {
            self.event(&mut stream, StreamEventKind::Close, &[]).await?;
        }
        timeout(WRITE, stream.shutdown())
            .await
            .map_err(io::Error::from)?
    }

    /// Runs the function for one event and sends its answer. False if the stream is to be closed.
    async fn event(
        &self,
        stream: &mut TcpStream,
        kind: StreamEventKind,
        payload: &[u8],
    ) -> io::Result<bool> {
        let Some((function, _)) = self.triggers.engine.port_owner(self.port) else {
            return Ok(false);
        };
        let event = StreamEvent::new(&self.id, kind, payload, self.peer, self.port.number);
        let event = Bytes::from(serde_json::to_vec(&event)?);
        let invocation = Invocation::new(&function, Trigger::Tcp, event);
        let (_, outcome) = self.triggers.engine.invoke(invocation).await;
        let answer = match outcome {
            Ok(InvokeReply::Json(json)) => reply(&json).map_err(io::Error::other)?,
            Ok(InvokeReply::Http { .. }) => None,
            Err(error) => return Err(io::Error::other(error)),
        };
        let Reply { body, close } = answer.unwrap_or_default();
        if !body.is_empty() {
            timeout(WRITE, stream.write_all(&body))
                .await
                .map_err(io::Error::from)??;
        }
        Ok(!close && kind != StreamEventKind::Close)
    }
}
