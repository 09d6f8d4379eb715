//! CoAP: libcoap's client, and peers that mean harm.

use std::net::UdpSocket;
use std::time::Duration;

use serde_json::{Value, json};

use super::{LIMIT, output};
use crate::ports::{datagrams, free};
use crate::support::{Browser, Client, Server, TOKEN, eventually};

const THINGS: &str = "\
import base64, time
calls = 0
def handler(event, context):
    global calls
    calls += 1
    body = base64.b64decode(event['body'])
    match event['path']:
        case '/count':
            return {'body': str(calls)}
        case '/slow':
            time.sleep(1.3)
            return {'body': 'late'}
        case '/size':
            return {'body': 'x' * int(event['query'])}
        case '/upper':
            return {'code': '2.01', 'contentFormat': 0, 'body': body.decode().upper()}
        case '/fail':
            raise ValueError('of nobody else')
        case '/wrong':
            return {'code': '9.99'}
    return {key: event[key] for key in ('method', 'path', 'query', 'contentFormat', 'confirmable', 'port')}
";

/// A server with a chain, and a function, that have ports.
async fn with_ports() -> (Server, Client, u16, u16) {
    let server = Server::start();
    let client = server.client();
    let (of_chain, of_function) = (free(), free());
    let own = json!({"triggers": [{"protocol": "coap", "port": of_function}]});
    client.deploy("things", THINGS, own).await;
    let body = json!({
        "name": "sensors",
        "members": {"one": {"function": "things"}},
        "routes": {"motion": ["one"], "door": ["one"]},
        "triggers": [{"protocol": "coap", "port": of_chain}],
    });
    let made = client.post("/api/v1/chains", &body).await;
    let made = made.expect(201).json();
    let trigger = json!({"protocol": "coap", "port": of_chain, "route": null});
    assert_eq!(made["triggers"], json!([trigger]));
    (server, client, of_chain, of_function)
}

/// What libcoap's client prints.
fn coap(port: u16, path: &str, arguments: &[&str]) -> String {
    let url = format!("coap://127.0.0.1:{port}{path}");
    let all = [&["-B", "20"], arguments, &[&url]].concat();
    output("coap-client-notls", &all)
}

