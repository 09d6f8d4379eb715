//! Ports of chains: HTTP, byte streams and datagrams along a route; whose they are, and since which version.

use std::io::{Read as _, Write as _};

use serde_json::{Value, json};

use super::{CHAINS, SHOP, field_of};
use crate::ports::{LIMIT, datagrams, expect, free, get, is_closed, reply, stream, tcp};
use crate::support::{Browser, Client, Server, TOKEN, eventually};

const FIRST: &str = "\
def handler(event, context):
    event['seen'] = 'first'
    return event
";
const LAST: &str = "\
import base64
def handler(event, context):
    seen = event.get('seen', 'alone')
    if 'rawPath' in event:
        return {'statusCode': 200, 'body': seen + ' ' + event['rawPath']}
    if 'datagrams' in event:
        return [answer(str(len(event['datagrams'])), one) for one in event['datagrams']]
    if 'connection' not in event:
        return answer(seen, event)
    if event['type'] == 'open':
        return {'body': seen + '\\n'}
    data = base64.b64decode(event['body'])
    if data.strip() == b'quit':
        return {'body': 'bye\\n', 'close': True}
    return {'body': base64.b64encode(data.upper()).decode(), 'isBase64Encoded': True}
def answer(before, one):
    text = base64.b64decode(one['body']).decode()
    return None if text == 'silence' else {'body': before + ' ' + text}
";

/// Ports of the chain.
struct Ports {
    open: u16,
    http: u16,
    raw: u16,
    udp: u16,
    batch: u16,
}

impl Ports {
    fn triggers(&self) -> Value {
        json!([
            tcp(self.open),
            {"protocol": "tcp", "port": self.http, "route": "long"},
            {"protocol": "tcp", "port": self.raw, "mode": "raw", "route": "long"},
            {"protocol": "udp", "port": self.udp, "route": "short"},
            {"protocol": "udp", "port": self.batch, "batch": {"max": 3, "wait_ms": 1000}, "route": "long"},
        ])
    }
}

/// A server with a chain that has ports of every kind.
async fn with_ports() -> (Server, Client, Ports) {
    let server = Server::start();
    let client = server.client();
    for (name, code) in [("first", FIRST), ("last", LAST)] {
        client.deploy(name, code, json!({})).await;
    }
    let ports = Ports {
        open: free(),
        http: free(),
        raw: free(),
        udp: free(),
        batch: free(),
    };
    let body = json!({
        "name": "shop", "public": true,
        "members": {"first": {"function": "first"}, "last": {"function": "last"}},
        "routes": {"long": ["first", "last"], "short": ["last"]},
        "triggers": ports.triggers(),
    });
    // Nothing is left of a change that fails, not even what was claimed before.
    client
        .deploy("web", LAST, json!({"triggers": [tcp(ports.http)]}))
        .await;
    let refused = client
        .post(CHAINS, &body)
        .await
        .problem(422, "invalid_field");
    assert_eq!(refused["field"], "triggers[1].port");
    let detail = refused["detail"].as_str().expect("text");
    assert!(detail.contains("function \"web\" has this one"), "{detail}");
    client.get(SHOP).await.expect(404);
    client.delete("/api/v1/functions/web").await.expect(204);

    let made = client.post(CHAINS, &body).await.expect(201).json();
    let first = json!({"protocol": "tcp", "port": ports.open, "mode": "http", "route": null});
    assert_eq!(made["triggers"][0], first);
    assert_eq!(made["triggers"].as_array().map(Vec::len), Some(5));
    (server, client, ports)
}

/// What caused the chain's requests.
async fn triggers_of(server: &Server, client: &Client) -> Vec<String> {
    let browser = Browser::logged_in(server, TOKEN).await;
    let page = browser.get("/chains/shop").await.expect(200).text();
    let mut triggers = Vec::new();
    for rest in page.split("/chains/shop/requests/").skip(1) {
        let id = rest.split('"').next().unwrap_or_default();
        let record = client.invocation(id).await;
        triggers.push(record["trigger"].as_str().expect("a trigger").to_owned());
    }
    triggers
}

