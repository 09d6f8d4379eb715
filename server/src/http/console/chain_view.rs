//! From a chain to the console's view models.

use std::collections::BTreeSet;

use hearth_web::chrome::{Badge, Tone};
use hearth_web::format;
use hearth_web::graph::{Graph, Link, Member};
use hearth_web::pages::{
    ChainInstanceRow, ChainLive, ChainMemberRow, ChainRefusalRow, ChainRequestRow, ChainRequests,
    Moment,
};
use jiff::Timestamp;

use crate::http::App;
use crate::http::problem::Problem;
use crate::model::InvocationFilter;
use crate::model::chain::{
    EdgeLive, GATEWAY, InstanceLive, Live, MemberLive, RefusalLive, Settings, State, View,
};

use super::view;

/// Requests that a chain's page lists.
const REQUESTS: u32 = 20;

/// A chain's state.
pub(super) fn state(state: State) -> Badge {
    match state {
        State::Ready => Badge::new("ready", Tone::Good),
        State::Starting => Badge::new("starting", Tone::Busy),
        State::Failed => Badge::new("failed", Tone::Bad),
    }
}

/// What a chain's page shows as it changes.
pub(super) fn live(chain: &View) -> ChainLive {
    let live = chain.live.as_ref();
    let member = |name: &str| live.and_then(|live| live.members.get(name)).copied();
    let edges = live.map(|live| live.edges.as_slice()).unwrap_or_default();
    let figures = live.map(|live| {
        let sent: u64 = edges.iter().map(|edge| edge.sent).sum();
        vec![
            ("Transport", live.transport.clone()),
            ("Under way", format::count(live.requests)),
            ("Descriptors sent", format::count(sent)),
            ("Block size", format::bytes(live.pool.block_bytes.into())),
            (
                "Largest payload",
                format::bytes(live.pool.payload_bytes.into()),
            ),
            (
                "Huge pages",
                if live.pool.huge_pages { "yes" } else { "no" }.to_owned(),
            ),
            ("Processor time", processor_time(live)),
        ]
    });
    ChainLive {
        name: chain.name.clone(),
        state: state(chain.state),
        reason: chain.state_reason.clone().unwrap_or_default(),
        graph: graph(&chain.settings, member, edges),
        figures: figures.unwrap_or_default(),
        pool: live.map(|live| (live.pool.in_use, live.pool.blocks)),
        members: members(&chain.settings, member),
        instances: live.map(instances).unwrap_or_default(),
        refused: live.map(refused).unwrap_or_default(),
        spins: live.is_some_and(|live| live.transport == "poll"),
    }
}

/// What the members may take together.
fn processor_time(live: &Live) -> String {
    let limits = live.members.values().filter_map(|one| one.cpu_limit_milli);
    match limits.map(u64::from).sum::<u64>() {
        0 => "what the functions may take".to_owned(),
        milli => format!("at most {:.2} processors", milli as f64 / 1e3),
    }
}

fn instances(live: &Live) -> Vec<ChainInstanceRow> {
    let row = |one: &InstanceLive| ChainInstanceRow {
        name: format!("{} #{}", one.member, one.instance),
        received: format::count(one.kernel.received),
        rate: format!("{}/s", format::count(one.kernel.per_second)),
        in_hand: format::count(one.kernel.in_hand),
        response: one
            .kernel
            .response_us
            .map_or_else(|| "–".to_owned(), format::duration_us),
        refused: format::count(one.kernel.refused),
    };
    live.instances.iter().map(row).collect()
}

/// What was refused, the latest first.
fn refused(live: &Live) -> Vec<ChainRefusalRow> {
    let now = Timestamp::now();
    let row = |one: &RefusalLive| ChainRefusalRow {
        from: format!("{} #{}", one.from, one.instance),
        to: match &one.to {
            Some(to) if to == GATEWAY => GATEWAY.to_owned(),
            Some(to) => format!("{to} #{}", one.to_instance),
            None => format!("no instance (#{})", one.to_instance),
        },
        reason: why(&one.reason).to_owned(),
        count: format::count(one.count),
        last: Moment {
            at: one.last_at,
            now,
        },
    };
    live.refusals.iter().rev().map(row).collect()
}

