//! One client, from its introduction to its end.
//!
//! What it publishes runs at once, a few messages at a time; results and receipts are sent in the order in which the messages came
//! (MQTT 5, 4.6). While too many run, nothing is read. Nothing of a session is left when its connection ends.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesOrdered;
use mqtt_proto::v5::{ConnectReasonCode, DisconnectReasonCode as Why, PubackReasonCode as Receipt};
use mqtt_proto::{Pid, QosPid};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::{Instant, sleep_until, timeout};

use super::admission::Admitted;
use super::frames::{FrameError, Frames};
use super::packets::{Packet, Publish, Version};
use super::publication::{Done, Publication};
use super::subscriptions::Subscriptions;
use crate::model::{Port, PortOrBroker};
use crate::ports::MessageCounters;
use crate::triggers::Triggers;

/// Most bytes of an introduction: a name, a password and their like.
const INTRODUCTION_MAX: usize = 16 << 10;
/// Most bytes of any other packet.
pub(super) const PACKET_MAX: usize = 256 << 10;
/// A client that takes nothing for this long is given up.
const WRITE: Duration = Duration::from_secs(30);
/// Most messages of a client that run at a time.
pub(super) const RUNNING_MAX: u16 = 16;

/// Serves a connection until it ends.
pub(super) struct Session {
    pub(super) triggers: Triggers,
    pub(super) port: Port,
    pub(super) peer: SocketAddr,
    pub(super) counters: std::sync::Arc<MessageCounters>,
}

/// Why a session ends, if not by its client's wish.
#[derive(Debug, thiserror::Error)]
pub(super) enum Ended {
    #[error("the connection has failed: {0}")]
    Io(#[from] io::Error),
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error("the client did not introduce itself in time")]
    NoIntroduction,
    #[error("this is no MQTT")]
    NotMqtt,
    #[error("refused: {0:?}")]
    Refused(ConnectReasonCode),
    #[error("ended: {0:?}")]
    Because(Why),
}

type Running = FuturesOrdered<BoxFuture<'static, Done>>;

/// What is known of a client that was taken in.
pub(super) struct Client {
    pub(super) version: Version,
    pub(super) admitted: Admitted,
    pub(super) name: String,
    pub(super) keep_alive: Duration,
    pub(super) subscriptions: Subscriptions,
    pub(super) packet_max: usize,
}

impl Session {
    /// Until the client goes, or must.
    pub(super) async fn serve(&self, stream: TcpStream) -> Result<(), Ended> {
        let (reader, mut writer) = stream.into_split();
        let mut frames = Frames::new(reader, INTRODUCTION_MAX);
        let Some(mut client) = self.introduction(&mut frames, &mut writer).await? else {
            return Ok(());
        };
        frames.allow(PACKET_MAX);
        let ended = self.go_on(&mut client, &mut frames, &mut writer).await;
        let why = match &ended {
            Err(Ended::Because(why)) => Some(*why),
            Err(Ended::Frame(FrameError::TooLarge(_))) => Some(Why::PacketTooLarge),
            Err(Ended::Frame(FrameError::Malformed)) => Some(Why::MalformedPacket),
            _ => None,
        };
        if why.is_some_and(|why| !matches!(why, Why::ServerShuttingDown | Why::KeepAliveTimeout)) {
            self.counters.refused();
        }
        if let Some(bytes) = why.and_then(|why| client.version.disconnect(why)) {
            send(&mut writer, &bytes).await?;
        }
        let _ = timeout(WRITE, writer.shutdown()).await;
        ended
    }

    async fn go_on(
        &self,
        client: &mut Client,
        frames: &mut Frames<OwnedReadHalf>,
        writer: &mut OwnedWriteHalf,
    ) -> Result<(), Ended> {
        let mut running = Running::new();
        let ended = self.read_on(client, frames, writer, &mut running).await;
        // A client that has published goes its way; what it has published is done all the same.
        while running.next().await.is_some() {}
        ended
    }

    async fn read_on(
        &self,
        client: &mut Client,
        frames: &mut Frames<OwnedReadHalf>,
        writer: &mut OwnedWriteHalf,
        running: &mut Running,
    ) -> Result<(), Ended> {
        let mut silent_until = Instant::now() + client.keep_alive;
        loop {
            let is_full = running.len() >= usize::from(RUNNING_MAX);
            tokio::select! {
                frame = frames.next(), if !is_full => {
                    let Some(frame) = frame? else {
                        return Ok(());
                    };
                    silent_until = Instant::now() + client.keep_alive;
                    if !self.take(client, &frame, running, writer).await? {
                        return Ok(());
                    }
                }
                Some(done) = running.next() => {
                    self.done(client, done, writer).await?;
                    if is_full {
                        // Nothing was read meanwhile.
                        frames.resume();
                        silent_until = Instant::now() + client.keep_alive;
                    }
                }
                () = sleep_until(silent_until), if !is_full => {
                    return Err(Ended::Because(Why::KeepAliveTimeout));
                }
                () = self.triggers.stopping.cancelled() => {
                    // What runs may still be answered.
                    while let Some(done) = running.next().await {
                        self.done(client, done, writer).await?;
                    }
                    return Err(Ended::Because(Why::ServerShuttingDown));
                }
            }
        }
    }

