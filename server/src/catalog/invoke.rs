//! Requests to chains: admitted, passed to the live chain, written to the history.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::recording::Recording;
use super::state::State;
use super::{Catalog, Chain};
use crate::chains::{Hop, InvokeError, Outcome, Request};
use crate::model::chain::{Spec, TraceHop};
use crate::model::{InvocationId, Trigger};
use crate::store::StoredChain;

/// A chain that is about to be asked, as it was when it was found.
pub struct Target {
    pub(super) catalog: Catalog,
    chain: Arc<Chain>,
    pub(super) stored: Arc<StoredChain>,
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
}

impl Catalog {
    /// A chain to be asked. Cheap.
    #[must_use]
    pub fn target(&self, name: &str) -> Option<Target> {
        let chain = self.inner.chains.read().get(name).cloned()?;
        Some(Target {
            catalog: self.clone(),
            stored: chain.stored(),
            chain,
        })
    }
}

impl Target {
    /// Its settings.
    #[must_use]
    pub fn spec(&self) -> &Spec {
        &self.stored.active.spec
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
        let state = self.catalog.in_service(&self.chain, deadline.into()).await;
        let outcome = match &state {
            Err(reason) => Outcome {
                result: Err(InvokeError::Unavailable(reason.clone())),
                hops: Vec::new(),
                version: None,
            },
            Ok(_) => {
                let request = Request {
                    id: recording.record.id,
                    payload: request.event,
                    traceparent: request.traceparent.map(str::to_owned),
                    received,
                    deadline,
                };
                let live = &self.catalog.inner.live;
                live.invoke(&spec.name, recording.route(), request, &recording.admitted)
                    .await
            }
        };
        if let Ok(state) = &state
            && let State::Ready { latency, .. } = &**state
        {
            latency.record(&outcome.hops);
        }
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
