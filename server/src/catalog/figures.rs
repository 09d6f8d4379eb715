//! Chains as the API shows them.

use std::sync::Arc;
use std::time::Instant;

use hearth_host::CPU_PERIOD_US;

use super::latency::HopLatency;
use super::rates::{Counted, EdgeRates};
use super::state::State;
use super::{Catalog, Chain};
use crate::chains::{Status, Work};
use crate::model::chain::{
    self, EdgeLive, GATEWAY, InstanceLive, KernelLive, Live, MemberLive, PoolLive, RefusalLive,
    Spec, View,
};

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
    let rates = rates.of(&counts(status), Instant::now());
    let per_second = |key: Counted| rates.get(&key).copied().unwrap_or(0);
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
            cpu_us: u64::try_from(member.cpu.used.as_micros()).unwrap_or(u64::MAX),
            cpu_limit_milli: limit_milli(member.cpu.quota_us),
            kernel: member
                .work
                .map(|work| kernel(work, per_second(Counted::Member(member.member)))),
        };
        (name(member.member), figures)
    });
    let edges = status.edges.iter().map(|edge| EdgeLive {
        from: name(edge.from),
        to: name(edge.to),
        sent: edge.sent,
        per_second: per_second(Counted::Edge(edge.from, edge.to)),
        refused: edge.refused,
    });
    let instances = status.instances.iter().map(|one| InstanceLive {
        member: name(one.member),
        instance: one.instance,
        kernel: kernel(one.work, per_second(Counted::Instance(one.instance))),
    });
    let refusals = status.refusals.iter().map(|one| RefusalLive {
        from: name(one.from),
        instance: one.instance,
        to: one.to.map(name),
        to_instance: one.to_instance,
        reason: one.reason.to_owned(),
        count: one.count,
        last_at: one.last,
    });
    Live {
        transport: status.transport.to_owned(),
        requests: status.requests,
        pool: PoolLive {
            blocks: status.pool.blocks,
            in_use: status.pool.in_use,
            block_bytes: status.pool.block_bytes,
            payload_bytes: status.pool.payload_bytes,
            huge_pages: status.pool.huge_pages,
        },
        members: members.collect(),
        edges: edges.collect(),
        instances: instances.collect(),
        refusals: refusals.collect(),
    }
}

/// A limit as thousandths of a processor, if there is one.
fn limit_milli(quota_us: u32) -> Option<u32> {
    let milli = u64::from(quota_us) * 1_000 / CPU_PERIOD_US;
    (quota_us > 0).then(|| u32::try_from(milli).unwrap_or(u32::MAX))
}

/// What has a rate: edges by what was sent, instances and members by what was sent to them.
fn counts(status: &Status) -> Vec<(Counted, u64)> {
    let edges = status.edges.iter();
    let edges = edges.map(|edge| (Counted::Edge(edge.from, edge.to), edge.sent));
    let members = status.members.iter();
    let members = members.filter_map(|one| Some((Counted::Member(one.member), one.work?.received)));
    let instances = status.instances.iter();
    let instances = instances.map(|one| (Counted::Instance(one.instance), one.work.received));
    edges.chain(members).chain(instances).collect()
}

fn kernel(work: Work, per_second: u64) -> KernelLive {
    KernelLive {
        received: work.received,
        per_second,
        in_hand: work.in_hand,
        response_us: work.busy_ns.checked_div(work.handled).map(|ns| ns / 1_000),
        refused: work.refused,
    }
}
