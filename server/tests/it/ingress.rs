//! Ports of functions as the kernel serves them: steered to one listener, counted at an interface. Each test has a network
//! namespace of its own.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::{TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hearth_ebpf::{Capacity, Ingress};
use hearth_testkit::namespaces::Namespace;
use serde_json::{Value, json};

use crate::support::{Client, Server, eventually, skip};

const CODE: &str = r#"
def handler(event, context):
    return {"path": event["rawPath"], "by": context.function_name, "version": context.function_version,
            "cookies": event.get("cookies")}
"#;
/// Sets a cookie, and answers text.
const COOKIE: &str = r#"
def handler(event, context):
    return {"statusCode": 200, "body": "x", "cookies": ["a=b"], "headers": {"x-own": "1"}}
"#;

/// How long an answer may take before a test fails.
const PATIENCE: Duration = Duration::from_secs(20);

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

fn tcp(ports: &[u16]) -> Value {
    let triggers = ports
        .iter()
        .map(|port| json!({"protocol": "tcp", "port": port}));
    Value::Array(triggers.collect())
}

/// The head and the body that come of a request.
fn fetch(address: &str, head: &str) -> io::Result<(String, String)> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(
        stream,
        "{head}\r\nhost: any.example\r\nconnection: close\r\n\r\n"
    )?;
    let mut all = String::new();
    stream.read_to_string(&mut all)?;
    let (head, body) = all.split_once("\r\n\r\n").unwrap_or((&all, ""));
    Ok((head.to_owned(), body.to_owned()))
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

async fn deploy(client: &Client, name: &str, ports: &[u16]) -> Value {
    let settings = json!({"triggers": tcp(ports), "public": true});
    client.deploy(name, CODE, settings).await
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

/// A client's namespace beside the server's, with a pair of interfaces between.
fn wire(host: &Namespace) -> Namespace {
    let client = Namespace::make("client").expect("a namespace");
    let made = || -> io::Result<()> {
        let name = client.name();
        host.ip(&format!("link add h0 type veth peer name c0 netns {name}"))?;
        for (namespace, interface, address) in [
            (host, "h0", "192.0.2.2/24"),
            (&client, "c0", "192.0.2.1/24"),
        ] {
            namespace.ip(&format!("addr add {address} dev {interface}"))?;
            namespace.ip(&format!("link set {interface} up"))?;
        }
        Ok(())
    };
    made().expect("a pair of interfaces");
    client
}

/// What `ip` tells of the programs at an interface.
fn attached(namespace: &Namespace) -> String {
    let link = namespace.look("ip", &["-details", "link", "show", "h0"]);
    let link = link.expect("ip runs");
    let programs = link.lines().filter(|line| line.contains("prog/xdp"));
    programs.collect()
}

#[tokio::test]
async fn the_ingress_counts_at_an_interface_and_is_gone_with_the_server() {
    let host = Namespace::make("host").expect("a namespace");
    let outside = wire(&host);
    host.enter().expect("entered");
    let server = Server::start_with(&[
        ("HEARTH_XDP_INTERFACE", "h0"),
        ("HEARTH_TRIGGER_ADDRESS", "0.0.0.0"),
    ]);
    let client = server.client();
    let node = client.get("/api/v1/node").await.expect(200).json();
    assert_eq!(node["capabilities"]["xdp"]["available"], true);
    let interfaces = &node["ingress"]["interfaces"];
    assert_eq!(interfaces[0]["name"], "h0");
    assert_eq!(interfaces[0]["mode"], "native", "{interfaces}");
    assert_ne!(attached(&host), "");
    deploy(&client, "f", &[9000]).await;
    for _ in 0..3 {
        let answer = outside.within(|| fetch("192.0.2.2:9000", "GET / HTTP/1.1"));
        let (head, _) = answer.expect("an answer");
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    }
    let view = client
        .get("/api/v1/functions/f/ingress")
        .await
        .expect(200)
        .json();
    let received = &view["received"];
    assert_eq!(received["starts"], 3, "{view}");
    assert!(received["packets"].as_u64() > Some(9), "{view}");
    assert!(received["bytes"].as_u64() > Some(500), "{view}");
    if interfaces[0]["not_counting_sent"].is_null() {
        assert!(view["sent"]["packets"].as_u64() > Some(6), "{view}");
    } else {
        skip("what functions send is not counted before Linux 6.6");
    }
    assert_eq!(
        view["ports"],
        json!([{"protocol": "tcp", "port": 9000, "by": "steered", "failed": null}])
    );
    // Another server finds the place taken, and says by whom.
    let second = tempfile::tempdir().expect("a directory");
    let output = crate::support::command(&second.path().join("data"))
        .env("HEARTH_XDP_INTERFACE", "h0")
        .output()
        .expect("started");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && said.contains("already has the XDP program ingress"),
        "{said}"
    );
    // SIGKILL.
    drop(server);
    eventually("the program is gone", PATIENCE, || async {
        attached(&host).is_empty().then_some(())
    })
    .await;
}