#[tokio::test]
async fn libcoaps_client_calls_chains_and_functions() {
    let (server, client, of_chain, of_function) = with_ports().await;
    let links = coap(of_chain, "/.well-known/core", &["-m", "get"]);
    assert!(links.contains("</door>,</motion>"), "{links}");
    let links = coap(of_function, "/.well-known/core", &["-m", "get"]);
    assert!(links.contains("</>"), "{links}");

    let said = coap(
        of_chain,
        "/motion/a%20b?x=1",
        &["-m", "put", "-t", "50", "-e", "{}"],
    );
    let said: Value = serde_json::from_str(said.trim()).expect("JSON");
    let wanted = json!({"method": "PUT", "path": "/a%20b", "query": "x=1", "contentFormat": 50, "confirmable": true, "port": of_chain});
    assert_eq!(said, wanted);
    let said = coap(of_function, "/motion", &["-N", "-m", "delete"]);
    assert!(
        said.contains("\"path\":\"/motion\"") && said.contains("\"confirmable\":false"),
        "{said}"
    );

    // In blocks, both ways.
    let long = "words and ".repeat(1_000);
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), &long).expect("written");
    let path = file.path().to_str().expect("text");
    for block in ["64", "1024"] {
        let said = coap(
            of_chain,
            "/door/upper",
            &["-m", "post", "-b", block, "-f", path],
        );
        assert_eq!(said.trim(), long.to_uppercase().trim(), "{block}");
    }
    let said = coap(of_chain, "/door/size?5000", &["-m", "get"]);
    assert_eq!(said.trim().len(), 5_000);

    // Later than the receipt.
    let said = coap(of_chain, "/door/slow", &["-m", "get"]);
    assert!(said.contains("late"), "{said}");

    // Larger than a block of the chain's pool has room for.
    std::fs::write(file.path(), "x".repeat(60_000)).expect("written");
    for (path, arguments, wanted) in [
        ("/nothing", &["-m", "get"][..], "4.04"),
        ("/door/fail", &["-m", "get"], "5.02"),
        ("/door/wrong", &["-m", "get"], "5.02"),
        ("/door/upper", &["-m", "post", "-f", path], "4.13"),
        ("/door", &["-m", "get", "-O", "1,x"], "4.02"),
        ("/door", &["-m", "get", "-A", "60"], "4.06"),
    ] {
        let said = coap(of_chain, path, arguments);
        assert!(said.contains(wanted), "{path}: {said}");
        assert!(!said.contains("nobody"), "{said}");
    }

    let seen = async |path: &str| client.get(path).await.expect(200).json();
    let view = seen("/api/v1/chains/sensors/ingress").await;
    let counts = &view["ports"][0]["messages"];
    assert!(counts["accepted"].as_u64() >= Some(7), "{view}");
    let browser = Browser::logged_in(&server, TOKEN).await;
    for (page, shown) in [
        ("/chains/sensors", "CoAP requests: "),
        ("/chains/sensors/settings", "coap "),
        ("/functions/things/settings", "coap "),
    ] {
        let text = browser.get(page).await.expect(200).text();
        assert!(text.contains(shown), "{page}");
    }
    let record = eventually("the call is in the history", LIMIT, || async {
        let path = "/api/v1/functions/things/invocations?trigger=coap&limit=1";
        seen(path).await["items"].get(0).cloned()
    });
    assert_eq!(record.await["trigger"], "coap");
}

/// A message without token and options but a path.
fn message(kind: u8, code: u8, id: u16, path: &[&str]) -> Vec<u8> {
    let [high, low] = id.to_be_bytes();
    let mut bytes = vec![0x40 | kind << 4, code, high, low];
    for (segment, delta) in path.iter().zip([11_u8, 0, 0]) {
        bytes.push(delta << 4 | u8::try_from(segment.len()).expect("short"));
        bytes.extend(segment.as_bytes());
    }
    bytes
}

fn answer(socket: &UdpSocket) -> Vec<u8> {
    let mut bytes = [0; 2048];
    let length = socket.recv(&mut bytes).expect("an answer");
    bytes[..length].to_vec()
}

