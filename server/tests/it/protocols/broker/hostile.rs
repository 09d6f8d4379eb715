//! Brokers that mean harm, or are old: each is given up in time with its reason, and nobody else notices.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use super::{THINGS, file, is_connected, once, trigger};
use crate::support::Server;

/// A CONNACK of version 5.
const WELCOME: &[u8] = &[0x20, 3, 0, 0, 0];

/// A broker of one answer to all that comes: what it sends after the introduction, and after the subscription.
struct Peer {
    port: u16,
    connections: Arc<AtomicUsize>,
}

impl Peer {
    fn start(answers: &'static [&'static [u8]]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = connections.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                count.fetch_add(1, Ordering::Relaxed);
                std::thread::spawn(move || answer(stream, answers));
            }
        });
        Self { port, connections }
    }
}

fn answer(mut stream: TcpStream, answers: &[&[u8]]) {
    let mut bytes = [0; 4096];
    for answer in answers {
        // A packet of the client's comes in one piece here.
        if !matches!(stream.read(&mut bytes), Ok(1..)) {
            return;
        }
        let mut answer = answer.to_vec();
        if answer.starts_with(&[0x90, 4, 0, 0]) {
            // Of the subscription that came.
            answer[2..4].copy_from_slice(&bytes[2..4]);
        }
        if stream.write_all(&answer).is_err() {
            return;
        }
    }
    // It says nothing more, and stays.
    while matches!(stream.read(&mut bytes), Ok(1..)) {}
}

#[tokio::test]
async fn brokers_that_mean_harm_are_given_up() {
    const RUBBISH: &[u8] = &[b'H'; 200];
    const LARGE: &[u8] = &[0x20, 0xff, 0xff, 0xff, 0x7f, 0];
    // Of 2 GiB, by its length.
    const LARGE_MESSAGE: &[u8] = &[0x90, 4, 0, 0, 0, 1, 0x30, 0xff, 0xff, 0xff, 0x7f];
    const LENGTH: &[u8] = &[0x20, 0xff, 0xff, 0xff, 0xff, 0xff];
    const EXACT: &[u8] = &[0x90, 4, 0, 0, 0, 1, 0x34, 6, 0, 1, b'a', 0, 7, 0];
    const UNASKED: &[u8] = &[0x90, 4, 0xff, 9, 0, 1];
    const GOODBYE: &[u8] = &[0x90, 4, 0, 0, 0, 1, 0xe0, 1, 0x8e];
    let cases: [(&str, &'static [&'static [u8]], &str); 10] = [
        ("silent", &[], "did not send CONNACK in time"),
        ("half", &[&[0x20, 3, 0]], "did not send CONNACK in time"),
        ("rubbish", &[RUBBISH], "no MQTT"),
        ("large", &[LARGE], "bytes, and may have fewer"),
        ("length", &[LENGTH], "length is malformed"),
        ("deaf", &[WELCOME], "did not send SUBACK in time"),
        (
            "flood",
            &[WELCOME, LARGE_MESSAGE],
            "bytes, and may have fewer",
        ),
        ("exact", &[WELCOME, EXACT], "QoSNotSupported"),
        ("unasked", &[WELCOME, UNASKED], "ProtocolError"),
        ("goodbye", &[WELCOME, GOODBYE], "SessionTakenOver"),
    ];
    let peers: Vec<_> = cases
        .iter()
        .map(|(_, answers, _)| Peer::start(answers))
        .collect();
    let mut brokers = json!({});
    for ((name, ..), peer) in cases.iter().zip(&peers) {
        brokers[name] = json!({"url": format!("mqtt://127.0.0.1:{}", peer.port), "client_id": "t"});
    }
    let dir = tempfile::tempdir().expect("a directory");
    let path = file(dir.path(), &brokers);
    let server = Server::start_with(&[("HEARTH_MQTT_BROKERS", path.to_str().expect("text"))]);
    let client = server.client();
    for (name, ..) in cases {
        let own = json!({"triggers": trigger(name, &json!([{"filter": "a/#"}]))});
        client.deploy(name, THINGS, own).await;
    }
    for ((name, _, words), peer) in cases.iter().zip(&peers) {
        let of = format!("functions/{name}");
        let state = once(&client, &of, name, |state| {
            state["last_error"]
                .as_str()
                .is_some_and(|error| error.contains(words))
        });
        state.await;
        // It is tried again.
        crate::support::eventually("another connection", 3 * super::LIMIT, || async {
            (peer.connections.load(Ordering::Relaxed) > 1).then_some(())
        })
        .await;
    }
    let event = json!({"body": "", "topic": "", "qos": 0, "client": "", "port": 1, "broker": ""});
    client.invoke("silent", &event).await.expect(200);
}

#[tokio::test]
async fn a_broker_that_knows_only_3_1_1_is_spoken_to_in_it() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("mqtt://{}", listener.local_addr().expect("an address"));
    let (confirmed, confirmation) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for mut stream in listener.incoming().flatten() {
            let mut bytes = [0; 4096];
            let length = stream.read(&mut bytes).unwrap_or_default();
            // The version is the byte after the protocol's name.
            if length < 9 || bytes[8] != 4 {
                let _ = stream.write_all(&[0x20, 2, 0, 1]);
                continue;
            }
            let _ = stream.write_all(&[0x20, 2, 0, 0]);
            let _ = stream.read(&mut bytes);
            let id = [bytes[2], bytes[3]];
            let message = [&b"\x90\x03"[..], &id, b"\x01\x32\x07\0\x01a\0\x07hi"];
            let _ = stream.write_all(&message.concat());
            // Its answer, then its receipt.
            let mut said = Vec::new();
            while !said.ends_with(&[0x40, 2, 0, 7]) {
                match stream.read(&mut bytes) {
                    Ok(length @ 1..) => said.extend_from_slice(&bytes[..length]),
                    _ => return,
                }
            }
            let _ = confirmed.send(said);
            kept.push(stream);
        }
    });
    let dir = tempfile::tempdir().expect("a directory");
    let path = file(dir.path(), &json!({"old": {"url": url, "client_id": "t"}}));
    let server = Server::start_with(&[("HEARTH_MQTT_BROKERS", path.to_str().expect("text"))]);
    let client = server.client();
    let topics = json!([{"filter": "a", "response_topic": "b"}]);
    let own = json!({"triggers": trigger("old", &topics)});
    client.deploy("things", THINGS, own).await;
    let state = once(&client, "functions/things", "it subscribes", |state| {
        is_connected(state) && state["messages"]["accepted"] == 1
    });
    assert_eq!(state.await["version"], "3.1.1");
    let said = confirmation
        .recv_timeout(3 * super::LIMIT)
        .expect("a receipt");
    assert_eq!(said[0], 0x32, "an answer of quality 1: {said:02x?}");
}

#[tokio::test]
async fn a_wrong_file_stops_the_server_with_one_line() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = file(dir.path(), &json!({"plant": {"url": "http://example.com"}}));
    let output = crate::support::command(&dir.path().join("data"))
        .env("HEARTH_MQTT_BROKERS", &path)
        .output()
        .expect("it runs");
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said.lines().count(), 1, "{said}");
    for words in [
        path.to_str().expect("text"),
        "broker \"plant\": url must be mqtt://",
    ] {
        assert!(said.contains(words), "{said}");
    }
}
