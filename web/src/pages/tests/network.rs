//! The page of what was refused.

use jiff::Timestamp;

use super::samples::{HOSTILE, chrome, head};
use super::{assert_harmless, html};
use crate::pages::{
    BrokerRow, DestinationRow, Moment, NetworkPage, OwnPorts, PortRow, ReachedRow, SourceRow,
};

fn last() -> Moment {
    let at = Timestamp::UNIX_EPOCH;
    Moment { at, now: at }
}

pub(super) fn source() -> SourceRow {
    SourceRow {
        source: "2001:db8::/64".into(),
        owner: "hello".into(),
        is_chain: false,
        per_second: "2.5".into(),
        admitted: "12".into(),
        refused: "3".into(),
        limited: true,
    }
}

fn page() -> NetworkPage {
    NetworkPage {
        chrome: chrome(),
        head: head(),
        ports: OwnPorts {
            name: "hello".into(),
            is_chain: false,
            can_admin: true,
            rows: vec![PortRow {
                port: "udp 9000".into(),
                receives: "Datagrams".into(),
                route: String::new(),
                by: "A socket of its own",
                why: HOSTILE.into(),
                failed: HOSTILE.into(),
            }],
            brokers: vec![BrokerRow {
                broker: HOSTILE.into(),
                topics: HOSTILE.into(),
                messages: "3 accepted".into(),
                connected: false,
                version: String::new(),
                since: Some(last()),
                error: Some((HOSTILE.into(), last())),
            }],
            figures: vec![("Packets received", "3".into())],
            dropped: vec![("Deny list", "1".into())],
            limits: "total 1 a second, burst 1".into(),
            limits_enforced: false,
            sources: vec![source()],
        },
        policy: HOSTILE.into(),
        dry_run: true,
        is_open: true,
        figures: vec![("Sent", "1 KiB".into())],
        reached: vec![ReachedRow {
            place: HOSTILE.into(),
            address: "192.0.2.1".into(),
            port: "443/tcp".into(),
            connections: "2".into(),
            sent: "1 KiB".into(),
            received: "2 KiB".into(),
            last: last(),
        }],
        destinations: vec![
            DestinationRow {
                place: HOSTILE.into(),
                address: String::new(),
                port: "443/tcp".into(),
                outcome: "refused",
                count: "3".into(),
                last: last(),
                rule: HOSTILE.into(),
            },
            DestinationRow {
                place: "10.0.0.1".into(),
                address: String::new(),
                port: String::new(),
                outcome: "refused: private or reserved",
                count: "1".into(),
                last: last(),
                rule: String::new(),
            },
        ],
        suggested: vec![HOSTILE.into()],
    }
}

#[test]
fn nothing_that_a_function_asked_for_becomes_markup() {
    assert_harmless(&html(&page()));
}

#[test]
fn what_a_rule_can_allow_has_a_button() {
    let shown = html(&page());
    assert_eq!(shown.matches("/network/allow").count(), 1);
    assert_eq!(shown.matches("/network/end-dry-run").count(), 1);
    let mut reader = page();
    reader.chrome.can_write = false;
    let shown = html(&reader);
    assert!(!shown.contains("/network/allow") && !shown.contains("/network/end-dry-run"));
}

#[test]
fn a_function_without_a_network_is_told_of() {
    let mut closed = page();
    closed.is_open = false;
    closed.destinations.clear();
    assert!(html(&closed).contains("has no network"));
}

#[test]
fn ports_are_polled_where_there_are_some() {
    let shown = html(&page());
    assert!(shown.contains("hx-get=\"/functions/hello/network\""));
    assert!(shown.contains("not enforced on this node"));
    // The network itself, of which a source is one, goes into the form.
    assert!(shown.contains("/ingress?source=2001%3Adb8%3A%3A%2F64#add-listed"));
    let mut none = page();
    none.ports = OwnPorts {
        name: "hello".into(),
        ..OwnPorts::default()
    };
    let shown = html(&none);
    assert!(shown.contains("no port of its own") && !shown.contains("data-poll"));
    // One that only subscribes has no table of ports.
    let mut subscriber = page();
    subscriber.ports.rows.clear();
    subscriber.ports.brokers[0].connected = true;
    let shown = html(&subscriber);
    assert!(shown.contains("id=\"brokers\"") && shown.contains("data-poll"));
    assert!(!shown.contains("id=\"ports\"") && !shown.contains("not connected"));
    let mut viewer = page();
    viewer.ports.can_admin = false;
    assert!(!html(&viewer).contains("/ingress?source"));
}
