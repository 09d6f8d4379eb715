//! MQTT: mosquitto's clients, and peers that mean harm.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;

use serde_json::{Value, json};

use super::{LIMIT, output};
use crate::ports::{free, stream};
use crate::support::{Browser, Client, Server, TOKEN, eventually};

const THINGS: &str = "\
import base64, time
def handler(event, context):
    body = base64.b64decode(event['body']).decode()
    if body == 'fail':
        raise ValueError('of nobody else')
    if body == 'slow':
        time.sleep(3)
    if body == 'silence':
        return None
    if body == 'text':
        return {'body': 'some text', 'contentType': 'text/plain'}
    return {key: event[key] for key in ('topic', 'qos', 'client', 'port', 'userProperties')} | {'route': context.function_name}
";

/// A server with a chain that has two ports: one that asks for a token, and one of a function that does not.
pub(super) async fn with_ports() -> (Server, Client, u16, u16) {
    let server = Server::start();
    let client = server.client();
    let (of_chain, of_function) = (free(), free());
    let own = json!({"public": true, "triggers": [{"protocol": "mqtt", "port": of_function}]});
    client.deploy("things", THINGS, own).await;
    client.deploy("doors", THINGS, json!({})).await;
    let body = json!({
        "name": "sensors",
        "members": {"one": {"function": "things"}, "two": {"function": "doors"}},
        "routes": {"motion": ["one"], "door": ["two"]},
        "triggers": [{"protocol": "mqtt", "port": of_chain, "topics": [
            {"filter": "house/+/door", "route": "door", "response_topic": "answers/{client}"},
            {"filter": "house/#", "route": "motion"},
        ]}],
    });
    let made = client.post("/api/v1/chains", &body).await.expect(201);
    assert_eq!(made.json()["triggers"][0]["topics"][1]["route"], "motion");
    let topics =
        json!({"triggers": [{"protocol": "mqtt", "port": of_chain, "topics": [{"filter": "a"}]}]});
    let refused = client.patch("/api/v1/chains/sensors", &topics).await;
    let problem = refused.problem(422, "invalid_field");
    assert_eq!(problem["field"], "triggers[0].topics[0].route");
    (server, client, of_chain, of_function)
}

/// What a client asks, and is answered.
pub(super) fn asked(port: u16, arguments: &[&str]) -> String {
    let port = port.to_string();
    let all = [&["-p", &port, "-W", "20"], arguments].concat();
    output("mosquitto_rr", &all)
}

/// Whether a client says that it was refused.
fn is_refused(port: u16, arguments: &[&str]) -> bool {
    let port = port.to_string();
    let status = Command::new("mosquitto_pub")
        .args(["-p", &port, "-t", "house/a", "-m", "hi"])
        .args(arguments)
        .output();
    !status.expect("mosquitto_pub").status.success()
}

#[tokio::test]
async fn mosquittos_clients_publish_and_are_answered() {
    let (server, client, of_chain, of_function) = with_ports().await;
    let login = ["-u", "anyone", "-P", TOKEN];
    for (arguments, route, topic) in [
        (
            &[
                "-V",
                "5",
                "-q",
                "1",
                "-t",
                "house/hall/door",
                "-e",
                "mine",
                "-i",
                "five",
            ][..],
            "doors",
            "house/hall/door",
        ),
        (
            &[
                "-V",
                "5",
                "-q",
                "0",
                "-t",
                "house/hall",
                "-e",
                "mine",
                "-i",
                "five",
            ],
            "things",
            "house/hall",
        ),
        (
            &[
                "-V",
                "311",
                "-q",
                "1",
                "-t",
                "house/hall/door",
                "-e",
                "answers/three",
                "-i",
                "three",
            ],
            "doors",
            "house/hall/door",
        ),
    ] {
        let said = asked(of_chain, &[&login, arguments, &["-m", "hi"]].concat());
        let said: Value = serde_json::from_str(said.trim()).expect("JSON");
        assert_eq!(
            (&said["route"], &said["topic"]),
            (&json!(route), &json!(topic))
        );
    }
    let said = asked(
        of_function,
        &[
            "-V",
            "5",
            "-t",
            "any/thing",
            "-e",
            "mine",
            "-m",
            "text",
            "-D",
            "publish",
            "user-property",
            "a",
            "b",
        ],
    );
    assert_eq!(said.trim(), "some text");
    // Failures are said to who can be told.
    let said = asked(
        of_function,
        &[
            "-V", "5", "-t", "any", "-e", "mine", "-m", "fail", "-F", "%P",
        ],
    );
    assert!(
        said.contains("function_error") && !said.contains("nobody"),
        "{said}"
    );

    for version in ["5", "311"] {
        let with = |more: &[&str]| is_refused(of_chain, &[&["-V", version], more].concat());
        assert!(!with(&login), "{version}");
        assert!(with(&[]), "{version}");
        assert!(with(&["-u", "anyone", "-P", "nonsense"]), "{version}");
        let will = [
            &login[..],
            &["--will-topic", "house/a", "--will-payload", "x"],
        ]
        .concat();
        assert!(with(&will), "{version}");
    }
    let seen = async |path: &str| client.get(path).await.expect(200).json();
    let view = seen("/api/v1/chains/sensors/ingress").await;
    let counts = &view["ports"][0]["messages"];
    assert_eq!(
        (&counts["accepted"], &counts["refused"]),
        (&json!(5), &json!(6)),
        "{view}"
    );
    let browser = Browser::logged_in(&server, TOKEN).await;
    for (page, shown) in [
        ("/chains/sensors", "MQTT messages: "),
        ("/chains/sensors/settings", "mqtt "),
        ("/functions/things/settings", "mqtt "),
    ] {
        let text = browser.get(page).await.expect(200).text();
        assert!(text.contains(shown), "{page}");
    }
    eventually("the message is in the history", LIMIT, || async {
        let path = "/api/v1/functions/things/invocations?trigger=mqtt&limit=1";
        seen(path).await["items"].get(0).cloned()
    })
    .await;
}