/// Answers with what came, and from where.
const ECHO: &str = r#"
import base64, json
def handler(event, context):
    body = base64.b64decode(event["body"])
    if body == b"large":
        return {"body": "x" * 5000}
    return {"body": json.dumps({"got": len(body), "at": event["receivedAt"], "from": event["source"]["port"]})}
"#;

/// The answer to a datagram.
fn exchange(socket: &UdpSocket, payload: &[u8], to: &str) -> String {
    socket.send_to(payload, to).expect("sent");
    let mut buffer = vec![0; 1 << 16];
    let (length, from) = socket.recv_from(&mut buffer).expect("an answer");
    assert_eq!(from.to_string(), to);
    String::from_utf8(buffer[..length].to_vec()).expect("text")
}

#[tokio::test]
async fn datagrams_reach_a_function_by_af_xdp() {
    let host = Namespace::make("host").expect("a namespace");
    let outside = wire(&host);
    host.ip("link set lo up").expect("a loopback");
    host.enter().expect("entered");
    let server = Server::start_with(&[
        ("HEARTH_XDP_INTERFACE", "h0"),
        ("HEARTH_TRIGGER_ADDRESS", "0.0.0.0"),
    ]);
    let client = server.client();
    let node = client.get("/api/v1/node").await.expect(200).json();
    let interface = &node["ingress"]["interfaces"][0];
    if !interface["not_af_xdp"].is_null() {
        return skip(&format!("no AF_XDP here: {interface}"));
    }
    assert!(
        interface["af_xdp_queues"].as_u64() >= Some(1),
        "{interface}"
    );
    let settings = json!({"triggers": [{"protocol": "udp", "port": 9000}]});
    client.deploy("echo", ECHO, settings).await;
    let view = async || {
        let view = client.get("/api/v1/functions/echo/ingress").await;
        view.expect(200).json()
    };
    assert_eq!(
        view().await["ports"],
        json!([{"protocol": "udp", "port": 9000, "by": "af_xdp", "failed": null}])
    );
    let socket = outside
        .within(|| UdpSocket::bind("192.0.2.1:0"))
        .expect("a socket");
    socket.set_read_timeout(Some(PATIENCE)).expect("set");
    let own = socket.local_addr().expect("its address").port();
    let to = "192.0.2.2:9000";
    let mut last_at = 0;
    for count in 1..=20 {
        let before = jiff::Timestamp::now().as_microsecond();
        let said: Value =
            serde_json::from_str(&exchange(&socket, &vec![1; count], to)).expect("JSON");
        assert_eq!((&said["got"], &said["from"]), (&json!(count), &json!(own)));
        let at = said["at"].as_i64().expect("a time");
        last_at = at;
        let now = jiff::Timestamp::now().as_microsecond();
        // The clocks are read one after the other.
        assert!((before - 1_000..=now).contains(&at), "{before} {at} {now}");
    }
    // The time line begins when the kernel saw the datagram.
    let path = "/api/v1/functions/echo/invocations?limit=1";
    let last = client.get(path).await.expect(200).json();
    let received: jiff::Timestamp = last["items"][0]["received_at"]
        .as_str()
        .and_then(|text| text.parse().ok())
        .expect("a time");
    assert!(
        (received.as_microsecond() - last_at).abs() < 1_000,
        "{received} {last_at}"
    );
    let seen = view().await;
    assert_eq!(seen["received"]["starts"], 20, "{seen}");
    assert_eq!(seen["received"]["af_xdp"], 20, "{seen}");
    // What leaves by AF_XDP is counted as well.
    assert_eq!(seen["sent"]["packets"], 20, "{seen}");
    // In fragments, and so the reply.
    let said: Value = serde_json::from_str(&exchange(&socket, &[1; 4_000], to)).expect("JSON");
    assert_eq!(said["got"], 4_000);
    assert_eq!(exchange(&socket, b"large", to).len(), 5_000);
    // By an interface without the ingress.
    let local = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    local.set_read_timeout(Some(PATIENCE)).expect("set");
    let said = exchange(&local, b"abc", "127.0.0.1:9000");
    assert!(said.contains("\"got\": 3"), "{said}");
    let seen = view().await;
    assert_eq!(
        seen["received"]["af_xdp"], 21,
        "the large one came so, too: {seen}"
    );
    // Not to an address of the host: on its way through it, it is nobody's here.
    let before = view().await["received"]["packets"].clone();
    outside
        .ip("route add 198.51.100.7/32 via 192.0.2.2")
        .expect("a route");
    socket
        .send_to(b"through", "198.51.100.7:9000")
        .expect("sent");
    exchange(&socket, b"to the host", to);
    let after = view().await["received"]["packets"].clone();
    assert_eq!(after.as_u64(), before.as_u64().map(|before| before + 1));
}

