//! Ports of functions: HTTP and byte streams over TCP, datagrams over UDP.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Browser, Client, Server, TOKEN, encoded, eventually, settings_form};

/// Longer than any answer takes.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

const HTTP: &str = "\
def handler(event, context):
    return {'statusCode': 200, 'body': context.function_name + ' ' + event['rawPath']}
";
const STREAM: &str = "\
import base64
def handler(event, context):
    kind = event['type']
    if kind == 'open':
        return {'body': 'hello\\n'}
    if kind == 'close':
        return None
    data = base64.b64decode(event['body'])
    if data.strip() == b'quit':
        return {'body': 'bye\\n', 'close': True}
    return {'body': base64.b64encode(data.upper()).decode(), 'isBase64Encoded': True}
";
const DATAGRAM: &str = "\
import base64
def handler(event, context):
    data = base64.b64decode(event['body'])
    if data == b'silence':
        return None
    if data == b'nonsense':
        return 3
    return {'body': '%s %d %d %s' % (event['source']['ip'], event['source']['port'], event['port'], data.decode())}
";
const BATCH: &str = "\
import base64
def handler(event, context):
    all = [base64.b64decode(d['body']).decode() for d in event['datagrams']]
    return [None if one == 'silence' else {'body': '%d %s' % (len(all), one)} for one in all]
";

/// A port that nobody has, and that no other test gets: below those that the kernel gives out.
pub(crate) fn free() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let is_free = |port: &u16| {
        TcpListener::bind(("127.0.0.1", *port)).is_ok()
            && UdpSocket::bind(("127.0.0.1", *port)).is_ok()
    };
    let mut ports = (0..10_000).map(|_| 20_000 + NEXT.fetch_add(1, Ordering::Relaxed) % 10_000);
    ports.find(is_free).expect("a free port")
}

pub(crate) fn tcp(port: u16) -> Value {
    json!({"protocol": "tcp", "port": port})
}

/// The body of a `GET`, or the status if it is not 200.
pub(crate) async fn get(port: u16, path: &str) -> Result<String, u16> {
    let client = Client::at(&format!("http://127.0.0.1:{port}"), None);
    let answer = client.get(path).await;
    match answer.status.as_u16() {
        200 => Ok(answer.text()),
        status => Err(status),
    }
}

pub(crate) fn is_closed(port: u16) -> bool {
    TcpStream::connect(("127.0.0.1", port)).is_err()
}

pub(crate) fn stream(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).expect("a connection");
    stream.set_read_timeout(Some(LIMIT)).expect("a timeout");
    stream
}

pub(crate) fn expect(stream: &mut TcpStream, text: &str) {
    let mut read = vec![0; text.len()];
    stream.read_exact(&mut read).expect("an answer");
    assert_eq!(String::from_utf8_lossy(&read), text);
}

pub(crate) fn datagrams() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket.set_read_timeout(Some(LIMIT)).expect("a timeout");
    socket
}

pub(crate) fn reply(socket: &UdpSocket) -> String {
    let mut bytes = [0; 2048];
    let (length, _) = socket.recv_from(&mut bytes).expect("a reply");
    String::from_utf8_lossy(&bytes[..length]).into_owned()
}

#[tokio::test]
async fn http_on_a_port_is_the_functions_alone() {
    let server = Server::start();
    let client = server.client();
    let (port, private) = (free(), free());
    let made = client
        .deploy(
            "web",
            HTTP,
            json!({"public": true, "triggers": [tcp(port)]}),
        )
        .await;
    assert_eq!(
        made["triggers"],
        json!([{"protocol": "tcp", "port": port, "mode": "http"}])
    );
    assert_eq!(get(port, "/").await, Ok("web /".to_owned()));
    assert_eq!(
        get(port, "/api/v1/functions?x").await,
        Ok("web /api/v1/functions".to_owned())
    );
    client
        .deploy("private", HTTP, json!({"triggers": [tcp(private)]}))
        .await;
    assert_eq!(get(private, "/").await, Err(401));
    let authorized = Client::at(&format!("http://127.0.0.1:{private}"), Some(TOKEN));
    assert_eq!(authorized.get("/a").await.expect(200).text(), "private /a");
    // A connection that is kept finds whoever has the port at that time.
    let moved = json!({"triggers": []});
    client
        .patch("/api/v1/functions/web", &moved)
        .await
        .expect(200);
    eventually("the port is closed", LIMIT, || async {
        is_closed(port).then_some(())
    })
    .await;
    let taken = json!({"triggers": [tcp(private), tcp(port)]});
    client
        .patch("/api/v1/functions/private", &taken)
        .await
        .expect(200);
    assert_eq!(get(port, "/").await, Err(401));
    assert_eq!(authorized.get("/b").await.expect(200).text(), "private /b");
}