/// A reason in words.
fn why(reason: &str) -> &str {
    match reason {
        "no_edge" => "no route or edge allows it",
        "no_such_instance" => "there is no such instance",
        "instance_gone" => "the instance had just ended",
        "block_not_in_hand" => "the sender did not have the block",
        "kind_not_allowed" => "members send no such kind",
        "no_descriptor" => "it is no descriptor",
        "not_valid" => "the gateway found it not valid",
        other => other,
    }
}

fn members(settings: &Settings, live: impl Fn(&str) -> Option<MemberLive>) -> Vec<ChainMemberRow> {
    let duration = |us: Option<u64>| us.map_or_else(|| "–".to_owned(), format::duration_us);
    let row = |(name, member): (&String, &crate::model::chain::Member)| {
        let found = live(name);
        let shown = found.unwrap_or_default();
        ChainMemberRow {
            name: name.clone(),
            function: member.function.clone(),
            version: found.map(|found| found.function_version),
            pinned: member.version.is_some(),
            instances: (shown.instances, member.concurrency),
            restarts: shown.restarts,
            p50: duration(shown.latency_us.p50),
            p99: duration(shown.latency_us.p99),
            max: duration(shown.latency_us.max),
        }
    };
    settings.members.iter().map(row).collect()
}

/// The edges that routes and calls have, each once, with what was sent on them.
fn graph(
    settings: &Settings,
    live: impl Fn(&str) -> Option<MemberLive>,
    edges: &[EdgeLive],
) -> Graph {
    let mut pairs = BTreeSet::new();
    for hops in settings.routes.values() {
        let mut before = GATEWAY;
        for hop in hops.iter().map(|hop| hop.as_str()).chain([GATEWAY]) {
            pairs.insert((before, hop));
            before = hop;
        }
    }
    for (from, to) in &settings.edges {
        pairs.insert((from, to));
    }
    let link = |(from, to): (&str, &str)| {
        let edge = edges.iter().find(|edge| edge.from == from && edge.to == to);
        let (sent, refused, rate) =
            edge.map_or((0, 0, 0), |edge| (edge.sent, edge.refused, edge.per_second));
        Link {
            from: from.to_owned(),
            to: to.to_owned(),
            label: match rate {
                0 => format::count(sent),
                rate => format!("{}/s", format::count(rate)),
            },
            title: format!(
                "{} sent, {} a second, {} refused",
                format::count(sent),
                format::count(rate),
                format::count(refused)
            ),
            refused: refused > 0,
        }
    };
    let gateway = Member {
        name: GATEWAY.to_owned(),
        line: "HTTP in and out".to_owned(),
        title: "the server".to_owned(),
    };
    let member = |(name, member): (&String, &crate::model::chain::Member)| {
        let figures = live(name).unwrap_or_default();
        let line = match figures.latency_us.p50 {
            Some(p50) => format!("p50 {}", format::duration_us(p50)),
            None => member.function.chars().take(20).collect(),
        };
        Member {
            name: name.clone(),
            line,
            title: format!(
                "function {}, {} instances",
                member.function, figures.instances
            ),
        }
    };
    let all = std::iter::once(gateway).chain(settings.members.iter().map(member));
    Graph::new(all.collect(), pairs.into_iter().map(link).collect())
}

/// A chain's last requests.
pub(super) async fn requests(app: &App, chain: &View) -> Result<ChainRequests, Problem> {
    let now = Timestamp::now();
    let filter = InvocationFilter::default();
    let page = app.history.list(-chain.id, &filter, None, REQUESTS).await?;
    let records = page.map(|page| page.items).unwrap_or_default();
    let recent = view::recent_of(app, -chain.id);
    let row = |record: crate::model::InvocationRecord| {
        let trace = record.chain.unwrap_or_default();
        ChainRequestRow {
            id: record.id.to_string(),
            route: trace.route,
            status: view::status(record.status),
            received: Moment {
                at: record.received_at,
                now,
            },
            hops: trace.hops.len(),
            total: format::duration_us(record.stages_us.total),
        }
    };
    Ok(ChainRequests {
        name: chain.name.clone(),
        rows: records.into_iter().map(row).collect(),
        percentiles: vec![("p50", recent.p50), ("p99", recent.p99)],
        recent,
    })
}
