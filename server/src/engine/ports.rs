//! Ports of functions, and what is counted there.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Engine, EngineError};
use crate::ingress::{Dropped, IngressSource, PortTraffic, PortWay};
use crate::model::{PortLimits, PortTrigger, Protocol};

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
}

/// A function's ports and their traffic.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct IngressView {
    /// The ports.
    pub triggers: Vec<PortTrigger>,
    /// How what comes to them reaches the server, in the same order.
    pub ports: Vec<PortView>,
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

impl Engine {
    /// A function's ports.
    ///
    /// # Errors
    /// [`EngineError::NotFound`].
    pub fn function_ingress(&self, name: &str) -> Result<IngressView, EngineError> {
        let function = self.function(name)?;
        let traffic = self.ingress().traffic(name);
        let (received, dropped, sent) = match traffic {
            Some((received, dropped, sent)) => (Some(received), Some(dropped), Some(sent)),
            None => (None, None, None),
        };
        let triggers = function.stored().active.spec.triggers.clone();
        let failed = self.inner.resources.ports.failed(name);
        let ports = triggers.iter().map(|trigger| {
            let port = trigger.port();
            let failed = failed.iter().find(|state| state.port == port);
            PortView {
                protocol: port.protocol,
                port: port.number,
                by: self.ingress().way(port),
                failed: failed.and_then(|state| state.failed.as_ref().map(ToString::to_string)),
            }
        });
        Ok(IngressView {
            ports: ports.collect(),
            limits: function.stored().active.spec.port_limits,
            limits_enforced: self.ingress().not_limiting().is_none(),
            sources: self.ingress().sources(Some(name)),
            triggers,
            received,
            dropped,
            sent,
        })
    }
}
