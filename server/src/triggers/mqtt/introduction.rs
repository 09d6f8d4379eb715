//! How a client introduces itself, and is taken in or refused.

use std::time::Duration;

use mqtt_proto::v5::ConnectReasonCode;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

use super::admission::admit;
use super::answers::Offer;
use super::frames::Frames;
use super::packets::{self, NoConnect, Version};
use super::session::{Client, Ended, PACKET_MAX, RUNNING_MAX, Session, send};
use super::subscriptions::Subscriptions;
use crate::model::InvocationId;

/// A client that has not introduced itself by then is given up, whatever it has sent.
const INTRODUCTION: Duration = Duration::from_secs(10);
/// The longest keep-alive, and that of clients without one, in seconds.
const KEEP_ALIVE_MAX: u16 = 1200;

impl Session {
    /// Takes a client in; none if it goes before it has begun.
    pub(super) async fn introduction(
        &self,
        frames: &mut Frames<OwnedReadHalf>,
        writer: &mut OwnedWriteHalf,
    ) -> Result<Option<Client>, Ended> {
        let first = tokio::select! {
            first = timeout(INTRODUCTION, frames.next()) => first,
            () = self.triggers.stopping.cancelled() => return Ok(None),
        };
        let first = first.map_err(|_| Ended::NoIntroduction)?;
        let frame = match first {
            Ok(Some(frame)) => frame,
            Ok(None) => return Ok(None),
            Err(error) => {
                self.counters.refused();
                return Err(error.into());
            }
        };
        let connect = match packets::connect(&frame) {
            Ok(connect) => connect,
            Err(no) => {
                self.counters.refused();
                if no == NoConnect::Malformed {
                    return Err(Ended::NotMqtt);
                }
                // As 3.1.1 says it: a later version would know that (3.1.1, 3.1.2.2).
                let code = ConnectReasonCode::UnsupportedProtocolVersion;
                send(writer, &Version::Three.refused(code, "")).await?;
                return Err(Ended::Refused(code));
            }
        };
        let version = connect.version;
        let admitted = match admit(&self.triggers, self.port, &connect) {
            Ok(admitted) => admitted,
            Err((code, reason)) => {
                self.counters.refused();
                send(writer, &version.refused(code, reason)).await?;
                return Err(Ended::Refused(code));
            }
        };
        let keep_alive = match connect.keep_alive {
            0 => KEEP_ALIVE_MAX,
            seconds => seconds.min(KEEP_ALIVE_MAX),
        };
        let name = match connect.client.is_empty() {
            true => InvocationId::new().to_string(),
            false => connect.client.clone(),
        };
        let offer = Offer {
            receive_max: RUNNING_MAX,
            packet_max: PACKET_MAX,
            client: connect.client.is_empty().then(|| name.clone()),
            keep_alive: (keep_alive != connect.keep_alive).then_some(keep_alive),
        };
        send(writer, &version.connected(offer)).await?;
        Ok(Some(Client {
            version,
            admitted,
            name,
            // One and a half times what it said (3.1.2.10).
            keep_alive: Duration::from_millis(u64::from(keep_alive) * 1500),
            subscriptions: Subscriptions::new(connect.receive_max),
            packet_max: connect.packet_max.map_or(usize::MAX, |most| most as usize),
        }))
    }
}
