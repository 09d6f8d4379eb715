//! A message on its way through the function or chain.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use mqtt_proto::QosPid;
use mqtt_proto::v5::PubackReasonCode as Receipt;

use super::message::{MqttEvent, PROPERTIES_MAX, fits, is_temporary, of_failure, of_result};
use super::packets::Publish;
use crate::http::problem::Problem;
use crate::model::{Port, PortOwner, PortTrigger, Trigger, topics};
use crate::ports::MessageCounters;
use crate::triggers::Triggers;

/// What a client has published.
pub(super) struct Publication {
    pub(super) triggers: Triggers,
    pub(super) port: Port,
    pub(super) peer: SocketAddr,
    pub(super) counters: Arc<MessageCounters>,
    /// The client's name.
    pub(super) client: String,
    pub(super) qos: QosPid,
    pub(super) message: Publish,
}

/// What became of it.
pub(super) struct Done {
    pub(super) qos: QosPid,
    pub(super) receipt: Receipt,
    /// The message to be sent, if the client wants it.
    pub(super) answer: Option<Publish>,
}

impl Publication {
    /// Runs it, as long as the port is that of `owner`.
    pub(super) async fn run(self, owner: PortOwner) -> Done {
        let qos = self.qos;
        let (receipt, answer) = self.outcome(owner).await;
        Done {
            qos,
            receipt,
            answer,
        }
    }

    async fn outcome(mut self, owner: PortOwner) -> (Receipt, Option<Publish>) {
        let message = &mut self.message;
        let target = self.triggers.target(self.port);
        let topic = target.as_ref().and_then(|target| match &target.trigger {
            PortTrigger::Mqtt { topics: all, .. } if target.owner() == owner => {
                let mut all = all.iter();
                all.find(|topic| topics::fits(&topic.filter, &message.topic))
                    .cloned()
            }
            _ => None,
        });
        let (Some(mut target), Some(topic)) = (target, topic) else {
            self.counters.refused();
            return (Receipt::TopicNameInvalid, None);
        };
        let room = target.room();
        let is_too_large = room.is_some_and(|room| !fits(message, &self.client, room));
        if is_too_large || message.user_properties.len() > PROPERTIES_MAX {
            self.counters.refused();
            return (Receipt::QuotaExceeded, None);
        }
        target.go_along(topic.route.as_deref());
        let qos = match self.qos {
            QosPid::Level0 => 0,
            QosPid::Level1(_) | QosPid::Level2(_) => 1,
        };
        let source = self.peer.into();
        let event = MqttEvent::new(message, qos, &self.client, source, self.port.number);
        // Text and numbers: writing it cannot fail.
        let event = serde_json::to_vec(&event).unwrap_or_default();
        // They are in the event.
        message.payload.clear();
        message.user_properties = Vec::new();
        self.counters.accepted();
        let invoked = target.invoke(&self.triggers, Trigger::Mqtt, event.into(), Duration::ZERO);
        let result = match invoked.await {
            Ok(json) => of_result(json),
            Err(failed) => {
                let problem = Problem::from(failed);
                if is_temporary(&problem) {
                    return (Receipt::QuotaExceeded, None);
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
        (Receipt::Success, answer)
    }
}
