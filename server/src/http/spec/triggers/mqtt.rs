//! Triggers for MQTT: a port, or a broker, and topics.

use serde_json::{Map, Value};

use super::super::fields::invalid;
use super::{Place, ROUTE_RULE};
use crate::model::{InvalidField, MAX_TOPICS, MqttTopic, PortTrigger, all_topics, topics};

const BROKER_RULE: &str = "must be the name of a broker of HEARTH_MQTT_BROKERS";
const EITHER_RULE: &str = "must not be given with port: a trigger is for a port or for a broker";
const SHARED_RULE: &str = "must not be a shared subscription";
const TOPICS_RULE: &str = "must be a list of 1 to 64 topics such as [{\"filter\": \"sensors/#\"}]";
const TOPIC_RULE: &str = "must be an object such as {\"filter\": \"sensors/#\", \"response_topic\": \"answers/{client}\"}";
const FILTER_RULE: &str = "must be a filter of topics such as \"sensors/+/motion\"";
const RESPONSE_RULE: &str = "must be a topic such as \"answers/{client}\", or null";

impl Place {
    /// A port for MQTT, or a broker.
    pub(super) fn mqtt(
        &self,
        object: &Map<String, Value>,
        more: &[&str],
    ) -> Result<PortTrigger, InvalidField> {
        let value = object.get("broker").filter(|value| !value.is_null());
        let Some(value) = value else {
            return Ok(PortTrigger::Mqtt {
                port: Some(self.port(object)?),
                broker: None,
                topics: self.topics(object.get("topics"), more)?,
            });
        };
        let broker = value.as_str().filter(|name| !name.is_empty());
        let broker = broker.ok_or_else(|| invalid(&self.name(".broker"), value, BROKER_RULE))?;
        if object.get("port").is_some_and(|port| !port.is_null()) {
            return Err(invalid(&self.name(".broker"), value, EITHER_RULE));
        }
        let topics = object.get("topics").unwrap_or(&Value::Null);
        let topics = self.topics(Some(topics), more)?;
        let shared = |topic: &MqttTopic| topic.filter.starts_with("$share/");
        if let Some(index) = topics.iter().position(shared) {
            let field = self.name(&format!(".topics[{index}].filter"));
            return Err(invalid(
                &field,
                &topics[index].filter.clone().into(),
                SHARED_RULE,
            ));
        }
        Ok(PortTrigger::Mqtt {
            port: None,
            broker: Some(broker.to_owned()),
            topics,
        })
    }

    /// The topics of a port for MQTT, which may have `more` fields.
    fn topics(&self, value: Option<&Value>, more: &[&str]) -> Result<Vec<MqttTopic>, InvalidField> {
        let items = match value {
            None => return Ok(all_topics()),
            Some(Value::Array(items)) if (1..=MAX_TOPICS).contains(&items.len()) => items,
            Some(other) => return Err(invalid(&self.name(".topics"), other, TOPICS_RULE)),
        };
        let one = |(item, index): (&Value, usize)| {
            let within = format!(".topics[{index}]");
            let Value::Object(object) = item else {
                return Err(invalid(&self.name(&within), item, TOPIC_RULE));
            };
            let known = [&["filter", "response_topic"][..], more].concat();
            self.only(object, &known, &within)?;
            let text = |name: &str, rule: &str| match object.get(name) {
                None | Some(Value::Null) => Ok(None),
                Some(Value::String(text)) => Ok(Some(text.clone())),
                Some(other) => Err(invalid(
                    &self.name(&format!("{within}.{name}")),
                    other,
                    rule,
                )),
            };
            let right = |name: &str, text: &str, wrong: Option<&'static str>| match wrong {
                None => Ok(()),
                Some(rule) => Err(invalid(
                    &self.name(&format!("{within}.{name}")),
                    &text.into(),
                    rule,
                )),
            };
            let filter = text("filter", FILTER_RULE)?.unwrap_or_default();
            right("filter", &filter, topics::wrong_filter(&filter))?;
            let response_topic = text("response_topic", RESPONSE_RULE)?;
            if let Some(topic) = &response_topic {
                right("response_topic", topic, topics::wrong_response_topic(topic))?;
            }
            Ok(MqttTopic {
                filter,
                response_topic,
                route: text("route", ROUTE_RULE)?,
            })
        };
        items.iter().zip(0..).map(one).collect()
    }
}