#[tokio::test]
async fn peers_that_mean_harm_get_little() {
    let (_server, client, port, _) = with_ports().await;
    let socket = datagrams();
    socket.connect(("127.0.0.1", port)).expect("a peer");
    let send = |bytes: &[u8]| socket.send(bytes).expect("sent");

    // Half messages, none at all, and pings.
    for silent in [
        &[][..],
        &[0x40],
        &[0x40, 1, 0],
        &[0xff; 9],
        &message(1, 0, 1, &[]),
    ] {
        send(silent);
    }
    send(&message(0, 0, 7, &[]));
    assert_eq!(answer(&socket), [0x70, 0, 0, 7]);
    send(&[0x4f, 1, 0, 8]);
    assert_eq!(answer(&socket), [0x70, 0, 0, 8]);
    send(&[&[0x40, 2, 0, 9][..], &[0; 60_000]].concat());
    assert_eq!(answer(&socket)[..4], [0x60, 0x8d, 0, 9]);

    // Again and again: it runs once.
    for _ in 0..3 {
        send(&message(0, 1, 10, &["door", "count"]));
    }
    let first = answer(&socket);
    assert_eq!(first[..5], [0x60, 0x45, 0, 10, 0xff]);
    send(&message(0, 1, 10, &["door", "count"]));
    assert_eq!(answer(&socket), first);
    send(&message(0, 1, 11, &["door", "count"]));
    // Those that came after the first one was answered have been answered with the same.
    let second = loop {
        let next = answer(&socket);
        if next != first {
            break next;
        }
    };
    let number = |answer: &[u8]| -> u32 {
        let text = String::from_utf8_lossy(&answer[5..]).into_owned();
        text.parse().expect("a number")
    };
    assert_eq!(number(&second), number(&first) + 1);

    // A receipt first; then the answer until it is confirmed, which nobody else can do.
    send(&message(0, 1, 12, &["door", "slow"]));
    assert_eq!(answer(&socket), [0x60, 0, 0, 12]);
    let late = answer(&socket);
    assert_eq!(
        (late[0], late[1], &late[late.len() - 4..]),
        (0x40, 0x45, &b"late"[..])
    );
    send(&message(
        2,
        0,
        u16::from_be_bytes([late[2], late[3]]) ^ 1,
        &[],
    ));
    assert_eq!(answer(&socket), late, "repeated");
    send(&message(2, 0, u16::from_be_bytes([late[2], late[3]]), &[]));
    send(&message(0, 1, 12, &["door", "slow"]));
    assert_eq!(
        answer(&socket),
        [0x60, 0, 0, 12],
        "a duplicate is confirmed again"
    );

    // Blocks that do not fit each other, or never end.
    let block = |id: u16, number: u8, payload: usize| {
        let mut bytes = message(0, 2, id, &["door", "upper"]);
        bytes.extend([0xd1, 27 - 11 - 13, number << 4 | 8, 0xff]);
        bytes.extend(vec![b'x'; payload]);
        bytes
    };
    for (id, number, payload, code) in [
        (20, 3, 16, 0x88),
        (21, 0, 9, 0x80),
        (22, 0, 16, 0x5f),
        (23, 1, 16, 0x5f),
        (24, 1, 16, 0x88),
    ] {
        send(&block(id, number, payload));
        let said = answer(&socket);
        assert_eq!((said[1], said[3]), (code, id as u8), "{id}");
    }

    // A block of an answer that nobody keeps: of a GET it is asked for again, of others it is lost.
    let later = |id: u16, code: u8| {
        let path = message(0, code, id, &["door", "size"]);
        [&path[..], &[0xc1, 3 << 4 | 2]].concat()
    };
    send(&later(25, 2));
    assert_eq!(answer(&socket)[..4], [0x60, 0x88, 0, 25]);
    // Without a length in its query, this one fails: whole, whatever piece was asked for.
    send(&later(26, 1));
    assert_eq!(answer(&socket)[..4], [0x60, 0xa2, 0, 26]);

    // Someone who asks for much in another's name: what is sent is bounded by what came, and a little.
    let victim = datagrams();
    victim.connect(("127.0.0.1", port)).expect("a peer");
    let mut asked = 0;
    for id in 0..200 {
        let mut large = message(1, 1, 1000 + id, &["door", "size"]);
        large.extend(b"\x441000");
        asked += victim.send(&large).expect("sent");
        std::thread::sleep(Duration::from_millis(1));
    }
    victim
        .set_read_timeout(Some(Duration::from_secs(2)))
        .expect("a timeout");
    let mut got = 0;
    let mut bytes = [0; 2048];
    while let Ok(length) = victim.recv(&mut bytes) {
        got += length;
    }
    let second = 16 << 10;
    assert!(
        got <= 3 * asked + (64 << 10) + 10 * second,
        "{got} of {asked}"
    );
    assert!(got < 200 * 1000, "{got}");

    // Whoever comes next is served.
    send(&message(0, 1, 30, &["door"]));
    let said = answer(&socket);
    assert_eq!(said[1], 0x45);
    let view = client.get("/api/v1/chains/sensors/ingress").await;
    let counts = &view.expect(200).json()["ports"][0]["messages"];
    assert!(counts["duplicates"].as_u64() >= Some(3), "{counts}");
    assert!(counts["refused"].as_u64() >= Some(6), "{counts}");
}