#[tokio::test]
async fn a_port_that_is_taken_is_refused_with_who_has_it() {
    let server = Server::start();
    let client = server.client();
    let port = free();
    client
        .deploy(
            "first",
            HTTP,
            json!({"public": true, "triggers": [tcp(port)]}),
        )
        .await;
    let second = |triggers: Value| json!({"name": "second", "runtime": "python3", "code": {"inline": HTTP}, "triggers": triggers});
    let refused = client
        .post(
            "/api/v1/functions",
            &second(json!([tcp(free()), tcp(port)])),
        )
        .await;
    let problem = refused.problem(422, "invalid_field");
    assert_eq!(problem["field"], "triggers[1].port");
    assert!(
        problem["detail"]
            .as_str()
            .expect("text")
            .contains("function \"first\" has this one"),
        "{problem}"
    );
    client.get("/api/v1/functions/second").await.expect(404);

    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port_of_ours = listener.local_addr().expect("an address").port();
    let refused = client
        .post("/api/v1/functions", &second(json!([tcp(port_of_ours)])))
        .await;
    let problem = refused.problem(422, "invalid_field");
    let own = format!("(process {})", std::process::id());
    assert!(
        problem["detail"].as_str().expect("text").contains(&own),
        "{problem}"
    );
    // The console's own.
    let console = server.address().port();
    let refused = client
        .post("/api/v1/functions", &second(json!([tcp(console)])))
        .await;
    let problem = refused.problem(422, "invalid_field");
    let detail = problem["detail"].as_str().expect("text");
    assert!(detail.contains("hearth (process "), "{problem}");
    // A refusal claims nothing, and nothing is changed by it.
    let wrong = json!({"triggers": [tcp(port), tcp(port_of_ours)]});
    client
        .patch("/api/v1/functions/first", &wrong)
        .await
        .problem(422, "invalid_field");
    assert_eq!(get(port, "/").await, Ok("first /".to_owned()));
    drop(listener);
    client
        .post("/api/v1/functions", &second(json!([tcp(port_of_ours)])))
        .await
        .expect(201);

    for reserved in [80, 1023] {
        let wrong = json!({"triggers": [tcp(reserved)]});
        let refused = client.patch("/api/v1/functions/first", &wrong).await;
        let problem = refused.problem(422, "invalid_field");
        assert!(
            problem["detail"]
                .as_str()
                .expect("text")
                .contains("HEARTH_TRIGGER_PORTS"),
            "{problem}"
        );
    }
    // TCP and UDP have ports of their own.
    let udp = json!({"triggers": [{"protocol": "udp", "port": port}]});
    client
        .patch("/api/v1/functions/second", &udp)
        .await
        .expect(200);
}

#[tokio::test]
async fn versions_have_their_ports_and_roll_back_with_them() {
    let server = Server::start();
    let client = server.client();
    let (one, two) = (free(), free());
    let path = "/api/v1/functions/f";
    client
        .deploy("f", HTTP, json!({"public": true, "triggers": [tcp(one)]}))
        .await;
    client
        .patch(path, &json!({"triggers": [tcp(two)]}))
        .await
        .expect(200);
    assert_eq!(get(two, "/").await, Ok("f /".to_owned()));
    eventually("the former port is closed", LIMIT, || async {
        is_closed(one).then_some(())
    })
    .await;
    client
        .post(&format!("{path}/versions/1/activate"), &json!({}))
        .await
        .expect(200);
    assert_eq!(get(one, "/").await, Ok("f /".to_owned()));
    // What another one has taken meanwhile cannot be gone back to.
    client
        .deploy("g", HTTP, json!({"public": true, "triggers": [tcp(two)]}))
        .await;
    let refused = client
        .post(&format!("{path}/versions/2/activate"), &json!({}))
        .await;
    refused.problem(422, "invalid_field");
    assert_eq!(get(one, "/").await, Ok("f /".to_owned()));
    client.delete("/api/v1/functions/g").await.expect(204);
    eventually("a deleted function's port is closed", LIMIT, || async {
        is_closed(two).then_some(())
    })
    .await;
    client
        .post(&format!("{path}/versions/2/activate"), &json!({}))
        .await
        .expect(200);
    assert_eq!(get(two, "/").await, Ok("f /".to_owned()));
}

#[tokio::test]
async fn ports_outlive_the_server() {
    let mut server = Server::start();
    let client = server.client();
    let (stays, lost) = (free(), free());
    client
        .deploy(
            "f",
            HTTP,
            json!({"public": true, "triggers": [tcp(stays), tcp(lost)]}),
        )
        .await;
    server.kill_9();
    // Its last thread ends a moment after its first.
    eventually("nothing listens without the server", LIMIT, || async {
        is_closed(stays).then_some(())
    })
    .await;
    let thief = TcpListener::bind(("127.0.0.1", lost)).expect("a free port");
    let server = server.restart();
    assert_eq!(get(stays, "/").await, Ok("f /".to_owned()));
    drop(thief);
    eventually("the other port is open again", LIMIT, || async {
        get_or_refused(lost).await
    })
    .await;
    drop(server);
}

