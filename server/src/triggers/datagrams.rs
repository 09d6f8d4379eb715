//! Datagrams of one UDP port: each is an invocation, or several that come close together are one.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use super::Triggers;
use super::event::{DatagramEvent, Datagrams, InvalidAnswer, Reply, replies, reply};
use super::socket::DatagramSocket;
use crate::engine::{Invocation, InvokeReply};
use crate::model::{Batch, Port, PortTrigger, Trigger};
use crate::ports::Opened;

/// Most invocations of one port that are under way. Others wait in the socket's buffer, where the kernel drops what does
/// not fit.
const INVOCATIONS_MAX: usize = 1024;

/// A datagram that came.
pub(super) struct Datagram {
    pub(super) payload: Bytes,
    pub(super) source: SocketAddr,
    /// The address of this host that it was sent to; replies come from there.
    pub(super) destination: Option<IpAddr>,
    /// µs since 1970.
    pub(super) received_at: i64,
}

/// Until no function has the port any more, or the server stops.
pub(super) async fn serve(triggers: Triggers, opened: Opened) -> io::Result<()> {
    let Opened {
        port,
        socket,
        closed,
    } = opened;
    let socket = Arc::new(DatagramSocket::new(socket)?);
    let permits = Arc::new(Semaphore::new(INVOCATIONS_MAX));
    let next = async || {
        let permit = permits.clone().acquire_owned().await;
        let permit = permit.map_err(io::Error::other)?;
        io::Result::Ok((permit, socket.receive().await?))
    };
    loop {
        let (permit, first) = tokio::select! {
            next = next() => next?,
            () = closed.cancelled() => return Ok(()),
            () = triggers.stopping.cancelled() => return Ok(()),
        };
        let Some((function, trigger)) = triggers.engine.port_owner(port) else {
            continue;
        };
        let batch = match trigger {
            PortTrigger::Udp { batch, .. } => batch,
            PortTrigger::Tcp { .. } => Batch::default(),
        };
        let datagrams = gather(&socket, first, batch).await?;
        let (socket, triggers) = (socket.clone(), triggers.clone());
        tokio::spawn(async move {
            let _permit = permit;
            let call = Call {
                triggers,
                function,
                port,
                is_list: batch.max > 1,
            };
            if let Err(error) = call.answer(&socket, &datagrams).await {
                tracing::debug!(function = &*call.function, %port, %error, "datagrams without a reply");
            }
        });
    }
}

/// The first datagram with those that come until the batch is full or has waited long enough.
async fn gather(
    socket: &DatagramSocket,
    first: Datagram,
    batch: Batch,
) -> io::Result<Vec<Datagram>> {
    let mut all = vec![first];
    let end = Instant::now() + Duration::from_millis(batch.wait_ms.into());
    while all.len() < batch.max as usize {
        let next = match socket.try_receive()? {
            Some(next) => next,
            None => match timeout_at(end, socket.receive()).await {
                Ok(next) => next?,
                Err(_) => break,
            },
        };
        all.push(next);
    }
    Ok(all)
}

/// One invocation.
struct Call {
    triggers: Triggers,
    function: Arc<str>,
    port: Port,
    /// Whether the event is a list of datagrams.
    is_list: bool,
}

/// Why there is no reply.
#[derive(Debug, thiserror::Error)]
enum Unanswered {
    #[error(transparent)]
    Invocation(#[from] crate::engine::InvokeError),
    #[error(transparent)]
    Answer(#[from] InvalidAnswer),
    #[error("the reply cannot be sent: {0}")]
    Send(#[from] io::Error),
    #[error("the event cannot be written: {0}")]
    Event(#[from] serde_json::Error),
}

impl Call {
    async fn answer(
        &self,
        socket: &DatagramSocket,
        datagrams: &[Datagram],
    ) -> Result<(), Unanswered> {
        let event = self.event(datagrams)?;
        let invocation = Invocation::new(&self.function, Trigger::Udp, event);
        let (_, outcome) = self.triggers.engine.invoke(invocation).await;
        let InvokeReply::Json(json) = outcome? else {
            return Ok(());
        };
        let answers = match self.is_list {
            true => replies(&json, datagrams.len())?,
            false => vec![reply(&json)?],
        };
        for (datagram, answer) in datagrams.iter().zip(answers) {
            if let Some(Reply { body, .. }) = answer {
                socket.send(&body, datagram).await?;
            }
        }
        Ok(())
    }

    fn event(&self, datagrams: &[Datagram]) -> serde_json::Result<Bytes> {
        let mut events = datagrams.iter().map(|datagram| {
            DatagramEvent::new(
                &datagram.payload,
                datagram.source,
                self.port.number,
                datagram.received_at,
            )
        });
        let json = match self.is_list {
            true => serde_json::to_vec(&Datagrams {
                datagrams: events.collect(),
            }),
            false => serde_json::to_vec(&events.next()),
        };
        json.map(Bytes::from)
    }
}
