//! Chains: nothing that members or users wrote becomes markup; what a role may not do is not offered.

use super::samples::{HOSTILE, chrome, error, log, moment, reader};
use super::{assert_harmless, html};
use crate::chrome::{Badge, Chrome, Tone};
use crate::graph::{Graph, Link, Member};
use crate::pages::{
    ChainForm, ChainInstanceRow, ChainLive, ChainMemberRow, ChainPage, ChainRefusalRow,
    ChainRequestPage, ChainRequestRow, ChainRequests, ChainRow, ChainSettingsPage, ChainVersionRow,
    ChainsPage, FieldErrors, OwnPorts, Percentile, PortLimitsForm, PortRow, RecentStats,
    WorkloadCard,
};
use crate::stage_bar::{StageBar, StageTimes};
use crate::waterfall::{Stay, Waterfall};

fn live() -> ChainLive {
    let member = |name: &str| Member {
        name: name.into(),
        line: HOSTILE.into(),
        title: HOSTILE.into(),
    };
    let link = |from: &str, to: &str, refused| Link {
        from: from.into(),
        to: to.into(),
        label: "12/s".into(),
        title: HOSTILE.into(),
        refused,
    };
    ChainLive {
        name: "shop".into(),
        state: Badge::new("ready", Tone::Good),
        reason: HOSTILE.into(),
        graph: Graph::new(
            vec![member("gateway"), member("cart")],
            vec![
                link("gateway", "cart", false),
                link("cart", "gateway", true),
            ],
        ),
        figures: vec![("Transport", HOSTILE.into())],
        pool: Some((3, 1024)),
        members: vec![ChainMemberRow {
            name: "cart".into(),
            function: "cart-py".into(),
            version: Some(3),
            pinned: true,
            instances: (1, 2),
            restarts: 7,
            p50: "8 µs".into(),
            p99: "–".into(),
            max: "1.00 ms".into(),
        }],
        instances: vec![ChainInstanceRow {
            name: HOSTILE.into(),
            received: "12".into(),
            rate: "3/s".into(),
            in_hand: "1".into(),
            response: "8 µs".into(),
            refused: "0".into(),
        }],
        refused: vec![ChainRefusalRow {
            from: HOSTILE.into(),
            to: HOSTILE.into(),
            reason: HOSTILE.into(),
            count: "9".into(),
            last: moment(),
        }],
        spins: true,
    }
}

fn list(chrome: Chrome) -> ChainsPage {
    ChainsPage {
        chrome,
        chains: vec![ChainRow {
            name: "shop".into(),
            state: Badge::new("failed", Tone::Bad),
            reason: HOSTILE.into(),
            version: 2,
            members: vec!["cart".into(), "pay".into()],
            routes: vec!["checkout".into()],
            recent: RecentStats::default(),
            updated: moment(),
        }],
        workloads: vec![WorkloadCard {
            key: "motion",
            label: "Motion detection",
            summary: "Lights.",
            functions: 2,
        }],
        problem: HOSTILE.into(),
    }
}

fn page(chrome: Chrome) -> ChainPage {
    ChainPage {
        chrome,
        live: live(),
        requests: ChainRequests {
            name: "shop".into(),
            rows: vec![ChainRequestRow {
                id: "0195".into(),
                route: HOSTILE.into(),
                status: Badge::new("succeeded", Tone::Good),
                received: moment(),
                hops: 3,
                total: "1.20 ms".into(),
            }],
            recent: RecentStats::default(),
            percentiles: vec![("p50", Percentile::default())],
        },
        routes: vec![("checkout".into(), vec!["cart".into(), "pay".into()])],
        ports: OwnPorts {
            name: "shop".into(),
            is_chain: true,
            rows: vec![PortRow {
                port: "udp 9000".into(),
                receives: "Datagrams".into(),
                route: HOSTILE.into(),
                by: "AF_XDP",
                why: String::new(),
                failed: HOSTILE.into(),
            }],
            ..OwnPorts::default()
        },
        versions: [true, false]
            .map(|active| ChainVersionRow {
                version: u32::from(active) + 1,
                active,
                created: moment(),
            })
            .into(),
        revision: "c1.2".into(),
        curl: HOSTILE.into(),
        problem: HOSTILE.into(),
    }
}

