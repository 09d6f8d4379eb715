//! The node's ingress: nothing that was typed becomes markup, each part refreshes on its own.

use super::network::source;
use super::samples::{HOSTILE, chrome, moment};
use super::{assert_harmless, html};
use crate::pages::{
    FieldErrors, IngressKernel, IngressLists, IngressPage, IngressSources, IngressTraffic,
    InterfaceRow, LIST_EXPIRY, ListForm, ListedRow, MapRow, ProgramRow,
};

fn map(name: &str, used: Option<u32>) -> MapRow {
    MapRow {
        name: name.into(),
        what: "Ports of functions",
        id: 7,
        capacity: 65_536,
        used,
    }
}

pub(super) fn page() -> IngressPage {
    IngressPage {
        chrome: chrome(),
        traffic: Some(IngressTraffic {
            figures: vec![("Packets", "1,234".into())],
            dropped: vec![("Deny list", "2".into())],
            passed: vec![("Not IP", "3".into())],
        }),
        sources: IngressSources {
            limited: vec![source()],
            top: vec![source()],
        },
        lists: IngressLists {
            csrf: "csrf-1".into(),
            rows: vec![ListedRow {
                prefix: "192.0.2.0/24".into(),
                denied: true,
                expires: Some(moment()),
                note: HOSTILE.into(),
                created: moment(),
            }],
        },
        kernel: IngressKernel {
            interfaces: vec![InterfaceRow {
                name: "eth0".into(),
                mode: "generic".into(),
                queues: 1,
                lacks: vec![("Native mode", HOSTILE.into())],
            }],
            programs: vec![ProgramRow {
                name: "egress".into(),
                what: "Counts what functions send (TC)",
                id: None,
                instructions: None,
                error: HOSTILE.into(),
            }],
            maps: vec![map("ports", Some(1)), map("settings", None)],
            steering_missing: HOSTILE.into(),
        },
        form: ListForm {
            prefix: HOSTILE.into(),
            verdict: "allow".into(),
            expires: LIST_EXPIRY.into(),
            note: HOSTILE.into(),
        },
        adding: true,
        errors: FieldErrors::one("prefix", HOSTILE.into()),
    }
}

#[test]
fn nothing_that_was_typed_becomes_markup() {
    let shown = html(&page());
    assert_harmless(&shown);
    for part in ["traffic", "sources", "lists", "kernel"] {
        let asked = format!("hx-get=\"/ingress?part={part}\"");
        assert_eq!(shown.matches(&asked).count(), 1, "{part}");
    }
    for field in ["prefix", "verdict", "expires_at", "note"] {
        let place = format!("id=\"error-{field}\"");
        assert_eq!(shown.matches(&place).count(), 1, "{field}");
    }
    assert!(shown.contains("value=\"86400\" selected"));
}

#[test]
fn the_form_is_outside_what_is_refreshed() {
    let shown = html(&page());
    let form = shown.find("id=\"list-form\"").expect("the form");
    let lists = shown.find("id=\"ingress-lists\"").expect("the lists");
    let end = lists + shown[lists..].find("</section>").expect("their end");
    let kernel = shown.find("id=\"ingress-kernel\"").expect("the rest");
    assert!(end < form && form < kernel);
}

#[test]
fn without_an_interface_the_page_says_what_to_set() {
    let mut none = page();
    none.traffic = None;
    none.lists.rows.clear();
    let shown = html(&none);
    assert!(shown.contains("HEARTH_XDP_INTERFACE"));
    assert!(!shown.contains("id=\"list-form\"") && !shown.contains("id=\"ingress-lists\""));
    // What was listed before can still be removed.
    none.lists = page().lists;
    assert!(html(&none).contains("/ingress/lists/remove"));
}

#[test]
fn bars_show_the_share_in_use() {
    for (used, capacity, filled) in [
        (Some(0), 10, 0),
        (Some(1), 65_536, 4),
        (Some(5), 10, 500),
        (Some(20), 10, 1000),
        (None, 10, 0),
    ] {
        let map = MapRow {
            capacity,
            ..map("m", used)
        };
        assert_eq!(map.filled(), filled, "{used:?} of {capacity}");
    }
}
