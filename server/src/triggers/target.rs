//! Who gets what comes to a port: a function, or a route of a chain.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::Triggers;
use crate::catalog::{self, ChainRequest};
use crate::chains;
use crate::engine::{self, Invocation, InvokeReply};
use crate::http::problem::Problem;
use crate::model::{Port, PortOrBroker, PortOwner, PortTrigger, Trigger};

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
    /// Who has this port now, or what this owner subscribes to at this broker.
    pub(super) fn target_at(&self, at: &PortOrBroker, owner: &PortOwner) -> Option<Target> {
        match at {
            PortOrBroker::Port(port) => self.target(*port),
            PortOrBroker::Broker(broker) => self.subscriber(owner, broker),
        }
    }

    /// What somebody subscribes to at a broker now.
    fn subscriber(&self, owner: &PortOwner, broker: &str) -> Option<Target> {
        match owner {
            PortOwner::Function(name) => {
                let link = self.engine.link_of(owner, broker)?;
                let topics = link.topics().borrow().clone();
                Some(Target {
                    trigger: PortTrigger::Mqtt {
                        port: None,
                        broker: Some(broker.to_owned()),
                        topics,
                    },
                    runs: Runs::Function(name.clone()),
                })
            }
            PortOwner::Chain(name) => {
                let chain = self.app.catalog.target(name)?;
                let trigger = chain.spec().trigger_for(broker)?.plain();
                // Each topic names its own.
                let route = String::new();
                let runs = Runs::Route { chain, route };
                Some(Target { trigger, runs })
            }
        }
    }

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
                // HTTP and CoAP have none, if their requests name their routes.
                let route = spec.route_of(trigger).unwrap_or_default().to_owned();
                Some(Target {
                    trigger: trigger.plain(),
                    runs: Runs::Route { chain, route },
                })
            }
        }
    }
}

impl From<Failed> for Problem {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Function(error) => error.into(),
            Failed::Chain(error) => error.into(),
            Failed::NotJson => Self::internal(failed),
        }
    }
}

impl Target {
    /// Whose port it is.
    pub(super) fn owner(&self) -> PortOwner {
        match &self.runs {
            Runs::Function(name) => PortOwner::Function(name.clone()),
            Runs::Route { chain, .. } => PortOwner::chain(chain.spec().name.as_str()),
        }
    }

    /// Takes this route of a chain, or its only one.
    pub(super) fn go_along(&mut self, named: Option<&str>) {
        if let Runs::Route { chain, route } = &mut self.runs {
            let only = chain.spec().routes.keys().next().map(String::as_str);
            named.or(only).unwrap_or_default().clone_into(route);
        }
    }

    /// What paths begin with at this port: names of routes, or nothing if all are of one.
    pub(super) fn paths(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        match &self.runs {
            Runs::Route { chain, route } if route.is_empty() => {
                Box::new(chain.spec().routes.keys().map(String::as_str))
            }
            _ => Box::new(std::iter::once("")),
        }
    }

    /// The path as the first member sees it. Where a path says which route it is for, this one's is taken from here on; none if
    /// there is no such route.
    pub(super) fn take_route<'a>(&mut self, path: &'a str) -> Option<&'a str> {
        match &mut self.runs {
            Runs::Route { chain, route } if route.is_empty() => {
                let (name, rest) = first_segment(path);
                if !chain.spec().routes.contains_key(name) {
                    return None;
                }
                name.clone_into(route);
                Some(rest)
            }
            _ => Some(path),
        }
    }

    /// How many bytes an event may have; none where there is no limit worth heeding.
    pub(super) fn room(&self) -> Option<usize> {
        match &self.runs {
            Runs::Function(_) => None,
            Runs::Route { chain, .. } => Some(chain.spec().pool.payload_bytes() as usize),
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

/// `/{route}/rest` as the route and what is left: `/` at least.
fn first_segment(path: &str) -> (&str, &str) {
    let path = path.strip_prefix('/').unwrap_or(path);
    match path.find('/') {
        Some(at) => path.split_at(at),
        None => (path, "/"),
    }
}

#[cfg(test)]
mod tests {
    use super::first_segment;

    #[test]
    fn paths_begin_with_a_route() {
        assert_eq!(first_segment("/a/b//c"), ("a", "/b//c"));
        assert_eq!(first_segment("/a"), ("a", "/"));
        assert_eq!(first_segment("/"), ("", "/"));
    }
}
