//! A message on its way through the function or chain.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use mqtt_proto::QosPid;
use mqtt_proto::v5::PubackReasonCode as Receipt;

use super::message::{MqttEvent, PROPERTIES_MAX, fits, is_temporary, of_failure, of_result};
use super::packets::Publish;
use super::patience::Patience;
use crate::http::problem::Problem;
use crate::model::{PortOrBroker, PortOwner, PortTrigger, Trigger, topics};
use crate::ports::MessageCounters;
use crate::triggers::Triggers;

/// What a client has published, or a broker passes on.
pub(super) struct Publication {
    pub(super) triggers: Triggers,
    pub(super) at: PortOrBroker,
    pub(super) peer: SocketAddr,
    pub(super) counters: Arc<MessageCounters>,
    /// The client's name.
    pub(super) client: String,
    pub(super) qos: QosPid,
    pub(super) message: Publish,
    /// How it waits where the function or chain takes no more now; none if whoever sent it is told so.
    pub(super) patience: Option<Patience>,
}

/// What became of it.
pub(super) struct Done {
    pub(super) qos: QosPid,
    pub(super) receipt: Receipt,
    /// Whether it may be taken at another time.
    pub(super) is_put_off: bool,
    /// The message to be sent, if the client wants it.
    pub(super) answer: Option<Publish>,
}

/// What became of one attempt.
enum Attempt {
    /// It has run, or never can.
    Over(Receipt, Option<Publish>),
    /// The function or chain takes no more now.
    Busy,
}

impl Publication {
    /// Runs it, as long as the port is that of `owner`, or `owner` subscribes to it.
    pub(super) async fn run(mut self, owner: PortOwner) -> Done {
        loop {
            let (receipt, is_put_off, answer) = match self.attempt(&owner).await {
                Attempt::Over(receipt, answer) => (receipt, false, answer),
                Attempt::Busy => {
                    if let Some(patience) = &mut self.patience
                        && patience.wait().await
                    {
                        continue;
                    }
                    (Receipt::QuotaExceeded, true, None)
                }
            };
            return Done {
                qos: self.qos,
                receipt,
                is_put_off,
                answer,
            };
        }
    }

    async fn attempt(&mut self, owner: &PortOwner) -> Attempt {
        let message = &mut self.message;
        let target = self.triggers.target_at(&self.at, owner);
        let topic = target.as_ref().and_then(|target| match &target.trigger {
            PortTrigger::Mqtt { topics: all, .. } if target.owner() == *owner => {
                let mut all = all.iter();
                all.find(|topic| topics::fits(&topic.filter, &message.topic))
                    .cloned()
            }
            _ => None,
        });
        let (Some(mut target), Some(topic)) = (target, topic) else {
            self.counters.refused();
            return Attempt::Over(Receipt::TopicNameInvalid, None);
        };
        let room = target.room();
        let is_too_large = room.is_some_and(|room| !fits(message, &self.client, room));
        if is_too_large || message.user_properties.len() > PROPERTIES_MAX {
            self.counters.refused();
            return Attempt::Over(Receipt::QuotaExceeded, None);
        }
        target.go_along(topic.route.as_deref());
        let qos = match self.qos {
            QosPid::Level0 => 0,
            QosPid::Level1(_) | QosPid::Level2(_) => 1,
        };
        let source = self.peer.into();
        let event = MqttEvent::new(message, qos, &self.client, source, &self.at);
        // Text and numbers: writing it cannot fail.
        let event = serde_json::to_vec(&event).unwrap_or_default();
        match &self.patience {
            // They are in the event.
            None => {
                message.payload.clear();
                message.user_properties = Vec::new();
                self.counters.accepted();
            }
            Some(patience) if patience.is_first() => self.counters.accepted(),
            Some(_) => {}
        }
        let invoked = target.invoke(&self.triggers, Trigger::Mqtt, event.into(), Duration::ZERO);
        let result = match invoked.await {
            Ok(json) => of_result(json),
            Err(failed) => {
                let problem = Problem::from(failed);
                if is_temporary(&problem) {
                    return Attempt::Busy;
                }
                Err(problem.code().name())
            }
        };
        // It has run: running it again would not help, whatever came of it.
        let answer = result.unwrap_or_else(|code| Some(of_failure(code)));
        let to = message.response_topic.clone().or_else(|| {
            let setting = topic.response_topic.as_deref()?;
            Some(topics::response_topic(
                setting,
                &message.topic,
                &self.client,
            ))
        });
        let answer = answer.zip(to).map(|(answer, topic)| Publish {
            topic,
            correlation: message.correlation.clone(),
            ..answer
        });
        Attempt::Over(Receipt::Success, answer)
    }
}