/// A string as MQTT has it.
fn text(text: &str) -> Vec<u8> {
    let length = u16::try_from(text.len()).expect("short");
    [&length.to_be_bytes()[..], text.as_bytes()].concat()
}

fn packet(first: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![first];
    let mut rest = body.len();
    loop {
        let more = rest > 127;
        bytes.push(u8::try_from(rest & 127).expect("seven bits") | if more { 128 } else { 0 });
        rest >>= 7;
        if !more {
            break;
        }
    }
    [bytes, body.to_vec()].concat()
}

/// An introduction of a client of this version with this keep-alive.
fn connect(version: u8, keep_alive: u8) -> Vec<u8> {
    let properties = if version == 5 { &[0][..] } else { &[] };
    let head = [&[version, 2, 0, keep_alive], properties].concat();
    packet(0x10, &[text("MQTT"), head, text("me")].concat())
}

/// A message of this quality with this number.
fn publish(version: u8, qos: u8, id: u8, topic: &str, payload: &[u8]) -> Vec<u8> {
    let id = if qos > 0 { vec![0, id] } else { vec![] };
    let properties = if version == 5 { vec![0] } else { vec![] };
    packet(
        0x30 | qos << 1,
        &[text(topic), id, properties, payload.to_vec()].concat(),
    )
}

fn took(stream: &mut TcpStream) -> Vec<u8> {
    let mut head = [0; 2];
    stream.read_exact(&mut head).expect("a packet");
    assert!(head[1] < 128, "a short packet");
    let mut rest = vec![0; head[1].into()];
    stream.read_exact(&mut rest).expect("all of it");
    [&head[..], &rest].concat()
}

/// A connection that has been taken in.
fn session(port: u16, version: u8, keep_alive: u8) -> TcpStream {
    let mut stream = stream(port);
    stream
        .write_all(&connect(version, keep_alive))
        .expect("sent");
    let connack = took(&mut stream);
    assert_eq!((connack[0], connack[3]), (0x20, 0), "{connack:02x?}");
    stream
}

/// What comes until the connection is closed.
fn rest(mut stream: TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    // It may be reset, if more was sent than read.
    let _ = stream.read_to_end(&mut bytes);
    bytes
}