fn settings(name: &str) -> ChainSettingsPage {
    ChainSettingsPage {
        chrome: chrome(),
        name: name.into(),
        revision: "c1.2".into(),
        form: ChainForm {
            name: HOSTILE.into(),
            members: HOSTILE.into(),
            routes: HOSTILE.into(),
            edges: HOSTILE.into(),
            block_kb: HOSTILE.into(),
            blocks: HOSTILE.into(),
            payload_kb: HOSTILE.into(),
            huge_pages: true,
            transport: "ring".into(),
            timeout_ms: HOSTILE.into(),
            cpu: "proportional".into(),
            cpu_us: HOSTILE.into(),
            cpu_cores: HOSTILE.into(),
            public: true,
            triggers: HOSTILE.into(),
            port_limits: PortLimitsForm {
                source_rate: HOSTILE.into(),
                ..PortLimitsForm::default()
            },
        },
        errors: FieldErrors::one("members.cart", HOSTILE.into()),
        problem: HOSTILE.into(),
        functions: vec!["cart-py".into()],
        limits_reason: HOSTILE.into(),
    }
}

fn request() -> ChainRequestPage {
    let stay = |entered, left, is_call| Stay {
        member: "cart".into(),
        instance: 3,
        is_call,
        entered,
        left,
    };
    ChainRequestPage {
        chrome: chrome(),
        name: "shop".into(),
        id: "0195".into(),
        route: HOSTILE.into(),
        version: 2,
        status: Badge::new("failed", Tone::Bad),
        trigger: "invoke",
        received: moment(),
        waterfall: Waterfall::new(vec![stay(0, Some(600), false), stay(200, None, true)], 1000),
        stages: StageBar::new(StageTimes::default()),
        error: Some(error()),
        logs: vec![log()],
    }
}

pub(super) fn pages() -> Vec<String> {
    vec![
        html(&list(chrome())),
        html(&page(chrome())),
        html(&settings("shop")),
        html(&settings("")),
        html(&request()),
    ]
}

#[test]
fn nothing_that_was_written_becomes_markup() {
    for page in pages() {
        assert_harmless(&page);
    }
}

#[test]
fn a_reader_is_offered_no_change() {
    for (page, offers) in [
        (
            html(&list(reader())),
            &["id=\"new-chain\"", "id=\"deploy-motion\""][..],
        ),
        (
            html(&page(reader())),
            &["id=\"edit-chain\"", "id=\"delete-button\"", "/activate"],
        ),
    ] {
        for offer in offers {
            assert!(!page.contains(offer), "{offer}");
        }
    }
    let shown = html(&page(chrome()));
    assert!(shown.contains("/chains/shop/versions/1/activate"));
    assert!(
        !shown.contains("/chains/shop/versions/2/activate"),
        "it is active"
    );
}

#[test]
fn the_graph_and_the_waterfall_are_drawn() {
    let shown = html(&page(chrome()));
    assert_eq!(shown.matches("class=\"chain-node\"").count(), 2);
    assert_eq!(shown.matches("class=\"chain-edge\"").count(), 1);
    assert_eq!(shown.matches("class=\"chain-edge refused\"").count(), 1);
    for id in ["chain-spins", "chain-instances", "chain-refused"] {
        assert!(shown.contains(&format!("id=\"{id}\"")), "{id}");
    }
    for part in ["live", "requests"] {
        let asked = format!("hx-get=\"/chains/shop?part={part}\"");
        assert_eq!(shown.matches(&asked).count(), 1, "{part}");
    }
    let shown = html(&request());
    assert!(
        shown.contains("class=\"stage-run\" x=\"0\" y=\"0\" width=\"600\""),
        "{shown}"
    );
    assert!(
        shown.contains("class=\"stage-send\" x=\"200\" y=\"0\" width=\"800\""),
        "{shown}"
    );
}
