//! Subscriptions of functions and chains at the node's MQTT brokers: whose each is, to what, and how it fares.
//! [`crate::triggers`] makes the connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{Begun, MessageCounters, PortError, PortTable};
use crate::model::{MqttTopic, PortOwner, PortTrigger};

/// What somebody subscribes to at a broker. It stays the same as long as that does not change.
pub struct Link {
    /// Who.
    pub owner: PortOwner,
    /// The broker's name.
    pub broker: String,
    /// Of the messages that came.
    pub counters: Arc<MessageCounters>,
    /// Answers that were sent.
    pub answers: AtomicU64,
    /// Answers that could not be sent.
    pub dropped: AtomicU64,
    /// Messages that run.
    pub in_flight: AtomicUsize,
    /// Cancelled when nobody wants it any more.
    pub closed: CancellationToken,
    topics: watch::Sender<Vec<MqttTopic>>,
    state: Mutex<LinkState>,
}

/// How a connection fares.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinkState {
    /// What is spoken, while there is a connection: `5` or `3.1.1`.
    pub version: Option<&'static str>,
    /// Since when there is one, or none.
    pub since: Option<Timestamp>,
    /// What went wrong last, and when.
    pub last_error: Option<(String, Timestamp)>,
}

impl Link {
    fn new(owner: &PortOwner, broker: &str, topics: &[MqttTopic]) -> Self {
        Self {
            owner: owner.clone(),
            broker: broker.to_owned(),
            counters: Arc::default(),
            answers: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            in_flight: AtomicUsize::new(0),
            closed: CancellationToken::new(),
            topics: watch::Sender::new(topics.to_vec()),
            state: Mutex::default(),
        }
    }

    /// Its topics, from now on.
    pub fn topics(&self) -> watch::Receiver<Vec<MqttTopic>> {
        self.topics.subscribe()
    }

    /// How it fares.
    pub fn state(&self) -> LinkState {
        self.state.lock().clone()
    }

    /// There is a connection.
    pub fn connected(&self, version: &'static str) {
        let mut state = self.state.lock();
        state.version = Some(version);
        state.since = Some(Timestamp::now());
    }

    /// There is none any more, or still none.
    pub fn disconnected(&self) {
        let mut state = self.state.lock();
        if state.version.take().is_some() || state.since.is_none() {
            state.since = Some(Timestamp::now());
        }
    }

    /// Something went wrong.
    pub fn failed(&self, error: &str) {
        self.state.lock().last_error = Some((error.to_owned(), Timestamp::now()));
    }

    /// An answer was sent, or could not be.
    pub fn answered(&self, is_sent: bool) {
        let counter = if is_sent {
            &self.answers
        } else {
            &self.dropped
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

impl PortTable {
    /// What somebody subscribes to at a broker.
    pub fn link_of(&self, owner: &PortOwner, broker: &str) -> Option<Arc<Link>> {
        let links = self.0.links.lock();
        let mut all = links.iter();
        all.find(|link| link.owner == *owner && link.broker == broker)
            .cloned()
    }

    /// Refuses a broker that there is not. What somebody has already stays.
    pub(super) fn check_broker(&self, owner: &PortOwner, broker: &str) -> Result<(), PortError> {
        if self.0.brokers.get(broker).is_some() || self.link_of(owner, broker).is_some() {
            return Ok(());
        }
        let names: Vec<_> = self.0.brokers.names().collect();
        Err(PortError::Broker(match names.as_slice() {
            [] => String::new(),
            [only] => (*only).to_owned(),
            several => format!("one of {}", several.join(", ")),
        }))
    }

    /// Makes these, and no others, an owner's subscriptions. What stays keeps its connection.
    pub(super) fn link(&self, owner: &PortOwner, triggers: &[PortTrigger]) {
        let mut links = self.0.links.lock();
        links.retain(|link| {
            let mut wanted = triggers.iter();
            let stays = link.owner != *owner
                || wanted.any(|trigger| trigger.broker() == Some(link.broker.as_str()));
            if !stays {
                link.closed.cancel();
            }
            stays
        });
        for trigger in triggers {
            let Some(broker) = trigger.broker() else {
                continue;
            };
            let topics = trigger.topics();
            let mut all = links.iter();
            match all.find(|link| link.owner == *owner && link.broker == broker) {
                Some(link) => {
                    link.topics.send_if_modified(|now| {
                        let differs = now != topics;
                        if differs {
                            *now = topics.to_vec();
                        }
                        differs
                    });
                }
                None => {
                    let link = Arc::new(Link::new(owner, broker, topics));
                    links.push(link.clone());
                    // Whoever makes connections may have ended, as everything does.
                    let _ = self.0.begun.send(Begun::Link(link));
                }
            }
        }
    }
}
