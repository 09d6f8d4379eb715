//! One subscriber at one broker, over all of its connections: who it is there, and what lasts from one to the next.
//!
//! ```text
//! dial ── introduce (MQTT 5, else 3.1.1) ── subscribe ── exchange ─┬─ a failure ── pause ── dial again
//!                                                                  └─ nobody wants it, or the server stops ── leave
//! ```

use std::io;
use std::sync::Arc;

use mqtt_proto::v5::DisconnectReasonCode as Why;
use rustls::ClientConfig;
use rustls::pki_types::pem;

use super::connection::Connection;
use super::dial::{self, DialError};
use super::unconfirmed::Unconfirmed;
use crate::config::Broker;
use crate::model::PortOwner;
use crate::ports::Link;
use crate::triggers::Triggers;
use crate::triggers::mqtt::frames::FrameError;
use crate::triggers::mqtt::packets::Version;

/// See the module.
pub(super) struct Session {
    pub(super) triggers: Triggers,
    pub(super) link: Arc<Link>,
    pub(super) broker: Broker,
    pub(super) tls: Option<Arc<ClientConfig>>,
    /// The client identifier: of this owner at this broker, always the same.
    pub(super) client: String,
    /// Filters that the broker has of it.
    pub(super) subscribed: Vec<String>,
    pub(super) unconfirmed: Unconfirmed,
}

/// Why a connection has ended, or there is none.
#[derive(Debug, thiserror::Error)]
pub(super) enum Ended {
    #[error("nobody wants it any more")]
    Over,
    #[error(transparent)]
    Dial(#[from] DialError),
    #[error("the connection has failed: {0}")]
    Io(#[from] io::Error),
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error("the broker did not send {0} in time")]
    Late(&'static str),
    #[error("the broker has closed the connection")]
    Closed,
    #[error("what the broker sends is no MQTT")]
    NotMqtt,
    #[error("the broker speaks neither MQTT 5 nor 3.1.1")]
    Version,
    #[error("the broker refused the connection: {0}")]
    Refused(String),
    #[error("the broker has ended the connection: {0}")]
    Goodbye(String),
    #[error("the broker broke the protocol: {0:?}")]
    Because(Why),
}

impl Ended {
    /// What a broker is told of it.
    fn code(&self) -> Option<Why> {
        match self {
            Self::Because(why) => Some(*why),
            Self::Frame(FrameError::TooLarge(_)) => Some(Why::PacketTooLarge),
            Self::Frame(FrameError::Malformed) => Some(Why::MalformedPacket),
            Self::Late(_) => Some(Why::UnspecifiedError),
            _ => None,
        }
    }
}

impl Session {
    /// Nothing yet.
    ///
    /// # Errors
    /// When the broker's certificates are none.
    pub(super) fn new(
        triggers: &Triggers,
        link: &Arc<Link>,
        broker: Broker,
    ) -> Result<Self, pem::Error> {
        let (kind, name) = match &link.owner {
            PortOwner::Function(name) => ("function", name),
            PortOwner::Chain(name) => ("chain", name),
        };
        Ok(Self {
            triggers: triggers.clone(),
            link: link.clone(),
            tls: dial::tls(&triggers.reach, &broker)?,
            client: format!("{}-{kind}-{name}", broker.client_id),
            broker,
            subscribed: Vec::new(),
            unconfirmed: Unconfirmed::default(),
        })
    }

    /// One connection, until the server stops or nobody wants it any more.
    ///
    /// # Errors
    /// Why it has ended before; [`Ended::Over`] if the broker has yet to forget the session.
    pub(super) async fn serve(&mut self) -> Result<(), Ended> {
        let mut connection = tokio::select! {
            introduced = Connection::introduce(self, false) => introduced?,
            () = self.link.closed.cancelled() => return Err(Ended::Over),
            () = self.triggers.stopping.cancelled() => return Ok(()),
        };
        let version = connection.version;
        self.link.connected(version.label());
        tracing::info!(
            owner = %self.link.owner, broker = self.link.broker, version = version.label(), "connected to a broker"
        );
        let ended = self.exchange(&mut connection).await;
        if let Err(error) = &ended
            && let Some(bytes) = error.code().and_then(|code| version.disconnect(code))
        {
            // It may be gone.
            let _ = connection.send(&bytes).await;
        }
        match ended {
            // What ends a session of 3.1.1 is another connection.
            Ok(()) if self.link.closed.is_cancelled() && version == Version::Three => {
                Err(Ended::Over)
            }
            ended => ended,
        }
    }

    /// Has the broker forget the session, if it can be reached now.
    pub(super) async fn forget(&self) {
        match Connection::introduce(self, true).await {
            Ok(mut connection) => connection.leave(true).await,
            Err(error) => {
                let (owner, broker) = (&self.link.owner, &self.link.broker);
                tracing::debug!(%owner, broker, %error, "a broker keeps a session that nobody wants");
            }
        }
    }
}