    /// Takes in a packet. False if the client goes.
    async fn take(
        &self,
        client: &mut Client,
        frame: &[u8],
        running: &mut Running,
        writer: &mut OwnedWriteHalf,
    ) -> Result<bool, Ended> {
        let version = client.version;
        let packet = version.read(frame);
        let packet = packet.ok_or(Ended::Because(Why::MalformedPacket))?;
        let answer = match packet {
            Packet::Publish(qos, message) => {
                let done = self.publish(client, qos, message)?;
                running.push_back(done);
                return Ok(true);
            }
            Packet::Puback(id) => {
                client.subscriptions.confirmed(id);
                return Ok(true);
            }
            Packet::Subscribe {
                has_identifier: true,
                ..
            } => return Err(Ended::Because(Why::SubscriptionIdentifiersNotSupported)),
            Packet::Subscribe { id, filters, .. } => {
                version.suback(id, client.subscriptions.add(filters))
            }
            Packet::Unsubscribe { id, filters } => {
                version.unsuback(id, &client.subscriptions.remove(&filters))
            }
            Packet::Ping => version.pong(),
            Packet::Disconnect => return Ok(false),
            Packet::Unexpected => return Err(Ended::Because(Why::ProtocolError)),
        };
        send(writer, &answer).await?;
        Ok(true)
    }

    /// What becomes of a message; an error ends the session.
    fn publish(
        &self,
        client: &Client,
        qos: QosPid,
        message: Publish,
    ) -> Result<BoxFuture<'static, Done>, Ended> {
        if !client.admitted.is_still(&self.triggers) {
            return Err(Ended::Because(Why::NotAuthorized));
        }
        let why = match qos {
            QosPid::Level2(_) => Some(Why::QoSNotSupported),
            _ if message.has_alias => Some(Why::TopicAliasInvalid),
            // Version 3.1.1 cannot be told that nothing is kept.
            _ if message.retain && client.version == Version::Five => Some(Why::RetainNotSupported),
            _ if message.topic.is_empty() => Some(Why::TopicNameInvalid),
            _ => None,
        };
        if let Some(why) = why {
            return Err(Ended::Because(why));
        }
        let publication = Publication {
            triggers: self.triggers.clone(),
            at: PortOrBroker::Port(self.port),
            peer: self.peer,
            counters: self.counters.clone(),
            client: client.name.clone(),
            qos,
            message,
            patience: None,
        };
        // On a task of its own: a client that is slow to take its answers must not hold instances.
        let running = tokio::spawn(publication.run(client.admitted.owner.clone()));
        Ok(Box::pin(async move {
            running.await.unwrap_or(Done {
                qos,
                receipt: Receipt::UnspecifiedError,
                is_put_off: false,
                answer: None,
            })
        }))
    }

    /// Sends what became of a message: its result, then its receipt.
    async fn done(
        &self,
        client: &mut Client,
        done: Done,
        writer: &mut OwnedWriteHalf,
    ) -> Result<(), Ended> {
        let is_taken = matches!(done.receipt, Receipt::Success);
        if client.version == Version::Three && !is_taken && id_of(done.qos).is_some() {
            // There is no receipt that says no. A client that is cut off knows that this message was not taken.
            return Err(Ended::Because(Why::UnspecifiedError));
        }
        if let Some(answer) = done.answer
            && let Some(qos) = client.subscriptions.take(&answer.topic)
        {
            let bytes = client.version.publish(qos, answer);
            let fits = |bytes: &Vec<u8>| bytes.len() <= client.packet_max;
            match bytes.filter(fits) {
                Some(bytes) => send(writer, &bytes).await?,
                // It was not sent, and will not be confirmed.
                None => client.subscriptions.unsent(qos),
            }
        }
        if let Some(id) = id_of(done.qos) {
            send(writer, &client.version.puback(id, done.receipt)).await?;
        }
        Ok(())
    }
}

pub(super) fn id_of(qos: QosPid) -> Option<Pid> {
    match qos {
        QosPid::Level0 => None,
        QosPid::Level1(id) | QosPid::Level2(id) => Some(id),
    }
}

/// Writes a packet, unless it takes too long.
pub(super) async fn send(writer: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> io::Result<()> {
    let written = async {
        writer.write_all(bytes).await?;
        writer.flush().await
    };
    timeout(WRITE, written).await.map_err(io::Error::from)?
}