#[tokio::test]
async fn what_comes_to_a_chains_port_passes_along_its_route() {
    let (server, client, ports) = with_ports().await;
    assert_eq!(
        get(ports.http, "/long/a").await,
        Ok("first /long/a".to_owned())
    );
    for (path, answer) in [
        ("/long/a%20b?x", Ok("first /a%20b".to_owned())),
        ("/short", Ok("alone /".to_owned())),
        ("/", Err(404)),
        ("/nothing/a", Err(404)),
    ] {
        assert_eq!(get(ports.open, path).await, answer, "{path}");
    }

    let mut one = stream(ports.raw);
    expect(&mut one, "first\n");
    one.write_all(b"one\n").expect("sent");
    expect(&mut one, "ONE\n");
    // Larger than the pool's blocks: in pieces that fit.
    let big = "x".repeat(200_000);
    one.write_all(big.as_bytes()).expect("sent");
    expect(&mut one, &big.to_uppercase());
    one.write_all(b"quit\n").expect("sent");
    expect(&mut one, "bye\n");
    assert_eq!(one.read(&mut [0; 1]).expect("an end"), 0);

    let socket = datagrams();
    for word in ["silence", "hi"] {
        socket
            .send_to(word.as_bytes(), ("127.0.0.1", ports.udp))
            .expect("sent");
    }
    assert_eq!(reply(&socket), "alone hi");
    for word in ["a", "silence", "b"] {
        socket
            .send_to(word.as_bytes(), ("127.0.0.1", ports.batch))
            .expect("sent");
    }
    let mut answers = [reply(&socket), reply(&socket)];
    answers.sort();
    assert_eq!(answers, ["3 a", "3 b"]);
    // More than a block holds: two are an event, and the third comes with the next.
    for letter in ["c", "d", "e"] {
        let large = letter.repeat(20_000);
        socket
            .send_to(large.as_bytes(), ("127.0.0.1", ports.batch))
            .expect("sent");
    }
    let mut large = vec![0; 65_536];
    let mut counts = [0; 3].map(|_: i32| {
        let (length, _) = socket.recv_from(&mut large).expect("a reply");
        assert_eq!(length, 20_002);
        large[0]
    });
    counts.sort_unstable();
    assert_eq!(&counts, b"122");

    eventually("all kinds are in the history", LIMIT, || async {
        let triggers = triggers_of(&server, &client).await;
        let has = |kind: &str| triggers.iter().any(|trigger| trigger == kind);
        (has("tcp") && has("udp")).then_some(())
    })
    .await;
    // Without `public`, HTTP needs a token; nothing of that starts the members again.
    let sent = json!({"public": false});
    client.patch(SHOP, &sent).await.expect(200);
    assert_eq!(get(ports.open, "/short").await, Err(401));
    let authorized = Client::at(&format!("http://127.0.0.1:{}", ports.open), Some(TOKEN));
    assert_eq!(authorized.get("/short").await.expect(200).text(), "alone /");
    let live = client.get(SHOP).await.expect(200).json()["live"].clone();
    let sent = live["edges"].as_array().expect("edges").iter();
    let sent: u64 = sent.filter_map(|edge| edge["sent"].as_u64()).sum();
    assert!(sent > 10, "of the version before: {live}");
}

#[tokio::test]
async fn a_chains_ports_are_nobody_elses_and_follow_its_versions() {
    let (mut server, client, ports) = with_ports().await;
    // Neither a function nor another chain gets one.
    let wants = json!({"triggers": [tcp(ports.raw)]});
    let refused = client.patch("/api/v1/functions/first", &wants).await;
    let problem = refused.problem(422, "invalid_field");
    let detail = problem["detail"].as_str().expect("text");
    assert!(detail.contains("chain \"shop\" has this one"), "{detail}");
    let other = json!({
        "name": "other", "members": {"a": {"function": "last"}}, "routes": {"r": ["a"]},
        "triggers": [{"protocol": "udp", "port": ports.udp}],
    });
    let problem = client.post(CHAINS, &other).await;
    let problem = problem.problem(422, "invalid_field");
    assert!(
        problem["detail"]
            .as_str()
            .expect("text")
            .contains("chain \"shop\"")
    );

    // What routes and ports ask of each other.
    let routes = json!({"routes": {"long": ["first", "last"]}});
    assert_eq!(
        field_of(client.patch(SHOP, &routes).await),
        "triggers[3].route"
    );
    let nameless = json!({"triggers": [{"protocol": "udp", "port": ports.udp}]});
    assert_eq!(
        field_of(client.patch(SHOP, &nameless).await),
        "triggers[0].route"
    );
    let limits = json!({"port_limits": {"total": {"per_second": 1}}});
    assert_eq!(field_of(client.patch(SHOP, &limits).await), "port_limits");
    assert_eq!(get(ports.open, "/short").await, Ok("alone /".to_owned()));

    // Another version, and back.
    let moved = json!({
        "routes": {"only": ["last"]},
        "triggers": [tcp(ports.open), {"protocol": "udp", "port": ports.batch}],
    });
    client.patch(SHOP, &moved).await.expect(200);
    // With one route it is that of all ports.
    assert_eq!(
        get(ports.open, "/short").await,
        Ok("alone /short".to_owned())
    );
    let socket = datagrams();
    socket.connect(("127.0.0.1", ports.batch)).expect("a peer");
    socket.send(b"hi").expect("sent");
    assert_eq!(reply(&socket), "alone hi");
    eventually("the former port is closed", LIMIT, || async {
        is_closed(ports.raw).then_some(())
    })
    .await;
    let seen = client
        .get(&format!("{SHOP}/ingress"))
        .await
        .expect(200)
        .json();
    assert_eq!(seen["triggers"][1]["route"], Value::Null);
    assert_eq!(
        (
            &seen["ports"][1]["port"],
            &seen["ports"][1]["failed"],
            &seen["received"]
        ),
        (&json!(ports.batch), &Value::Null, &Value::Null)
    );
    let back = format!("{SHOP}/versions/1/activate");
    client.post(&back, &json!(null)).await.expect(200);
    assert_eq!(get(ports.http, "/a").await, Ok("first /a".to_owned()));
    expect(&mut stream(ports.raw), "first\n");

    // After the server was killed, too.
    server.kill_9();
    eventually("nothing listens without the server", LIMIT, || async {
        is_closed(ports.raw).then_some(())
    })
    .await;
    let server = server.restart();
    let client = server.client();
    assert_eq!(get(ports.open, "/long").await, Ok("first /".to_owned()));
    socket
        .send_to(b"hi", ("127.0.0.1", ports.udp))
        .expect("sent");
    client.delete(SHOP).await.expect(204);
    eventually("a deleted chain's port is closed", LIMIT, || async {
        is_closed(ports.raw).then_some(())
    })
    .await;
    client
        .patch("/api/v1/functions/first", &wants)
        .await
        .expect(200);
}
