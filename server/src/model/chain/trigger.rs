//! Ports of a chain's own.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Spec;
use crate::model::{Batch, MqttTopic, Port, PortTrigger, StreamMode, all_topics};

/// A port that sends requests through a chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ChainTrigger)]
#[serde(tag = "protocol", rename_all = "lowercase", deny_unknown_fields)]
pub enum Trigger {
    /// TCP connections.
    Tcp {
        /// Its number; not used by a function, another chain or another program.
        #[schema(minimum = 1, maximum = 65535)]
        port: u16,
        /// What is spoken on it.
        #[serde(default)]
        #[schema(required = false)]
        mode: StreamMode,
        /// The route of what comes to it. Null is the chain's only route; with several, HTTP finds it in the first segment of
        /// the path, and `raw` needs one.
        #[serde(default)]
        #[schema(required = false)]
        route: Option<String>,
    },
    /// UDP datagrams.
    Udp {
        /// Its number; not used by a function, another chain or another program.
        #[schema(minimum = 1, maximum = 65535)]
        port: u16,
        /// How many datagrams are one event.
        #[serde(default)]
        #[schema(required = false)]
        batch: Batch,
        /// The route of what comes to it. Null is the chain's only route.
        #[serde(default)]
        #[schema(required = false)]
        route: Option<String>,
    },
    /// CoAP (RFC 7252) over UDP.
    Coap {
        /// Its number; not used by a function, another chain or another program. CoAP's own is 5683.
        #[schema(minimum = 1, maximum = 65535)]
        port: u16,
        /// The route of what comes to it. Null is the chain's only route, or the first segment of the path.
        #[serde(default)]
        #[schema(required = false)]
        route: Option<String>,
    },
    /// MQTT 3.1.1 and 5.
    Mqtt {
        /// A TCP port at which it is a server: a number not used by a function, another chain or another program. MQTT's own is 1883.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(required = false, minimum = 1, maximum = 65535)]
        port: Option<u16>,
        /// In place of a port: a broker of `HEARTH_MQTT_BROKERS`, by its name, to which it subscribes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(required = false, min_length = 1, max_length = 63)]
        broker: Option<String>,
        /// Which messages there are, and their routes: that of the first filter that fits. Must be given with a broker.
        #[serde(default = "all_topics")]
        #[schema(required = false, min_items = 1, max_items = 64)]
        topics: Vec<MqttTopic>,
    },
}

impl Trigger {
    /// A port with its route. One for MQTT has none: its topics have theirs.
    #[must_use]
    pub fn new(trigger: PortTrigger, route: Option<String>) -> Self {
        match trigger {
            PortTrigger::Tcp { port, mode } => Self::Tcp { port, mode, route },
            PortTrigger::Udp { port, batch } => Self::Udp { port, batch, route },
            PortTrigger::Coap { port } => Self::Coap { port, route },
            PortTrigger::Mqtt {
                port,
                broker,
                topics,
            } => Self::Mqtt {
                port,
                broker,
                topics,
            },
        }
    }

    /// Without its route: what a function's port would be.
    #[must_use]
    pub fn plain(&self) -> PortTrigger {
        match *self {
            Self::Mqtt {
                port,
                ref broker,
                ref topics,
            } => PortTrigger::Mqtt {
                port,
                broker: broker.clone(),
                topics: topics.clone(),
            },
            Self::Tcp { port, mode, .. } => PortTrigger::Tcp { port, mode },
            Self::Udp { port, batch, .. } => PortTrigger::Udp { port, batch },
            Self::Coap { port, .. } => PortTrigger::Coap { port },
        }
    }

    /// Its port; none if it is for a broker.
    #[must_use]
    pub fn port(&self) -> Option<Port> {
        self.plain().port()
    }

    /// The broker that it is for.
    #[must_use]
    pub fn broker(&self) -> Option<&str> {
        match self {
            Self::Mqtt { broker, .. } => broker.as_deref(),
            _ => None,
        }
    }

    /// The route that it names.
    #[must_use]
    pub fn route(&self) -> Option<&str> {
        match self {
            Self::Tcp { route, .. } | Self::Udp { route, .. } | Self::Coap { route, .. } => {
                route.as_deref()
            }
            Self::Mqtt { .. } => None,
        }
    }

