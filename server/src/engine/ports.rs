//! Ports of functions and chains, and what is counted there.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Engine, EngineError};
use crate::ingress::{Dropped, IngressSource, PortTraffic, PortWay};
use crate::model::{InvalidField, PortLimits, PortOwner, PortTrigger, Protocol};
use crate::ports::{Claim, Link, MessageCounts};

/// How what comes to a port reaches the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PortView {
    /// `tcp` or `udp`.
    pub protocol: Protocol,
    /// Its number.
    pub port: u16,
    /// The way.
    pub by: PortWay,
    /// Why it is not open, which is tried again; null if it is.
    pub failed: Option<String>,
    /// What came to it; only where the server understands the protocol: CoAP, MQTT.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub messages: Option<MessageCounts>,
}

/// How a subscription to a broker fares.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BrokerView {
    /// The broker's name.
    pub broker: String,
    /// Whether there is a connection.
    pub connected: bool,
    /// What is spoken there, `5` or `3.1.1`; null without a connection.
    pub version: Option<String>,
    /// Since when there is a connection, or none.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub since: Option<Timestamp>,
    /// What went wrong last; null if nothing has.
    pub last_error: Option<String>,
    /// When that was.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_error_at: Option<Timestamp>,
    /// Messages that came.
    pub messages: MessageCounts,
    /// Answers that were sent.
    pub answers: u64,
    /// Answers that could not be sent.
    pub answers_dropped: u64,
    /// Messages that run, or wait for their turn.
    pub in_flight: u64,
}

impl From<&Link> for BrokerView {
    fn from(link: &Link) -> Self {
        let state = link.state();
        let (last_error, last_error_at) = state.last_error.unzip();
        Self {
            broker: link.broker.clone(),
            connected: state.version.is_some(),
            version: state.version.map(str::to_owned),
            since: state.since,
            last_error,
            last_error_at,
            messages: link.counters.read(),
            answers: link.answers.load(Ordering::Relaxed),
            answers_dropped: link.dropped.load(Ordering::Relaxed),
            in_flight: link.in_flight.load(Ordering::Relaxed) as u64,
        }
    }
}

/// What comes to ports of one owner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PortsView {
    /// How what comes to each of its ports reaches the server, in the order of its triggers.
    pub ports: Vec<PortView>,
    /// How its subscriptions to brokers fare, in the order of its triggers.
    #[serde(default)]
    #[schema(required = false)]
    pub brokers: Vec<BrokerView>,
    /// How much may start work there.
    pub limits: PortLimits,
    /// Whether the limits are enforced here: packets are limited at interfaces of `HEARTH_XDP_INTERFACE` only.
    pub limits_enforced: bool,
    /// Sources that send most, at most 50; those first that are limited now.
    pub sources: Vec<IngressSource>,
    /// What came to them; null where nothing is counted.
    pub received: Option<PortTraffic>,
    /// What of it was dropped, by reason; null where nothing is counted.
    pub dropped: Option<Dropped>,
    /// What left from them; null where nothing is counted.
    pub sent: Option<PortTraffic>,
}

/// A function's ports and their traffic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct IngressView {
    /// The ports.
    pub triggers: Vec<PortTrigger>,
    /// What comes to them.
    #[serde(flatten)]
    pub seen: PortsView,
}

impl Engine {
    /// A function's ports.
    ///
    /// # Errors
    /// [`EngineError::NotFound`].
    pub fn function_ingress(&self, name: &str) -> Result<IngressView, EngineError> {
        let function = self.function(name)?;
        let spec = &function.stored().active.spec;
        let owner = PortOwner::function(name);
        Ok(IngressView {
            triggers: spec.triggers.clone(),
            seen: self.ports_of(&owner, &spec.triggers, spec.port_limits),
        })
    }

    /// What comes to the ports of a function or chain, which are these.
    pub fn ports_of(
        &self,
        owner: &PortOwner,
        triggers: &[PortTrigger],
        limits: PortLimits,
    ) -> PortsView {
        let ingress = self.ingress();
        let (received, dropped, sent) = match ingress.traffic(owner) {
            Some((received, dropped, sent)) => (Some(received), Some(dropped), Some(sent)),
            None => (None, None, None),
        };
        let failed = self.inner.resources.ports.failed(owner);
        let brokers = triggers.iter().filter_map(PortTrigger::broker);
        let links = brokers.filter_map(|broker| self.link_of(owner, broker));
        let ports = triggers.iter().filter_map(|trigger| {
            let port = trigger.port()?;
            let failed = failed.iter().find(|state| state.port == port);
            let counters = match trigger {
                PortTrigger::Coap { .. } | PortTrigger::Mqtt { .. } => self.port_counters(port),
                PortTrigger::Tcp { .. } | PortTrigger::Udp { .. } => None,
            };
            Some(PortView {
                protocol: port.protocol,
                port: port.number,
                by: ingress.way(port),
                failed: failed.and_then(|state| state.failed.as_ref().map(ToString::to_string)),
                messages: counters.map(|counters| counters.read()),
            })
        });
        PortsView {
            ports: ports.collect(),
            brokers: links.map(|link| BrokerView::from(&*link)).collect(),
            limits,
            limits_enforced: ingress.not_limiting().is_none(),
            sources: ingress.sources(Some(owner)),
            received,
            dropped,
            sent,
        }
    }

    /// What somebody subscribes to at a broker. Cheap.
    pub fn link_of(&self, owner: &PortOwner, broker: &str) -> Option<Arc<Link>> {
        self.inner.resources.ports.link_of(owner, broker)
    }

    /// Refuses limits that nothing would enforce.
    ///
    /// # Errors
    /// Of the field `port_limits`.
    pub fn check_port_limits(&self, limits: PortLimits) -> Result<(), InvalidField> {
        match self.ingress().not_limiting() {
            Some(reason) if !limits.is_none() => Err(InvalidField {
                field: "port_limits".into(),
                value: format!("\"{limits}\""),
                rule: format!("must be null on this node: {reason}"),
            }),
            _ => Ok(()),
        }
    }

    /// Claims the ports of a version that is about to serve.
    ///
    /// # Errors
    /// Of the port in `triggers` that it cannot have.
    pub async fn claim_ports_of(
        &self,
        owner: &PortOwner,
        triggers: &[PortTrigger],
        limits: PortLimits,
    ) -> Result<Claim, InvalidField> {
        let claimed = self.inner.resources.ports.claim(owner, triggers, limits);
        claimed.await.map_err(|(index, error)| {
            let trigger = &triggers[index];
            let (name, value) = match (trigger.port(), trigger.broker()) {
                (Some(port), _) => ("port", port.number.to_string()),
                (None, broker) => ("broker", format!("{:?}", broker.unwrap_or_default())),
            };
            InvalidField {
                field: format!("triggers[{index}].{name}"),
                value,
                rule: error.to_string(),
            }
        })
    }

    /// Opens the ports that somebody had before the server was started.
    pub async fn restore_ports(
        &self,
        owner: &PortOwner,
        triggers: &[PortTrigger],
        limits: PortLimits,
    ) {
        let table = &self.inner.resources.ports;
        table.restore(owner, triggers, limits).await;
    }

    /// Takes all ports from their owner.
    pub fn release_ports(&self, owner: &PortOwner) {
        self.inner.resources.ports.release(owner);
    }
}
