//! The packets that go to and fro. As at a port, messages run a few at a time, results and receipts are sent in the order in
//! which they came, and while too many run nothing is read: the broker keeps what is left.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::StreamExt as _;
use mqtt_proto::v5::{DisconnectReasonCode as Why, PubackReasonCode as Receipt};
use mqtt_proto::{QoS, QosPid};
use tokio::time::{Instant, sleep_until};

use super::awaited::Answer;
use super::connection::{ANSWER, Connection};
use super::packets::Incoming;
use super::session::{Ended, Session};
use crate::model::{PortOrBroker, topics};
use crate::ports::Link;
use crate::triggers::mqtt::packets::{Publish, Version};
use crate::triggers::mqtt::patience::{Patience, Pauses};
use crate::triggers::mqtt::publication::{Done, Publication};
use crate::triggers::mqtt::session::{RUNNING_MAX, id_of};

/// How long a broker may take to confirm an answer.
const CONFIRM: Duration = Duration::from_secs(30);
/// Pauses of a message whose function or chain takes no more.
const FIRST_TURN: Duration = Duration::from_millis(250);
const LONGEST_TURN: Duration = Duration::from_secs(10);

impl Session {
    /// Until nobody wants it any more, or the server stops.
    ///
    /// # Errors
    /// Why it has ended before.
    pub(super) async fn exchange(&mut self, connection: &mut Connection) -> Result<(), Ended> {
        if !connection.welcome.is_known {
            self.subscribed.clear();
        }
        for packet in self.unconfirmed.again(connection.version) {
            connection.send(&packet).await?;
        }
        let mut topics = self.link.topics();
        let now = topics.borrow_and_update().clone();
        self.subscribe(connection, &now, true).await?;
        let most = usize::from(connection.welcome.receive_max.clamp(1, RUNNING_MAX));
        let wanted = connection.welcome.keep_alive.filter(|seconds| *seconds > 0);
        let keep_alive = wanted.unwrap_or(self.broker.keep_alive_s);
        // Twice within the time after which the broker may give it up.
        let alive = Duration::from_secs(keep_alive.into()) / 2;
        let mut ping_at = Instant::now() + alive;
        let mut full_since = None;
        loop {
            let is_full = connection.running.len() >= most;
            if is_full {
                full_since.get_or_insert_with(Instant::now);
            } else if let Some(since) = full_since.take() {
                // Nothing was read meanwhile, by the server's choice.
                connection.awaited.put_off(since.elapsed());
                connection.frames.resume();
            }
            let (owed, due) = connection.awaited.first().unzip();
            tokio::select! {
                frame = connection.frames.next(), if !is_full => match frame? {
                    Some(frame) => self.take(connection, &frame)?,
                    None => return Err(Ended::Closed),
                },
                Some(done) = connection.running.next() => self.done(connection, done).await?,
                () = sleep_until(due.unwrap_or(ping_at)), if due.is_some() && !is_full => {
                    return Err(Ended::Late(owed.map_or("an answer", Answer::name)));
                }
                () = sleep_until(ping_at) => {
                    self.sign_of_life(connection).await?;
                    ping_at = Instant::now() + alive;
                }
                Ok(()) = topics.changed() => {
                    let now = topics.borrow_and_update().clone();
                    self.subscribe(connection, &now, false).await?;
                }
                () = self.link.closed.cancelled() => {
                    self.subscribe(connection, &[], false).await?;
                    self.finish(connection).await?;
                    connection.leave(true).await;
                    return Ok(());
                }
                () = self.triggers.stopping.cancelled() => {
                    self.finish(connection).await?;
                    connection.leave(false).await;
                    return Ok(());
                }
            }
        }
    }

    /// What runs may still be answered and confirmed.
    async fn finish(&mut self, connection: &mut Connection) -> Result<(), Ended> {
        connection.over.cancel();
        while let Some(done) = connection.running.next().await {
            self.done(connection, done).await?;
        }
        Ok(())
    }

    /// Sends a ping, and sees whether the broker confirms what it is sent.
    async fn sign_of_life(&self, connection: &mut Connection) -> Result<(), Ended> {
        let oldest = self.unconfirmed.oldest();
        if oldest.is_some_and(|since| since.elapsed() > CONFIRM) {
            return Err(Ended::Late("PUBACK"));
        }
        if !connection.awaited.has(Answer::Pingresp) {
            connection.awaited.add(Answer::Pingresp, ANSWER);
        }
        let ping = connection.version.ping();
        Ok(connection.send(&ping).await?)
    }

