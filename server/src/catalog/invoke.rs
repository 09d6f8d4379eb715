//! Requests to chains: admitted, passed to the live chain, written to the history.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::recording::Recording;
use super::state::State;
use super::{Catalog, Chain};
use crate::chains::{Hop, InvokeError, Live, Outcome, Request};
use crate::model::chain::{Spec, TraceHop};
use crate::model::{InvocationId, Trigger};
use crate::store::StoredChain;

/// A chain that is about to be asked, as it was when it was found: the request passes through the version in service then,
/// whatever takes over before it is sent.
pub struct Target {
    pub(super) catalog: Catalog,
    chain: Arc<Chain>,
    pub(super) stored: Arc<StoredChain>,
    state: Arc<State>,
    /// What was in service; none while it is being started.
    live: Option<Arc<Live>>,
}

/// What the answer's headers say.
#[derive(Debug)]
pub struct ChainReceipt {
    /// The chain's invocation.
    pub id: InvocationId,
    /// The version that it passed through; none if it reached none.
    pub version: Option<u32>,
    /// The members that it reached.
    pub hops: Vec<TraceHop>,
    /// From admission to answer, in µs.
    pub total_us: u64,
}

/// One request.
#[derive(Debug)]
pub struct ChainRequest<'a> {
    /// The route.
    pub route: &'a str,
    /// What caused it.
    pub trigger: Trigger,
    /// The first member's event, as JSON text.
    pub event: Bytes,
    /// The request's W3C `traceparent`, already checked.
    pub traceparent: Option<&'a str>,
    /// How long ago it came to this host; that is part of the time that it may take.
    pub age: Duration,
}

impl Catalog {
    /// A chain to be asked. Cheap.
    #[must_use]
    pub fn target(&self, name: &str) -> Option<Target> {
        let chain = self.inner.chains.read().get(name).cloned()?;
        // Before what is in service: the figures of a version that takes over meanwhile are not this one's.
        let state = chain.state();
        let live = self.inner.live.of(name);
        Some(Target {
            catalog: self.clone(),
            stored: chain.stored(),
            state,
            live,
            chain,
        })
    }
}

impl Target {
    /// Its settings.
    #[must_use]
    pub fn spec(&self) -> &Spec {
        match &self.live {
            Some(live) => &live.version().spec,
            None => &self.stored.active.spec,
        }
    }

    /// The number of its version.
    pub(super) fn version(&self) -> u32 {
        match &self.live {
            Some(live) => live.version().version,
            None => self.stored.active.version,
        }
    }

    /// Passes a request through the chain. A client that goes away drops the future, which ends the request.
    pub async fn invoke(
        &self,
        request: ChainRequest<'_>,
    ) -> (ChainReceipt, Result<Bytes, InvokeError>) {
        let spec = self.spec();
        let mut recording = match Recording::begin(self, &request) {
            Ok(recording) => recording,
            Err(error) => {
                let receipt = ChainReceipt {
                    id: InvocationId::new(),
                    version: None,
                    hops: Vec::new(),
                    total_us: 0,
                };
                return (receipt, Err(error));
            }
        };
        let received = recording.received;
        let deadline = received + Duration::from_millis(spec.timeout_ms.into());
        let outcome = match self.live(deadline).await {
            Err(reason) => Outcome {
                result: Err(InvokeError::Unavailable(reason)),
                hops: Vec::new(),
                version: None,
            },
            Ok((live, state)) => {
                let request = Request {
                    id: recording.record.id,
                    payload: request.event,
                    traceparent: request.traceparent.map(str::to_owned),
                    received,
                    deadline,
                };
                let outcome = live
                    .invoke(recording.route(), request, &recording.admitted)
                    .await;
                if let State::Ready { latency, .. } = &*state {
                    latency.record(&outcome.hops);
                }
                outcome
            }
        };
        let Outcome {
            result,
            hops,
            version,
        } = outcome;
        let hops = traced(spec, &hops);
        let total_us = recording.end(&result, version, hops.clone()).await;
        let receipt = ChainReceipt {
            id: recording.record.id,
            version,
            hops,
            total_us,
        };
        (receipt, result)
    }

    /// What takes the request, with its figures; the reason if there is none in time.
    async fn live(&self, deadline: Instant) -> Result<(Arc<Live>, Arc<State>), String> {
        if let Some(live) = &self.live {
            return Ok((live.clone(), self.state.clone()));
        }
        let state = self
            .catalog
            .in_service(&self.chain, deadline.into())
            .await?;
        let live = self.catalog.inner.live.of(&self.spec().name);
        let live = live.ok_or_else(|| "it has no live version".to_owned())?;
        Ok((live, state))
    }
}

/// The hops with their members' names.
fn traced(spec: &Spec, hops: &[Hop]) -> Vec<TraceHop> {
    let traced = |hop: &Hop| TraceHop {
        member: spec.member_name(hop.member).unwrap_or_default().to_owned(),
        instance: hop.instance,
        is_call: hop.is_call,
        entered_us: hop.entered_ns / 1000,
        left_us: hop.left_ns.map(|left| left / 1000),
    };
    hops.iter().map(traced).collect()
}
