//! Connections to all ports of functions reach one listener.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hearth_ebpf::{Capacity, Ingress};
use hearth_testkit::namespaces::Namespace;
use serde_json::{Value, json};

use super::{CODE, PATIENCE, deploy, fetch, tcp};
use crate::support::{Server, eventually, skip};

/// Sets a cookie, and answers text.
const COOKIE: &str = r#"
def handler(event, context):
    return {"statusCode": 200, "body": "x", "cookies": ["a=b"], "headers": {"x-own": "1"}}
"#;

/// A namespace that this thread is in from here on, and a server in it; counts the test as skipped where connections cannot
/// be steered.
async fn world(address: &str) -> Option<(Namespace, Server)> {
    let namespace = Namespace::make("ports").expect("a namespace");
    namespace.enter().expect("entered");
    let server = Server::start_with(&[("HEARTH_TRIGGER_ADDRESS", address)]);
    let node = server.client().get("/api/v1/node").await.expect(200).json();
    let steering = &node["capabilities"]["port_steering"];
    assert_eq!(steering["reason"], node["ingress"]["steering_missing"]);
    if steering["available"] == true {
        return Some((namespace, server));
    }
    skip(&format!(
        "connections cannot be steered here: {}",
        steering["reason"]
    ));
    None
}

/// The function that answers at a port; none if nobody listens there.
fn by(port: u16) -> Option<String> {
    match fetch(&format!("127.0.0.1:{port}"), "GET /here HTTP/1.1") {
        Ok((head, body)) => {
            assert!(head.starts_with("HTTP/1.1 200"), "{head}\n{body}");
            let start = body.find('{').expect("an object");
            let end = body.rfind('}').expect("its end");
            let said: Value = serde_json::from_str(&body[start..=end]).expect("JSON");
            assert_eq!(said["path"], "/here");
            Some(said["by"].as_str().expect("a name").to_owned())
        }
        Err(error) => {
            assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused, "{error}");
            None
        }
    }
}

/// TCP sockets that listen in this thread's namespace, at other ports than the server's own.
fn listeners(server: &Server) -> usize {
    let own = format!(":{:04X} ", server.address().port());
    let tables = ["/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"];
    let tables = tables.map(|table| std::fs::read_to_string(table).expect("the table"));
    let lines = tables.iter().flat_map(|table| table.lines());
    lines
        .filter(|line| line.contains(" 0A ") && !line.contains(&own))
        .count()
}

#[tokio::test]
async fn connections_to_all_ports_reach_one_listener() {
    let Some((namespace, server)) = world("::").await else {
        return;
    };
    let client = server.client();
    let before = listeners(&server);
    let made = deploy(&client, "one", &[9000, 9001]).await;
    assert_eq!(
        made["triggers"],
        json!([
            {"protocol": "tcp", "port": 9000, "mode": "http"},
            {"protocol": "tcp", "port": 9001, "mode": "http"},
        ])
    );
    let many: Vec<u16> = (20_000..20_064).collect();
    deploy(&client, "two", &many).await;
    for (port, function) in [
        (9000, "one"),
        (9001, "one"),
        (20_000, "two"),
        (20_063, "two"),
    ] {
        assert_eq!(by(port).as_deref(), Some(function));
    }
    assert_eq!(by(20_064), None);
    assert_eq!(
        listeners(&server),
        before,
        "no port has a socket of its own"
    );
    namespace
        .ip("addr add 192.0.2.7/32 dev lo")
        .expect("an address");
    for address in ["192.0.2.7:9000", "[::1]:9000"] {
        let (head, body) = fetch(address, "GET /x HTTP/1.1").expect("an answer");
        assert!(
            head.starts_with("HTTP/1.1 200") && body.contains("\"/x\""),
            "{head}\n{body}"
        );
    }
    // The console and the API are not there.
    let (head, body) = fetch("127.0.0.1:9000", "GET /api/v1/node HTTP/1.1").expect("an answer");
    assert!(
        head.starts_with("HTTP/1.1 200") && body.contains("/api/v1/node"),
        "{head}\n{body}"
    );
    client.delete("/api/v1/functions/one").await.expect(204);
    assert_eq!((by(9000), by(20_000).as_deref()), (None, Some("two")));
}

#[tokio::test]
async fn connections_to_other_addresses_are_not_steered() {
    let Some((namespace, server)) = world("127.0.0.1").await else {
        return;
    };
    deploy(&server.client(), "f", &[9000]).await;
    namespace
        .ip("addr add 192.0.2.7/32 dev lo")
        .expect("an address");
    assert_eq!(by(9000).as_deref(), Some("f"));
    for address in ["192.0.2.7:9000", "[::1]:9000"] {
        let refused = fetch(address, "GET / HTTP/1.1").expect_err("nobody listens there");
        assert_eq!(
            refused.kind(),
            io::ErrorKind::ConnectionRefused,
            "{address}"
        );
    }
}