async fn get_or_refused(port: u16) -> Option<()> {
    if is_closed(port) {
        return None;
    }
    get(port, "/").await.ok().map(drop)
}

#[tokio::test]
async fn a_byte_stream_is_events_in_order() {
    let server = Server::start();
    let client = server.client();
    let port = free();
    let raw = json!({"triggers": [{"protocol": "tcp", "port": port, "mode": "raw"}]});
    client.deploy("raw", STREAM, raw).await;
    let mut one = stream(port);
    expect(&mut one, "hello\n");
    let mut two = stream(port);
    expect(&mut two, "hello\n");
    for word in ["one\n", "two\n"] {
        one.write_all(word.as_bytes()).expect("sent");
        expect(&mut one, &word.to_uppercase());
    }
    two.write_all(b"quit\n").expect("sent");
    expect(&mut two, "bye\n");
    assert_eq!(two.read(&mut [0; 1]).expect("an end"), 0);
    let big = "x".repeat(200_000);
    one.write_all(big.as_bytes()).expect("sent");
    expect(&mut one, &big.to_uppercase());
    drop(one);
    // A close is an event, too, and all of them are in the history.
    eventually("the close is in the history", LIMIT, || async {
        let history = client.get("/api/v1/functions/raw/invocations").await.json();
        let items = history["items"].as_array()?.clone();
        (items.len() >= 9 && items.iter().all(|item| item["trigger"] == "tcp")).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_datagram_is_answered_by_the_port_it_came_to() {
    let server = Server::start();
    let client = server.client();
    let port = free();
    client
        .deploy(
            "udp",
            DATAGRAM,
            json!({"triggers": [{"protocol": "udp", "port": port}]}),
        )
        .await;
    let socket = datagrams();
    let own = socket.local_addr().expect("an address").port();
    socket.connect(("127.0.0.1", port)).expect("a peer");
    for word in ["silence", "nonsense", "hi", "again"] {
        socket.send(word.as_bytes()).expect("sent");
    }
    let mut answers = [reply(&socket), reply(&socket)];
    answers.sort();
    assert_eq!(
        answers,
        [
            format!("127.0.0.1 {own} {port} again"),
            format!("127.0.0.1 {own} {port} hi")
        ]
    );
    // A client that is gone when the answer comes harms nobody.
    for _ in 0..5 {
        let gone = datagrams();
        gone.send_to(b"gone", ("127.0.0.1", port)).expect("sent");
    }
    socket.send(b"still there").expect("sent");
    assert!(reply(&socket).ends_with("still there"));
    let history = client.get("/api/v1/functions/udp/invocations").await.json();
    assert_eq!(history["items"][0]["trigger"], "udp");
}

#[tokio::test]
async fn datagrams_that_come_together_are_one_invocation() {
    let server = Server::start();
    let client = server.client();
    let port = free();
    let batch = json!({"triggers": [{"protocol": "udp", "port": port, "batch": {"max": 3, "wait_ms": 1000}}]});
    client.deploy("batch", BATCH, batch).await;
    let socket = datagrams();
    for word in ["a", "silence", "b"] {
        socket
            .send_to(word.as_bytes(), ("127.0.0.1", port))
            .expect("sent");
    }
    // All three: none but the third could have ended the wait so early, and it is the batch's last.
    let mut answers = [reply(&socket), reply(&socket)];
    answers.sort();
    assert_eq!(answers, ["3 a", "3 b"]);
    socket.send_to(b"alone", ("127.0.0.1", port)).expect("sent");
    assert_eq!(reply(&socket), "1 alone");
}

#[tokio::test]
async fn the_form_of_the_settings_has_ports() {
    let server = Server::start();
    let client = server.client();
    client.deploy("f", HTTP, json!({})).await;
    let browser = Browser::logged_in(&server, TOKEN).await;
    let (one, two) = (free(), free());
    let submit = async |text: &str| {
        let fields = settings_form(&[("csrf", browser.csrf()), ("triggers", text)]);
        let post = browser.post("/functions/f/settings");
        browser.send(encoded(post, &fields)).await
    };
    let said = submit("tcp 9000 fast").await.expect(422).text();
    assert!(said.contains("a port in each line"), "{said}");
    let text = format!("tcp {one}\r\n\r\nudp {two} batch 64 wait 2");
    submit(&text).await.expect(303);
    let now = client.get("/api/v1/functions/f").await.json();
    assert_eq!(
        now["triggers"],
        json!([
            {"protocol": "tcp", "port": one, "mode": "http"},
            {"protocol": "udp", "port": two, "batch": {"max": 64, "wait_ms": 2}},
        ])
    );
}
