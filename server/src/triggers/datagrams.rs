//! Datagrams of one UDP port: each is an invocation, or several that come close together are one.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use super::Triggers;
use super::coap::Endpoint;
use super::event::{DatagramEvent, Datagrams, InvalidAnswer, Reply, replies, reply, taken};
use super::socket::DatagramSocket;
use super::target::{Failed, Target};
use crate::ingress::{PortDatagrams, XdpDatagram};
use crate::model::{Batch, Port, PortTrigger, Trigger};
use crate::ports::Opened;

/// Most invocations of one port that are under way. Others wait in the socket's buffer, where the kernel drops what does
/// not fit.
const INVOCATIONS_MAX: usize = 1024;

/// Longest that a datagram waits in a socket's buffer, as far as this is believed: the clock was set otherwise.
const AGE_MAX: Duration = Duration::from_secs(60);

/// A datagram that came.
pub(super) struct Datagram {
    pub(super) payload: Bytes,
    pub(super) source: SocketAddr,
    /// The address of this host that it was sent to; replies come from there.
    pub(super) destination: Option<IpAddr>,
    /// µs since 1970.
    pub(super) received_at: i64,
    /// The way that it came, if not by the socket.
    pub(super) by_xdp: Option<XdpDatagram>,
}

impl Datagram {
    /// How long ago the kernel saw it. One that came by the socket is stamped by the clock that may be set meanwhile.
    pub(super) fn age(&self) -> Duration {
        if let Some(way) = &self.by_xdp {
            return way.age().unwrap_or_default();
        }
        let age = jiff::Timestamp::now().as_microsecond() - self.received_at;
        let age = Duration::from_micros(u64::try_from(age).unwrap_or_default());
        if age > AGE_MAX { Duration::ZERO } else { age }
    }
}

impl From<XdpDatagram> for Datagram {
    fn from(datagram: XdpDatagram) -> Self {
        let age = datagram.age().unwrap_or_default();
        let received_at = jiff::Timestamp::now() - age;
        Self {
            payload: datagram.payload.clone(),
            source: datagram.source,
            destination: Some(datagram.destination),
            received_at: received_at.as_microsecond(),
            by_xdp: Some(datagram),
        }
    }
}

/// Where the datagrams of a port come from.
struct Inbox {
    socket: Arc<DatagramSocket>,
    by_xdp: Option<PortDatagrams>,
    /// One that did not fit the last batch.
    held: Option<Datagram>,
}

impl Inbox {
    /// The next datagram. May be cancelled.
    async fn receive(&mut self) -> io::Result<Datagram> {
        if let Some(held) = self.held.take() {
            return Ok(held);
        }
        let Some(by_xdp) = &mut self.by_xdp else {
            return self.socket.receive().await;
        };
        tokio::select! {
            datagram = by_xdp.receive() => Ok(datagram.into()),
            datagram = self.socket.receive() => datagram,
        }
    }

    /// The next datagram, if there is one.
    fn try_receive(&mut self) -> io::Result<Option<Datagram>> {
        let by_xdp = self.by_xdp.as_mut().and_then(PortDatagrams::try_receive);
        match by_xdp {
            Some(datagram) => Ok(Some(datagram.into())),
            None => self.socket.try_receive(),
        }
    }
}

/// Until nobody has the port any more, or the server stops.
pub(super) async fn serve(triggers: Triggers, opened: Opened) -> io::Result<()> {
    let Opened {
        port,
        socket,
        datagrams,
        closed,
        counters,
    } = opened;
    let socket = Arc::new(DatagramSocket::new(socket)?);
    let mut inbox = Inbox {
        socket: socket.clone(),
        by_xdp: datagrams,
        held: None,
    };
    let permits = Arc::new(Semaphore::new(INVOCATIONS_MAX));
    let coap = Endpoint::new(triggers.clone(), port, socket.clone(), counters);
    let coap = Arc::new(coap);
    loop {
        let next = async {
            let permit = permits.clone().acquire_owned().await;
            let permit = permit.map_err(io::Error::other)?;
            io::Result::Ok((permit, inbox.receive().await?))
        };
        let (permit, first) = tokio::select! {
            next = next => next?,
            () = closed.cancelled() => return Ok(()),
            () = triggers.stopping.cancelled() => return Ok(()),
        };
        let Some(target) = triggers.target(port) else {
            continue;
        };
        let batch = match target.trigger {
            PortTrigger::Udp { batch, .. } => batch,
            PortTrigger::Coap { .. } => {
                coap.receive(first, target, permit).await;
                continue;
            }
            PortTrigger::Tcp { .. } | PortTrigger::Mqtt { .. } => Batch::default(),
        };
        let datagrams = gather(&mut inbox, first, batch, target.room()).await?;
        let (socket, triggers) = (socket.clone(), triggers.clone());
        tokio::spawn(async move {
            let _permit = permit;
            let call = Call {
                triggers,
                target,
                port,
                is_list: batch.max > 1,
            };
            if let Err(error) = call.answer(&socket, &datagrams).await {
                tracing::debug!(%port, %error, "datagrams without a reply");
            }
        });
    }
}

/// The first datagram with those that come until the batch is full, has waited long enough, or has no room for the next
/// one, which is then held for the one after it.
async fn gather(
    inbox: &mut Inbox,
    first: Datagram,
    batch: Batch,
    room: Option<usize>,
) -> io::Result<Vec<Datagram>> {
    let mut used = taken(first.payload.len());
    let mut all = vec![first];
    let end = Instant::now() + Duration::from_millis(batch.wait_ms.into());
    while all.len() < batch.max as usize {
        let next = match inbox.try_receive()? {
            Some(next) => next,
            None => match timeout_at(end, inbox.receive()).await {
                Ok(next) => next?,
                Err(_) => break,
            },
        };
        used += taken(next.payload.len());
        if room.is_some_and(|room| used > room) {
            inbox.held = Some(next);
            break;
        }
        all.push(next);
    }
    Ok(all)
}

/// One invocation.
struct Call {
    triggers: Triggers,
    target: Target,
    port: Port,
    /// Whether the event is a list of datagrams.
    is_list: bool,
}

/// Why there is no reply.
#[derive(Debug, thiserror::Error)]
enum Unanswered {
    #[error(transparent)]
    Invocation(#[from] Failed),
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
        let age = datagrams.first().map_or(Duration::ZERO, Datagram::age);
        let invoked = self.target.invoke(&self.triggers, Trigger::Udp, event, age);
        let json = invoked.await?;
        let answers = match self.is_list {
            true => replies(&json, datagrams.len())?,
            false => vec![reply(&json)?],
        };
        for (datagram, answer) in datagrams.iter().zip(answers) {
            if let Some(Reply { body, .. }) = answer {
                let by_xdp = datagram.by_xdp.as_ref();
                if !by_xdp.is_some_and(|way| way.reply(&body)) {
                    socket.send(&body, datagram).await?;
                }
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