    /// What it names routes for beside itself.
    #[must_use]
    pub fn topics(&self) -> &[MqttTopic] {
        match self {
            Self::Mqtt { topics, .. } => topics,
            _ => &[],
        }
    }

    /// Whether what comes can say itself which route it is for.
    #[must_use]
    pub fn has_paths(&self) -> bool {
        matches!(
            self,
            Self::Coap { .. }
                | Self::Tcp {
                    mode: StreamMode::Http,
                    ..
                }
        )
    }
}

/// In one line, as the console's form has it: that of [`PortTrigger`] with `route checkout` at the end.
impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.plain().fmt(f)?;
        match self.route() {
            Some(route) => write!(f, " route {route}"),
            None => Ok(()),
        }
    }
}

impl Spec {
    /// Its ports without their routes, in the same order.
    #[must_use]
    pub fn ports(&self) -> Vec<PortTrigger> {
        self.triggers.iter().map(Trigger::plain).collect()
    }

    /// What is to happen at one of its ports.
    #[must_use]
    pub fn trigger_at(&self, port: Port) -> Option<&Trigger> {
        let mut all = self.triggers.iter();
        all.find(|trigger| trigger.port() == Some(port))
    }

    /// What is to happen with what a broker has for it.
    #[must_use]
    pub fn trigger_for(&self, broker: &str) -> Option<&Trigger> {
        let mut all = self.triggers.iter();
        all.find(|trigger| trigger.broker() == Some(broker))
    }

    /// The route of all that comes to a port; none if each request says it by its path.
    #[must_use]
    pub fn route_of<'a>(&'a self, trigger: &'a Trigger) -> Option<&'a str> {
        let only = match self.routes.len() {
            1 => self.routes.keys().next().map(String::as_str),
            _ => None,
        };
        trigger.route().or(only)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::check::tests::boutique;
    use super::*;

    fn trigger(value: Value) -> Trigger {
        serde_json::from_value(value).expect("a port")
    }

    #[test]
    fn a_port_is_one_line_and_has_all_its_fields() {
        for (value, line) in [
            (json!({"protocol": "tcp", "port": 9000}), "tcp 9000"),
            (
                json!({"protocol": "tcp", "port": 1, "mode": "raw", "route": "visit"}),
                "tcp 1 raw route visit",
            ),
            (
                json!({"protocol": "udp", "port": 2, "batch": {"max": 4}, "route": "visit"}),
                "udp 2 batch 4 wait 0 route visit",
            ),
            (json!({"protocol": "coap", "port": 3}), "coap 3"),
            (json!({"protocol": "mqtt", "port": 4}), "mqtt 4"),
            (
                json!({"protocol": "mqtt", "port": 4, "topics": [{"filter": "a/#", "route": "visit", "response_topic": "b"}, {"filter": "#"}]}),
                "mqtt 4 topic a/# response b route visit topic #",
            ),
            (
                json!({"protocol": "mqtt", "broker": "plant", "topics": [{"filter": "a/#", "route": "visit"}]}),
                "mqtt broker plant topic a/# route visit",
            ),
        ] {
            let trigger = trigger(value);
            assert_eq!(trigger.to_string(), line);
            let again = Trigger::new(trigger.plain(), trigger.route().map(str::to_owned));
            assert_eq!(again, trigger);
            let shown = serde_json::to_value(&trigger).expect("JSON");
            let has_topics = shown.get("topics").is_some();
            assert!(has_topics || shown.get("route").is_some(), "{shown}");
        }
    }

    #[test]
    fn the_only_route_is_that_of_all_ports() {
        let mut spec = boutique();
        let (named, open) = (
            trigger(json!({"protocol": "udp", "port": 1, "route": "visit"})),
            trigger(json!({"protocol": "tcp", "port": 1})),
        );
        spec.triggers = vec![named.clone(), open.clone()];
        assert_eq!(spec.route_of(&named), Some("visit"));
        assert_eq!(spec.route_of(&open), None);
        assert_eq!(spec.trigger_at(open.port().expect("a port")), Some(&open));
        spec.routes.remove("checkout");
        assert_eq!(spec.route_of(&open), Some("visit"));
        assert_eq!(spec.ports(), [named.plain(), open.plain()]);
    }
}