/// Sends this many datagrams at once, and says how many were answered.
fn answered(socket: &UdpSocket, count: usize) -> usize {
    for _ in 0..count {
        socket.send_to(b"x", "192.0.2.2:9000").expect("sent");
    }
    // The first may wait for an instance.
    let mut patience = PATIENCE;
    let mut answers = 0;
    let mut buffer = [0; 1024];
    loop {
        socket.set_read_timeout(Some(patience)).expect("set");
        if answers == count || socket.recv_from(&mut buffer).is_err() {
            return answers;
        }
        answers += 1;
        patience = Duration::from_secs(1);
    }
}

#[tokio::test]
async fn limits_belong_to_versions_and_who_exceeds_them_is_shown() {
    let host = Namespace::make("host").expect("a namespace");
    let outside = wire(&host);
    host.enter().expect("entered");
    let server = Server::start_with(&[
        ("HEARTH_XDP_INTERFACE", "h0"),
        ("HEARTH_TRIGGER_ADDRESS", "0.0.0.0"),
    ]);
    let client = server.client();
    let settings = json!({
        "triggers": [{"protocol": "udp", "port": 9000}],
        "port_limits": {"per_source": {"per_second": 1, "burst": 5}},
    });
    let made = client.deploy("echo", ECHO, settings).await;
    assert_eq!(
        made["port_limits"],
        json!({"per_source": {"per_second": 1, "burst": 5}, "total": null})
    );
    let socket = outside
        .within(|| UdpSocket::bind("192.0.2.1:0"))
        .expect("a socket");
    let is_limited = |answers: usize| (5..15).contains(&answers);
    let answers = answered(&socket, 50);
    assert!(is_limited(answers), "{answers} of 50");
    let node = client.get("/api/v1/ingress").await.expect(200).json();
    let source = &node["sources"][0];
    assert_eq!(
        (&source["source"], &source["function"], &source["limited"]),
        (&json!("192.0.2.1"), &json!("echo"), &json!(true)),
        "{node}"
    );
    assert_eq!(source["admitted"], answers, "{node}");
    assert!(
        node["traffic"]["for_functions"].as_u64() >= Some(50),
        "{node}"
    );
    let view = client.get("/api/v1/functions/echo/ingress").await;
    let view = view.expect(200).json();
    assert_eq!(view["dropped"]["source_limit"], 50 - answers, "{view}");
    assert_eq!(view["limits_enforced"], true);
    assert_eq!(view["sources"][0]["source"], "192.0.2.1");
    let metrics = client.get("/metrics").await.expect(200).text();
    for line in [
        format!(
            "hearth_ingress_dropped_packets_total{{function=\"echo\",reason=\"source_limit\"}} {}",
            50 - answers
        ),
        "hearth_ingress_packets_total{function=\"echo\",direction=\"in\"} 50".to_owned(),
        format!("hearth_ingress_starts_total{{function=\"echo\"}} {answers}"),
    ] {
        assert!(metrics.contains(&line), "{line} in {metrics}");
    }
    let maps = client.get("/api/v1/node").await.expect(200).json();
    let maps = maps["ingress"]["maps"].as_array().expect("maps").clone();
    let used = |name: &str| {
        let map = maps.iter().find(|map| map["name"] == name);
        map.expect("the map")["used"].clone()
    };
    assert_eq!((used("ports"), used("buckets")), (json!(1), json!(1)));
    // The next version has none, and a roll-back has those of its version again.
    client
        .patch("/api/v1/functions/echo", &json!({"port_limits": null}))
        .await
        .expect(200);
    assert_eq!(answered(&socket, 50), 50);
    client
        .post("/api/v1/functions/echo/versions/1/activate", &json!({}))
        .await
        .expect(200);
    answered(&socket, 50);
    let answers = answered(&socket, 50);
    assert!(answers < 15, "{answers} of 50 after the roll-back");
    // All sources together.
    let total = json!({"port_limits": {"total": {"per_second": 1, "burst": 2}}});
    client
        .patch("/api/v1/functions/echo", &total)
        .await
        .expect(200);
    answered(&socket, 50);
    let view = client.get("/api/v1/functions/echo/ingress").await;
    let view = view.expect(200).json();
    assert!(
        view["dropped"]["total_limit"].as_u64() >= Some(30),
        "{view}"
    );
}

