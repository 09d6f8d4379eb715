//! Chains as the API shows them.

use std::sync::Arc;
use std::time::Instant;

use super::latency::HopLatency;
use super::rates::EdgeRates;
use super::state::State;
use super::{Catalog, Chain};
use crate::chains::Status;
use crate::model::chain::{self, EdgeLive, GATEWAY, Live, MemberLive, PoolLive, Spec, View};

impl Catalog {
    pub(super) fn view(&self, chain: &Chain) -> View {
        let stored = chain.stored();
        let spec = &stored.active.spec;
        let (state, state_reason, live) = match &*chain.state() {
            State::Starting => (chain::State::Starting, None, None),
            State::Failed { reason, .. } => (chain::State::Failed, Some(reason.clone()), None),
            State::Ready {
                reason,
                latency,
                rates,
                ..
            } => {
                let status = self.inner.live.status(&spec.name);
                let live = status.map(|status| live(spec, &status, latency, rates));
                (chain::State::Ready, reason.clone(), live)
            }
        };
        View {
            id: stored.id,
            name: spec.name.clone(),
            active_version: stored.active.version,
            state,
            state_reason,
            settings: spec.clone().into(),
            live,
            url: format!("/chain/{}", spec.name),
            created_at: stored.created_at,
            updated_at: stored.updated_at,
        }
    }
}

fn live(spec: &Spec, status: &Status, latency: &Arc<HopLatency>, rates: &Arc<EdgeRates>) -> Live {
    let per_second = rates.of(&status.edges, Instant::now());
    let name = |number: u8| match number {
        0 => GATEWAY.to_owned(),
        number => spec.member_name(number).unwrap_or_default().to_owned(),
    };
    let members = status.members.iter().map(|member| {
        let figures = MemberLive {
            function_version: member.function_version,
            instances: member.instances,
            restarts: member.restarts,
            latency_us: latency.of(member.member),
        };
        (name(member.member), figures)
    });
    let edges = status.edges.iter().zip(per_second);
    let edges = edges.map(|(edge, per_second)| EdgeLive {
        from: name(edge.from),
        to: name(edge.to),
        sent: edge.sent,
        per_second,
        refused: edge.refused,
    });
    Live {
        transport: status.transport.to_owned(),
        requests: status.requests,
        pool: PoolLive {
            blocks: status.pool.blocks,
            in_use: status.pool.in_use,
            block_bytes: status.pool.block_bytes,
            huge_pages: status.pool.huge_pages,
        },
        members: members.collect(),
        edges: edges.collect(),
    }
}