    /// Takes in a packet.
    fn take(&mut self, connection: &mut Connection, frame: &[u8]) -> Result<(), Ended> {
        let heard = connection.version.hear(frame);
        let is_due = match heard.ok_or(Ended::Because(Why::MalformedPacket))? {
            Incoming::Message(qos, message) => {
                self.run(connection, qos, message)?;
                true
            }
            Incoming::Confirmed(id) => {
                self.unconfirmed.confirmed(id);
                true
            }
            Incoming::Subscribed(id, refused) => {
                let at = connection.asked.iter().position(|(asked, _)| *asked == id);
                let filters = at.map(|at| connection.asked.swap_remove(at).1);
                let filters = filters.unwrap_or_default();
                for (filter, reason) in filters.iter().zip(&refused) {
                    if let Some(reason) = reason {
                        let error = format!("the broker refused the topics {filter}: {reason}");
                        super::fail(&self.link, &error);
                    }
                }
                connection.awaited.came(Answer::Suback(id)) && filters.len() == refused.len()
            }
            Incoming::Unsubscribed(id) => connection.awaited.came(Answer::Unsuback(id)),
            Incoming::Pong => {
                connection.awaited.came(Answer::Pingresp);
                true
            }
            Incoming::Goodbye(reason) => return Err(Ended::Goodbye(reason)),
            Incoming::Unexpected => false,
        };
        match is_due {
            true => Ok(()),
            false => Err(Ended::Because(Why::ProtocolError)),
        }
    }

    /// Runs a message.
    fn run(&self, connection: &mut Connection, qos: QosPid, message: Publish) -> Result<(), Ended> {
        let why = match qos {
            // No more than 1 was subscribed to.
            QosPid::Level2(_) => Some(Why::QoSNotSupported),
            _ if message.has_alias => Some(Why::TopicAliasInvalid),
            _ if message.topic.is_empty() => Some(Why::TopicNameInvalid),
            _ => None,
        };
        if let Some(why) = why {
            return Err(Ended::Because(why));
        }
        let link = &self.link;
        // The broker would not send it again: where there is no room, it waits here, and others at the broker.
        let patience = id_of(qos).map(|_| {
            let pauses = Pauses::new(FIRST_TURN, LONGEST_TURN);
            Patience::new(pauses, connection.over.clone())
        });
        let publication = Publication {
            triggers: self.triggers.clone(),
            at: PortOrBroker::Broker(link.broker.clone()),
            peer: connection.peer,
            counters: link.counters.clone(),
            client: self.client.clone(),
            qos,
            message,
            patience,
        };
        let (owner, flight) = (link.owner.clone(), InFlight::new(link));
        // On a task of its own: it goes on if the connection ends.
        let running = tokio::spawn(async move {
            let _flight = flight;
            publication.run(owner).await
        });
        connection.running.push_back(Box::pin(async move {
            running.await.unwrap_or(Done {
                qos,
                receipt: Receipt::UnspecifiedError,
                is_put_off: false,
                answer: None,
            })
        }));
        Ok(())
    }

    /// Sends what became of a message: its result, then its receipt.
    async fn done(&mut self, connection: &mut Connection, done: Done) -> Result<(), Ended> {
        if let Some(answer) = done.answer {
            let is_sent = self.answer(connection, done.qos, answer).await?;
            self.link.answered(is_sent);
        }
        match id_of(done.qos) {
            // What was not confirmed the broker sends again.
            Some(id) if !done.is_put_off => {
                let receipt = connection.version.puback(id, done.receipt);
                Ok(connection.send(&receipt).await?)
            }
            _ => Ok(()),
        }
    }

    /// Publishes a result, with the quality of its message. False if it cannot be.
    async fn answer(
        &mut self,
        connection: &mut Connection,
        qos: QosPid,
        answer: Publish,
    ) -> Result<bool, Ended> {
        let (version, welcome) = (connection.version, &connection.welcome);
        let is_own = |filter: &String| topics::fits(filter, &answer.topic);
        if version == Version::Three && self.subscribed.iter().any(is_own) {
            // It would come back as a message, again and again. In version 5 the broker is told not to send it.
            return Ok(false);
        }
        let qos = match qos {
            QosPid::Level0 => QosPid::Level0,
            _ if welcome.qos_max == QoS::Level0 => QosPid::Level0,
            _ if !self.unconfirmed.has_room(welcome.receive_max) => return Ok(false),
            _ => QosPid::Level1(self.unconfirmed.next_id()),
        };
        let packet = version.publish(qos, answer);
        let Some(packet) = packet.filter(|packet| packet.len() <= welcome.packet_max) else {
            return Ok(false);
        };
        connection.send(&packet).await?;
        if let Some(id) = id_of(qos) {
            self.unconfirmed.add(id, version, packet);
        }
        Ok(true)
    }
}

/// A message that runs, as it is counted.
struct InFlight(Arc<Link>);

impl InFlight {
    fn new(link: &Arc<Link>) -> Self {
        link.in_flight.fetch_add(1, Ordering::Relaxed);
        Self(link.clone())
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}
