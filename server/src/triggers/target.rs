//! Who gets what comes to a port: a function, or a route of a chain.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::Triggers;
use crate::catalog::{self, ChainRequest};
use crate::chains;
use crate::engine::{self, Invocation, InvokeReply};
use crate::model::{Port, PortOwner, PortTrigger, Trigger};

/// Who has a port, and what is to happen there, as it was when something came. A chain's version stays the one that was in
/// service then.
pub(super) struct Target {
    pub(super) trigger: PortTrigger,
    runs: Runs,
}

enum Runs {
    Function(Arc<str>),
    Route {
        chain: catalog::Target,
        route: String,
    },
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failed {
    #[error(transparent)]
    Function(#[from] engine::InvokeError),
    #[error(transparent)]
    Chain(#[from] chains::InvokeError),
    #[error("the function answered as to HTTP")]
    NotJson,
}

impl Triggers {
    /// Who has a port now.
    pub(super) fn target(&self, port: Port) -> Option<Target> {
        match self.engine.port_owner(port)? {
            (PortOwner::Function(name), trigger) => Some(Target {
                trigger,
                runs: Runs::Function(name),
            }),
            (PortOwner::Chain(name), _) => {
                let chain = self.app.catalog.target(&name)?;
                let spec = chain.spec();
                let trigger = spec.trigger_at(port)?;
                // HTTP has none, if its requests name their routes.
                let route = spec.route_of(trigger).unwrap_or_default().to_owned();
                Some(Target {
                    trigger: trigger.plain(),
                    runs: Runs::Route { chain, route },
                })
            }
        }
    }
}

impl Target {
    /// How many bytes an event may have; none where there is no limit worth heeding.
    pub(super) fn room(&self) -> Option<usize> {
        match &self.runs {
            Runs::Function(_) => None,
            Runs::Route { chain, .. } => Some(chain.spec().pool.block_bytes() as usize),
        }
    }

    /// The answer to an event that came this long ago.
    pub(super) async fn invoke(
        &self,
        triggers: &Triggers,
        trigger: Trigger,
        event: Bytes,
        age: Duration,
    ) -> Result<Bytes, Failed> {
        match &self.runs {
            Runs::Function(name) => {
                let invocation = Invocation::new(name, trigger, event).asked_before(age);
                let (_, outcome) = triggers.engine.invoke(invocation).await;
                match outcome? {
                    InvokeReply::Json(json) => Ok(json),
                    InvokeReply::Http { .. } => Err(Failed::NotJson),
                }
            }
            Runs::Route { chain, route } => {
                let request = ChainRequest {
                    route,
                    trigger,
                    event,
                    traceparent: None,
                    age,
                };
                let (_, result) = chain.invoke(request).await;
                Ok(result?)
            }
        }
    }
}