#[tokio::test]
async fn clients_that_mean_harm_are_cut_off() {
    let (_server, client, of_chain, port) = with_ports().await;
    // No MQTT, another version, half an introduction, one that is too large.
    for (bytes, answer) in [
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), &[][..]),
        (vec![0xff; 100], &[]),
        (
            packet(0x10, &[text("MQTT"), vec![9, 2, 0, 0], text("me")].concat()),
            &[0x20, 2, 0, 1],
        ),
        (packet(0x10, &[0; 20_000]), &[]),
        (publish(5, 0, 0, "a", b"hi"), &[]),
    ] {
        let mut stream = stream(port);
        stream.write_all(&bytes).expect("sent");
        assert_eq!(rest(stream), answer, "{:02x?}", &bytes[..5]);
    }
    let mut half = stream(port);
    half.write_all(&connect(5, 0)[..9]).expect("sent");
    half.shutdown(std::net::Shutdown::Write).expect("shut");
    assert_eq!(rest(half), [0_u8; 0]);

    // What ends a session, and how version 5 is told.
    let large = publish(5, 0, 0, "a", &vec![0; 300 << 10]);
    let alias = packet(0x30, &[text(""), vec![3, 0x23, 0, 1]].concat());
    let mut retained = publish(5, 0, 0, "a", b"");
    retained[0] |= 1;
    for (bytes, why) in [
        (publish(5, 2, 1, "a", b"hi"), 0x9b),
        (alias, 0x94),
        (retained, 0x9a),
        (large, 0x95),
        (vec![0x30, 0xff, 0xff, 0xff, 0xff, 1], 0x81),
        (packet(0x32, &text("a")), 0x81),
        (connect(5, 0), 0x82),
    ] {
        let mut stream = session(port, 5, 0);
        // It may be cut off before it has all.
        let _ = stream.write_all(&bytes);
        let said = rest(stream);
        // A reset may come before what was said.
        let is_told = said
            .get(..3)
            .is_some_and(|said| said[0] == 0xe0 && said[2] == why);
        assert!(
            is_told || (bytes.len() > 100_000 && said.is_empty()),
            "{why:02x}: {said:02x?}"
        );
    }
    let mut three = session(port, 4, 0);
    let shared = packet(0x82, &[vec![0, 9], text("$share/x/b"), vec![0]].concat());
    three.write_all(&shared).expect("sent");
    assert_eq!(took(&mut three), [0x90, 3, 0, 9, 0x80]);
    three
        .write_all(&publish(4, 2, 1, "a", b"hi"))
        .expect("sent");
    assert_eq!(rest(three), [0_u8; 0]);

    // Silence ends it, and so does nothing else.
    let mut silent = session(port, 5, 1);
    silent.write_all(&[0xc0, 0]).expect("sent");
    assert_eq!(took(&mut silent), [0xd0, 0]);
    assert_eq!(rest(silent)[2], 0x8d);

    // In order, whatever becomes of them; on topics of nobody, too.
    let mut stream = session(port, 5, 0);
    stream
        .write_all(&packet(
            0x82,
            &[
                vec![0, 9, 0],
                text("b"),
                vec![2],
                text("$share/x/b"),
                vec![0],
            ]
            .concat(),
        ))
        .expect("sent");
    assert_eq!(took(&mut stream), [0x90, 5, 0, 9, 0, 1, 0x9e]);
    for id in 1..=40 {
        let payload: &[u8] = if id % 2 == 0 { b"fail" } else { b"silence" };
        stream
            .write_all(&publish(5, 1, id, "a", payload))
            .expect("sent");
    }
    for id in 1..=40 {
        let receipt = took(&mut stream);
        assert_eq!((receipt[0], receipt[3]), (0x40, id));
    }
    stream.write_all(&[0xe0, 0]).expect("sent");
    assert_eq!(rest(stream), [0_u8; 0]);

    // Many at once: those who say nothing make no room for each other for long, and others are served meanwhile.
    let silent: Vec<_> = (0..64).map(|_| self::stream(port)).collect();
    let mut one = session(port, 5, 0);
    one.write_all(&publish(5, 1, 1, "a", b"silence"))
        .expect("sent");
    let receipt = took(&mut one);
    assert_eq!((receipt[0], receipt[3]), (0x40, 1));
    drop(silent);

    // A session ends with its token.
    let (id, secret) = token(&client).await;
    let mut device = self::stream(of_chain);
    let head = [
        vec![5, 0xc2, 0, 0, 0],
        text("me"),
        text("anyone"),
        text(&secret),
    ];
    let login = packet(0x10, &[text("MQTT"), head.concat()].concat());
    device.write_all(&login).expect("sent");
    assert_eq!(took(&mut device)[3], 0);
    device
        .write_all(&publish(5, 1, 1, "house/a", b"hi"))
        .expect("sent");
    assert_eq!(took(&mut device)[3], 1);
    client
        .delete(&format!("/api/v1/tokens/{id}"))
        .await
        .expect(204);
    device
        .write_all(&publish(5, 1, 2, "house/a", b"hi"))
        .expect("sent");
    assert_eq!(rest(device)[2], 0x87);
}

#[tokio::test]
async fn a_server_that_stops_confirms_what_runs() {
    let (mut server, client, _, port) = with_ports().await;
    let mut running = session(port, 5, 0);
    running
        .write_all(&publish(5, 1, 1, "a", b"slow"))
        .expect("sent");
    let idle = session(port, 5, 0);
    let nameless = stream(port);
    eventually("the message runs", LIMIT, || async {
        let view = client.get("/api/v1/functions/things").await.json();
        (view["instances"]["busy"] == 1).then_some(())
    })
    .await;
    server.terminate();
    let receipt = took(&mut running);
    assert_eq!((receipt[0], receipt[3]), (0x40, 1), "{receipt:02x?}");
    for told in [running, idle] {
        assert_eq!(rest(told)[2], 0x8b);
    }
    assert_eq!(rest(nameless), [0_u8; 0]);
    assert!(server.ended(LIMIT).await.success());
}

/// A token that may invoke, and its number.
async fn token(client: &Client) -> (Value, String) {
    let body = json!({"name": "device", "rights": ["invoke"]});
    let made = client
        .post("/api/v1/tokens", &body)
        .await
        .expect(201)
        .json();
    let secret = made["token"].as_str().expect("a secret").to_owned();
    (made["id"].clone(), secret)
}
