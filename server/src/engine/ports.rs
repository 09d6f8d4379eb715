//! Ports of functions, and what is counted there.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Engine, EngineError};
use crate::ingress::{Dropped, PortTraffic};
use crate::model::PortTrigger;

/// A function's ports and their traffic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct IngressView {
    /// The ports.
    pub triggers: Vec<PortTrigger>,
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
        Ok(IngressView {
            triggers: function.stored().active.spec.triggers.clone(),
            received,
            dropped,
            sent,
        })
    }
}
