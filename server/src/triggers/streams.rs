//! Byte streams: each piece that a client sends is an event, one after the other, and the answer is sent back.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::Triggers;
use super::event::{Reply, StreamEvent, StreamEventKind, fitting, reply};
use crate::model::{InvocationId, Port, Trigger};

/// Most bytes of one event; fewer where a chain's blocks hold fewer.
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
        let mut goes_on = self
            .event(&mut stream, StreamEventKind::Open, &mut &[][..])
            .await?;
        let mut piece = vec![0; PIECE];
        while goes_on {
            let read = tokio::select! {
                read = timeout(IDLE, stream.read(&mut piece)) => read.map_err(io::Error::from)??,
                () = self.triggers.stopping.cancelled() => break,
            };
            if read == 0 {
                break;
            }
            let mut rest = &piece[..read];
            while goes_on && !rest.is_empty() {
                goes_on = self
                    .event(&mut stream, StreamEventKind::Data, &mut rest)
                    .await?;
            }
        }
        if goes_on {
            self.event(&mut stream, StreamEventKind::Close, &mut &[][..])
                .await?;
        }
        timeout(WRITE, stream.shutdown())
            .await
            .map_err(io::Error::from)?
    }

    /// Sends the answer to one event, which takes as much of the payload as fits it. False if the stream is to be closed.
    async fn event(
        &self,
        stream: &mut TcpStream,
        kind: StreamEventKind,
        payload: &mut &[u8],
    ) -> io::Result<bool> {
        let Some(target) = self.triggers.target(self.port) else {
            return Ok(false);
        };
        let most = target.room().map_or(PIECE, fitting);
        let (piece, rest) = payload.split_at(payload.len().min(most));
        *payload = rest;
        let event = StreamEvent::new(&self.id, kind, piece, self.peer, self.port.number);
        let event = Bytes::from(serde_json::to_vec(&event)?);
        let invoked = target.invoke(&self.triggers, Trigger::Tcp, event, Duration::ZERO);
        let json = invoked.await.map_err(io::Error::other)?;
        let answer = reply(&json).map_err(io::Error::other)?;
        let Reply { body, close } = answer.unwrap_or_default();
        if !body.is_empty() {
            timeout(WRITE, stream.write_all(&body))
                .await
                .map_err(io::Error::from)??;
        }
        Ok(!close && kind != StreamEventKind::Close)
    }
}
