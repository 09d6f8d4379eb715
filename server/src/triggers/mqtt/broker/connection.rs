//! One connection to a broker, from its beginning: dialled, introduced and welcomed, each within its time.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesOrdered;
use mqtt_proto::Pid;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::awaited::Awaited;
use super::dial::{Dialed, dial};
use super::packets::{Introduction, NotWelcome, Welcome};
use super::session::{Ended, Session};
use crate::triggers::mqtt::frames::{FrameError, Frames};
use crate::triggers::mqtt::packets::Version;
use crate::triggers::mqtt::publication::Done;
use crate::triggers::mqtt::session::{PACKET_MAX, RUNNING_MAX, send};

/// How long a broker may take to answer an introduction, a subscription, a ping, and to close.
pub(super) const ANSWER: Duration = Duration::from_secs(10);
/// Most bytes of its answer to an introduction.
const WELCOME_MAX: usize = 16 << 10;
/// How long a broker of MQTT 5 is asked to keep a session, and messages of quality 1 for it, while the server is away.
const KEPT_S: u32 = 24 * 60 * 60;

/// See the module.
pub(super) struct Connection {
    pub(super) version: Version,
    pub(super) frames: Frames<Box<dyn AsyncRead + Send + Unpin>>,
    writer: Box<dyn AsyncWrite + Send + Unpin>,
    pub(super) peer: SocketAddr,
    pub(super) welcome: Welcome,
    /// Messages that run, in the order in which they came.
    pub(super) running: FuturesOrdered<BoxFuture<'static, Done>>,
    pub(super) awaited: Awaited,
    /// Filters that were asked for, by the packet's number.
    pub(super) asked: Vec<(Pid, Vec<String>)>,
    /// Cancelled at its end: messages that wait for their turn give up, and the broker sends them again.
    pub(super) over: CancellationToken,
    _over: DropGuard,
}

impl Connection {
    /// Connects, in version 5 or, if the broker does not speak that, in 3.1.1.
    pub(super) async fn introduce(session: &Session, is_clean: bool) -> Result<Self, Ended> {
        match Self::introduce_in(Version::Five, session, is_clean).await {
            Err(Ended::Version) => Self::introduce_in(Version::Three, session, is_clean).await,
            introduced => introduced,
        }
    }

    async fn introduce_in(
        version: Version,
        session: &Session,
        is_clean: bool,
    ) -> Result<Self, Ended> {
        let Session { broker, tls, .. } = session;
        let dialed = dial(&session.triggers.reach, broker, tls.as_ref()).await?;
        let Dialed {
            reader,
            mut writer,
            peer,
        } = dialed;
        let mut frames = Frames::new(reader, WELCOME_MAX);
        let introduction = Introduction {
            client: &session.client,
            username: broker.username.as_deref(),
            password: broker.password.as_deref(),
            keep_alive: broker.keep_alive_s,
            is_clean,
            session_expiry: if is_clean { 0 } else { KEPT_S },
            receive_max: RUNNING_MAX,
            packet_max: u32::try_from(PACKET_MAX).unwrap_or(u32::MAX),
        };
        let answered = timeout(ANSWER, async {
            send(&mut writer, &version.connect(&introduction)).await?;
            frames.next().await
        });
        let frame = match answered.await.map_err(|_| Ended::Late("CONNACK"))? {
            Ok(Some(frame)) => frame,
            // As some that do not know the version refuse it.
            Ok(None) | Err(FrameError::Io(_)) if version == Version::Five => {
                return Err(Ended::Version);
            }
            Ok(None) => return Err(Ended::Closed),
            Err(error) => return Err(error.into()),
        };
        let welcome = version.welcome(&frame).map_err(|no| match no {
            NotWelcome::Version => Ended::Version,
            NotWelcome::Refused(reason) => Ended::Refused(reason),
            NotWelcome::Malformed => Ended::NotMqtt,
        })?;
        frames.allow(PACKET_MAX);
        let over = CancellationToken::new();
        Ok(Self {
            version,
            frames,
            writer,
            peer,
            welcome,
            running: FuturesOrdered::new(),
            awaited: Awaited::default(),
            asked: Vec::new(),
            _over: over.clone().drop_guard(),
            over,
        })
    }

    /// Sends a packet.
    pub(super) async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        send(&mut self.writer, bytes).await
    }

    /// Says good-bye, and sees to it that it arrives: what the broker still sends is read, so that nothing is reset.
    pub(super) async fn leave(&mut self, forget: bool) {
        if self.send(&self.version.leave(forget)).await.is_err() {
            return;
        }
        let left = async {
            let _ = self.writer.shutdown().await;
            while let Ok(Some(_)) = self.frames.next().await {}
        };
        let _ = timeout(ANSWER, left).await;
    }
}
