//! Ports of a function's or a chain's own, over TCP and UDP.

use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Most ports of one function or chain.
pub const MAX_PORTS: usize = 64;
/// Most topic filters of one port.
pub const MAX_TOPICS: usize = 64;
/// Most datagrams of one invocation.
pub const MAX_BATCH: u32 = 256;
/// Longest wait for the datagrams of one invocation, in ms.
pub const MAX_BATCH_WAIT_MS: u32 = 1000;

/// A port that invokes a function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "protocol", rename_all = "lowercase", deny_unknown_fields)]
pub enum PortTrigger {
    /// TCP connections.
    Tcp {
        /// Its number; not used by another function, a chain or another program.
        #[schema(minimum = 1, maximum = 65535)]
        port: u16,
        /// What is spoken on it.
        #[serde(default)]
        #[schema(required = false)]
        mode: StreamMode,
    },
    /// UDP datagrams.
    Udp {
        /// Its number; not used by another function, a chain or another program.
        #[schema(minimum = 1, maximum = 65535)]
        port: u16,
        /// How many datagrams are one invocation.
        #[serde(default)]
        #[schema(required = false)]
        batch: Batch,
    },
    /// CoAP (RFC 7252) over UDP: each request is an event, with its method and path.
    Coap {
        /// Its number; not used by another function, a chain or another program. CoAP's own is 5683.
        #[schema(minimum = 1, maximum = 65535)]
        port: u16,
    },
    /// MQTT 3.1.1 and 5: each message that a client publishes, or a broker has, is an event.
    Mqtt {
        /// A TCP port at which it is a server: a number not used by another function, a chain or another program. MQTT's own is 1883.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(required = false, minimum = 1, maximum = 65535)]
        port: Option<u16>,
        /// In place of a port: a broker of `HEARTH_MQTT_BROKERS`, by its name, to which it subscribes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schema(required = false, min_length = 1, max_length = 63)]
        broker: Option<String>,
        /// Which messages there are: that of the first filter that fits. Must be given with a broker.
        #[serde(default = "all_topics")]
        #[schema(required = false, min_items = 1, max_items = 64)]
        topics: Vec<MqttTopic>,
    },
}

/// Messages on some topics.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MqttTopic {
    /// Their topics, as in a subscription: `sensors/+/motion`, `sensors/#`.
    #[schema(min_length = 1, max_length = 256)]
    pub filter: String,
    /// The topic of the results of messages that name none. `{topic}` and `{client}` stand for those of the message.
    #[serde(default)]
    #[schema(required = false, min_length = 1, max_length = 256)]
    pub response_topic: Option<String>,
    /// Of chains: their route. Null is the only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub route: Option<String>,
}

/// Those of a trigger that names none.
pub fn all_topics() -> Vec<MqttTopic> {
    vec![MqttTopic {
        filter: "#".to_owned(),
        response_topic: None,
        route: None,
    }]
}

/// As in `topic sensors/# response answers/{client} route motion`.
impl fmt::Display for MqttTopic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "topic {}", self.filter)?;
        if let Some(response) = &self.response_topic {
            write!(f, " response {response}")?;
        }
        match &self.route {
            Some(route) => write!(f, " route {route}"),
            None => Ok(()),
        }
    }
}

/// What is spoken on a TCP port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum StreamMode {
    /// HTTP, as on `/fn/{name}`, with every path the function's.
    #[default]
    Http,
    /// Any protocol: each piece of the byte stream is an event.
    Raw,
}

/// How many datagrams are one invocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Batch {
    /// Most datagrams of one invocation. With more than one, the event is a list.
    #[serde(default = "one")]
    #[schema(required = false, minimum = 1, maximum = 256, default = 1)]
    pub max: u32,
    /// How long the first datagram waits for others, in ms.
    #[serde(default)]
    #[schema(required = false, minimum = 0, maximum = 1000, default = 0)]
    pub wait_ms: u32,
}

fn one() -> u32 {
    1
}

impl Default for Batch {
    fn default() -> Self {
        Self {
            max: one(),
            wait_ms: 0,
        }
    }
}

/// Where a trigger's events come from. One owner has a port; several may subscribe to a broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PortOrBroker {
    /// A port of its own.
    Port(Port),
    /// A broker of the node's.
    Broker(String),
}

/// Whose number a port is: TCP and UDP have their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port {
    /// The protocol.
    pub protocol: super::Protocol,
    /// The number.
    pub number: u16,
}

impl PortTrigger {
    /// Its port; none if it is for a broker.
    pub fn port(&self) -> Option<Port> {
        let (protocol, number) = match *self {
            Self::Tcp { port, .. } => (super::Protocol::Tcp, port),
            Self::Mqtt { port, .. } => (super::Protocol::Tcp, port?),
            Self::Udp { port, .. } | Self::Coap { port } => (super::Protocol::Udp, port),
        };
        Some(Port { protocol, number })
    }

    /// The broker that it is for.
    pub fn broker(&self) -> Option<&str> {
        match self {
            Self::Mqtt { broker, .. } => broker.as_deref(),
            _ => None,
        }
    }

    /// Which messages it takes, if it is for MQTT.
    pub fn topics(&self) -> &[MqttTopic] {
        match self {
            Self::Mqtt { topics, .. } => topics,
            _ => &[],
        }
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { protocol, number } = self;
        write!(f, "{} port {number}", protocol.as_str())
    }
}

/// In one line, as the console's form has it: `tcp 9000`, `tcp 9001 raw`, `udp 9002 batch 64 wait 2`, `coap 5683`,
/// `mqtt 1883 topic sensors/#`, `mqtt broker plant topic sensors/#`.
impl fmt::Display for PortTrigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { port, mode } => match mode {
                StreamMode::Http => write!(f, "tcp {port}"),
                StreamMode::Raw => write!(f, "tcp {port} raw"),
            },
            Self::Udp { port, batch } if *batch == Batch::default() => write!(f, "udp {port}"),
            Self::Udp { port, batch } => {
                write!(f, "udp {port} batch {} wait {}", batch.max, batch.wait_ms)
            }
            Self::Coap { port } => write!(f, "coap {port}"),
            Self::Mqtt {
                port,
                broker,
                topics,
            } => {
                f.write_str("mqtt")?;
                if let Some(port) = port {
                    write!(f, " {port}")?;
                }
                if let Some(broker) = broker {
                    write!(f, " broker {broker}")?;
                }
                if broker.is_some() || *topics != all_topics() {
                    for topic in topics {
                        write!(f, " {topic}")?;
                    }
                }
                Ok(())
            }
        }
    }
}