#[tokio::test]
async fn what_is_not_public_asks_for_a_token_and_cookies_stay_apart() {
    let Some((_namespace, server)) = world("127.0.0.1").await else {
        return;
    };
    let client = server.client();
    let settings = json!({"triggers": tcp(&[9000])});
    client.deploy("closed", CODE, settings).await;
    let (head, _) = fetch("127.0.0.1:9000", "GET / HTTP/1.1").expect("an answer");
    assert!(head.starts_with("HTTP/1.1 401"), "{head}");
    let with_token = format!(
        "GET / HTTP/1.1\r\nauthorization: Bearer {}\r\ncookie: hearth_session=s; own=1",
        crate::support::TOKEN
    );
    let (head, body) = fetch("127.0.0.1:9000", &with_token).expect("an answer");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(
        body.contains("own=1") && !body.contains("hearth_session"),
        "{body}"
    );
    // A browser would send it to all ports of the host, the console's among them.
    let settings = json!({"triggers": tcp(&[9001]), "public": true});
    client.deploy("baker", COOKIE, settings).await;
    let (head, _) = fetch("127.0.0.1:9001", "GET / HTTP/1.1").expect("an answer");
    let head = head.to_ascii_lowercase();
    assert!(
        head.contains("x-own: 1") && !head.contains("\r\nset-cookie:"),
        "{head}"
    );
}

#[tokio::test]
async fn ports_are_there_again_after_a_restart() {
    let Some((_namespace, server)) = world("127.0.0.1").await else {
        return;
    };
    deploy(&server.client(), "f", &[9000]).await;
    let server = server.restart();
    assert_eq!(by(9000).as_deref(), Some("f"));
    drop(server);
    eventually("nobody steers any more", PATIENCE, || async {
        by(9000).is_none().then_some(())
    })
    .await;
}

#[tokio::test]
async fn no_request_is_lost_while_ports_and_versions_change() {
    let Some((_namespace, server)) = world("127.0.0.1").await else {
        return;
    };
    let client = server.client();
    deploy(&client, "f", &[9000]).await;
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    // In this thread's namespace, as every thread that it starts.
    let asking = std::thread::spawn(move || {
        let mut answered = 0;
        while !stopped.load(Ordering::Relaxed) {
            assert_eq!(by(9000).as_deref(), Some("f"));
            answered += 1;
        }
        answered
    });
    for port in 9001..9011 {
        let triggers = json!({"triggers": tcp(&[9000, port])});
        client
            .patch("/api/v1/functions/f", &triggers)
            .await
            .expect(200);
        assert_eq!(by(port).as_deref(), Some("f"));
    }
    stop.store(true, Ordering::Relaxed);
    let answered = asking.join().expect("every request was answered");
    assert!(answered >= 10, "{answered} answers beside 10 changes");
}

#[tokio::test]
async fn where_connections_cannot_be_steered_each_port_has_a_socket() {
    let namespace = Namespace::make("full").expect("a namespace");
    namespace.enter().expect("entered");
    let own = File::open("/proc/thread-self/ns/net").expect("the namespace");
    // A namespace takes 64 programs.
    let mut others = Vec::new();
    loop {
        let least = Capacity {
            functions: 1,
            sources: 1,
            prefixes: 1,
        };
        let Ok(mut other) = Ingress::load_to_steer(least) else {
            return skip("no eBPF on this host");
        };
        if other.steer(&own).is_err() {
            break;
        }
        others.push(other);
        assert!(others.len() < 1_000, "the namespace is not full");
    }
    let server = Server::start();
    let client = server.client();
    let node = client.get("/api/v1/node").await.expect(200).json();
    let steering = &node["capabilities"]["port_steering"];
    assert_eq!(steering["available"], false);
    assert!(steering["reason"].is_string(), "{steering}");
    let before = listeners(&server);
    deploy(&client, "f", &[9000, 9001]).await;
    assert_eq!(listeners(&server), before + 2);
    assert_eq!(
        (by(9000).as_deref(), by(9001).as_deref()),
        (Some("f"), Some("f"))
    );
    client.delete("/api/v1/functions/f").await.expect(204);
    eventually("the port is closed", PATIENCE, || async {
        by(9000).is_none().then_some(())
    })
    .await;
}