#[tokio::test]
async fn limits_that_nothing_would_enforce_are_refused() {
    let server = Server::start();
    let client = server.client();
    client.deploy("f", CODE, json!({})).await;
    let limits = json!({"port_limits": {"total": {"per_second": 1}}});
    let refused = client.patch("/api/v1/functions/f", &limits).await;
    let problem = refused.expect(422).json();
    assert_eq!(problem["field"], "port_limits");
    let rule = problem["rule"].as_str().expect("a rule");
    assert!(rule.contains("HEARTH_XDP_INTERFACE"), "{problem}");
    let wrong = json!({"port_limits": {"total": {"per_second": 0}}});
    let refused = client.patch("/api/v1/functions/f", &wrong).await;
    assert_eq!(
        refused.expect(422).json()["field"],
        "port_limits.total.per_second"
    );
    let node = client.get("/api/v1/ingress").await.expect(200).json();
    assert_eq!(node["traffic"], Value::Null);
}

#[tokio::test]
async fn lists_drop_and_exempt_sources_and_survive_restarts() {
    let host = Namespace::make("host").expect("a namespace");
    let outside = wire(&host);
    host.enter().expect("entered");
    let server = Server::start_with(&[
        ("HEARTH_XDP_INTERFACE", "h0"),
        ("HEARTH_TRIGGER_ADDRESS", "0.0.0.0"),
    ]);
    let client = server.client();
    let settings = json!({
        "triggers": [{"protocol": "udp", "port": 9000}],
        "port_limits": {"per_source": {"per_second": 1, "burst": 2}},
    });
    client.deploy("echo", ECHO, settings).await;
    let socket = outside
        .within(|| UdpSocket::bind("192.0.2.1:0"))
        .expect("a socket");
    let allow = json!({"verdict": "allow", "note": "ours"});
    let entry = client
        .put("/api/v1/ingress/lists/192.0.2.0%2F24", &allow)
        .await
        .expect(201)
        .json();
    assert_eq!(
        (
            &entry["prefix"],
            &entry["verdict"],
            &entry["note"],
            &entry["expires_at"]
        ),
        (
            &json!("192.0.2.0/24"),
            &json!("allow"),
            &json!("ours"),
            &Value::Null
        )
    );
    assert_eq!(answered(&socket, 30), 30, "exempt from the limit");
    // The longer prefix decides.
    let end = jiff::Timestamp::now() + Duration::from_secs(600);
    let deny = json!({"verdict": "deny", "expires_at": end.to_string()});
    let deny_path = "/api/v1/ingress/lists/192.0.2.1";
    client.put(deny_path, &deny).await.expect(201);
    assert_eq!(answered_none(&socket), 0);
    let server = server.restart();
    let client = server.client();
    let listed = client.get("/api/v1/ingress/lists").await.expect(200).json();
    assert_eq!(
        listed["items"].as_array().map(Vec::len),
        Some(2),
        "{listed}"
    );
    assert_eq!(answered_none(&socket), 0);
    // It ends by itself; then the shorter one holds again.
    let end = jiff::Timestamp::now() + Duration::from_secs(2);
    let deny = json!({"verdict": "deny", "expires_at": end.to_string()});
    client.put(deny_path, &deny).await.expect(200);
    eventually("the entry expires", PATIENCE, || async {
        let listed = client.get("/api/v1/ingress/lists").await.expect(200).json();
        (listed["items"].as_array().map(Vec::len) == Some(1)).then_some(())
    })
    .await;
    assert_eq!(answered(&socket, 10), 10);
    client
        .delete("/api/v1/ingress/lists/192.0.2.0%2F24")
        .await
        .expect(204);
    client
        .delete("/api/v1/ingress/lists/192.0.2.0%2F24")
        .await
        .problem(404, "not_found");
    let few = answered(&socket, 30);
    assert!(few < 10, "{few}: the limit holds again");
    let view = client.get("/api/v1/functions/echo/ingress").await;
    let view = view.expect(200).json();
    assert!(view["dropped"]["denied"].as_u64() >= Some(3), "{view}");
    for (path, body, field) in [
        ("192.0.2.1%2F24", json!({"verdict": "deny"}), "prefix"),
        ("example.com", json!({"verdict": "deny"}), "prefix"),
        ("192.0.2.1", json!({"verdict": "block"}), "verdict"),
    ] {
        let path = format!("/api/v1/ingress/lists/{path}");
        let problem = client.put(&path, &body).await.problem(422, "invalid_field");
        assert_eq!(problem["field"], field);
    }
    let audit = client.get("/api/v1/audit?action=ingress.list").await;
    let audit = audit.expect(200).json();
    let records = audit["items"].as_array().expect("records");
    assert_eq!(records.len(), 3, "{audit}");
    assert!(
        records.iter().all(|record| record["actor"].is_string()),
        "{audit}"
    );
    assert_eq!(records[0]["target"], "192.0.2.1/32");
}

/// Sends datagrams that are dropped, and says how many were answered within a moment.
fn answered_none(socket: &UdpSocket) -> usize {
    let moment = Duration::from_millis(500);
    socket.set_read_timeout(Some(moment)).expect("set");
    for _ in 0..3 {
        socket.send_to(b"x", "192.0.2.2:9000").expect("sent");
    }
    let mut buffer = [0; 1024];
    usize::from(socket.recv_from(&mut buffer).is_ok())
}
