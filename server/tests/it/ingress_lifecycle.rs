//! Ports of functions while things come and go: versions, functions, programs of others, other servers. Each test has network
//! namespaces of its own.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use hearth_ebpf::{Floor, Mode, interfaces};
use hearth_testkit::namespaces::Namespace;
use serde_json::{Value, json};

use crate::support::{Client, Server, eventually, skip};

/// How long an answer may take before a test fails.
const PATIENCE: Duration = Duration::from_secs(20);

/// Says of HTTP, and of a datagram, who answers.
const CODE: &str = r#"
def handler(event, context):
    said = {"body": f"{context.function_name} {context.function_version}"}
    return {"statusCode": 200, **said} if "rawPath" in event else said
"#;

/// A client's namespace beside the host's. The host is `192.0.2.2` there by `h0`, or the same in another network by another
/// interface.
fn wire(host: &Namespace, interface: &str, network: &str) -> Namespace {
    let client = Namespace::make("client").expect("a namespace");
    let made = || -> io::Result<()> {
        let name = client.name();
        host.ip(&format!(
            "link add {interface} type veth peer name c0 netns {name}"
        ))?;
        for (namespace, interface, address) in [(host, interface, 2), (&client, "c0", 1)] {
            namespace.ip(&format!("addr add {network}.{address}/24 dev {interface}"))?;
            namespace.ip(&format!("link set {interface} up"))?;
        }
        Ok(())
    };
    made().expect("a pair of interfaces");
    client
}

/// Settings of a server with this interface.
fn at(interface: &str) -> [(&str, &str); 2] {
    [
        ("HEARTH_XDP_INTERFACE", interface),
        ("HEARTH_TRIGGER_ADDRESS", "0.0.0.0"),
    ]
}

async fn deploy(client: &Client, name: &str, tcp: u16, udp: u16) {
    let triggers = json!([{"protocol": "tcp", "port": tcp}, {"protocol": "udp", "port": udp}]);
    let settings = json!({"triggers": triggers, "public": true});
    client.deploy(name, CODE, settings).await;
}

/// Who answers a request over a connection of its own, in the calling thread's namespace.
fn by_tcp(to: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(to)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(b"GET / HTTP/1.1\r\nhost: any.example\r\nconnection: close\r\n\r\n")?;
    let mut all = String::new();
    stream.read_to_string(&mut all)?;
    let body = all.strip_prefix("HTTP/1.1 200").and_then(body_of);
    body.map(str::to_owned)
        .ok_or_else(|| io::Error::other(format!("{to}: {all:?}")))
}

fn body_of(answer: &str) -> Option<&str> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    if !head.to_ascii_lowercase().contains("transfer-encoding") {
        return Some(body);
    }
    body.split("\r\n").nth(1)
}

/// Who answers a datagram, in the calling thread's namespace.
fn by_udp(to: &str) -> io::Result<String> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.connect(to)?;
    socket.send(b"who")?;
    let mut answer = [0; 256];
    let length = socket.recv(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer[..length]).into_owned())
}

/// Asks again and again, one after the other, until it is stopped.
struct Asking {
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicU64>,
    thread: JoinHandle<Result<(), String>>,
}

impl Asking {
    /// In a client's namespace: every answer has to come from this function.
    fn start(
        client: &Namespace,
        ask: fn(&str) -> io::Result<String>,
        to: &'static str,
        function: &'static str,
    ) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let answered = Arc::new(AtomicU64::new(0));
        let (stopped, count) = (stop.clone(), answered.clone());
        let path = client.path();
        let thread = std::thread::spawn(move || {
            hearth_testkit::namespaces::enter(&path).expect("entered");
            while !stopped.load(Ordering::Relaxed) {
                let said = ask(to).map_err(|error| format!("{function} at {to}: {error}"))?;
                if !said.starts_with(&format!("{function} ")) {
                    return Err(format!("{function} at {to}: {said:?} answered"));
                }
                count.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        });
        Self {
            stop,
            answered,
            thread,
        }
    }

    /// Waits for more answers: what was changed meets traffic before it is changed again.
    async fn goes_on(&self) {
        let before = self.answered.load(Ordering::Relaxed);
        eventually("more answers", PATIENCE, || async {
            let has_ended = self.thread.is_finished();
            let more = self.answered.load(Ordering::Relaxed) >= before + 3;
            (has_ended || more).then_some(())
        })
        .await;
    }

    /// All were answered, or why not.
    fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        let asked = self.thread.join().expect("no panic");
        asked.expect("every one was answered");
    }
}

async fn ingress_of(client: &Client, function: &str) -> Value {
    let path = format!("/api/v1/functions/{function}/ingress");
    client.get(&path).await.expect(200).json()
}

/// Why this server cannot do what these tests are about.
async fn lacking(client: &Client) -> Option<String> {
    let node = client.get("/api/v1/node").await.expect(200).json();
    let reasons = [
        &node["ingress"]["steering_missing"],
        &node["ingress"]["interfaces"][0]["not_af_xdp"],
    ];
    let reason = reasons.into_iter().find(|reason| !reason.is_null())?;
    Some(reason.to_string())
}

#[tokio::test]
async fn traffic_goes_on_while_versions_and_functions_come_and_go() {
    let host = Namespace::make("host").expect("a namespace");
    let outside = wire(&host, "h0", "192.0.2");
    host.enter().expect("entered");
    let server = Server::start_with(&at("h0"));
    let client = server.client();
    if let Some(reason) = lacking(&client).await {
        return skip(&reason);
    }
    deploy(&client, "steady", 9000, 9001).await;
    deploy(&client, "changing", 9010, 9011).await;
    let traffic = [
        Asking::start(&outside, by_tcp, "192.0.2.2:9000", "steady"),
        Asking::start(&outside, by_udp, "192.0.2.2:9001", "steady"),
        Asking::start(&outside, by_tcp, "192.0.2.2:9010", "changing"),
    ];
    let met = async || {
        for asking in &traffic {
            asking.goes_on().await;
        }
    };
    met().await;
    for turn in 0..3 {
        let code = json!({"code": {"inline": format!("# {turn}\n{CODE}")}});
        client
            .put("/api/v1/functions/changing/code", &code)
            .await
            .expect(200);
        met().await;
        let newest = outside.within(|| by_tcp("192.0.2.2:9010"));
        assert_ne!(newest.expect("an answer"), "changing 1");
        client
            .post("/api/v1/functions/changing/versions/1/activate", &json!({}))
            .await
            .expect(200);
        for (ask, to) in [
            (by_tcp as fn(&str) -> io::Result<String>, "192.0.2.2:9010"),
            (by_udp, "192.0.2.2:9011"),
        ] {
            let back = outside.within(|| ask(to)).expect("an answer");
            assert_eq!(back, "changing 1");
        }
        met().await;
        deploy(&client, "passing", 9020, 9021).await;
        for (ask, to) in [
            (by_tcp as fn(&str) -> io::Result<String>, "192.0.2.2:9020"),
            (by_udp, "192.0.2.2:9021"),
        ] {
            let said = outside.within(|| ask(to)).expect("an answer");
            assert_eq!(said, "passing 1");
        }
        client.delete("/api/v1/functions/passing").await.expect(204);
        let refused = outside.within(|| by_tcp("192.0.2.2:9020"));
        let refused = refused.expect_err("nobody has the port");
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        met().await;
    }
    for asking in traffic {
        asking.end();
    }
    let view = ingress_of(&client, "steady").await;
    let dropped = view["dropped"].as_object().expect("reasons");
    assert!(dropped.values().all(|count| count == 0), "{view}");
}

/// Ids of the XDP programs at an interface of the calling thread's namespace.
fn programs(interface: &str) -> Vec<u32> {
    let all = interfaces::list().expect("interfaces");
    let one = all.into_iter().find(|one| one.name == interface);
    one.expect("the interface").xdp
}

#[tokio::test]
async fn a_foreign_program_is_named_and_stays() {
    let host = Namespace::make("host").expect("a namespace");
    let [first, second] =
        [("h0", "192.0.2"), ("h1", "198.51.100")].map(|(name, network)| wire(&host, name, network));
    host.enter().expect("entered");
    let foreign = match Floor::load() {
        Ok(foreign) => foreign,
        Err(error) => return skip(&format!("no XDP here: {error}")),
    };
    let _link = foreign.attach("h0", Mode::Native).expect("attached");
    let there = programs("h0");
    assert_eq!(there.len(), 1);
    let directory = tempfile::tempdir().expect("a directory");
    for wanted in ["h0", "h1,h0"] {
        let output = crate::support::command(&directory.path().join("data"))
            .envs(at(wanted))
            .output()
            .expect("started");
        let said = String::from_utf8_lossy(&output.stderr);
        let named = format!("h0 already has the XDP program nothing (id {})", there[0]);
        assert!(!output.status.success() && said.contains(&named), "{said}");
        assert_eq!(programs("h0"), there);
        assert_eq!(programs("h1"), [0; 0], "nothing stays of what was begun");
    }
    // At an interface that is free it starts, and serves by both.
    let server = Server::start_with(&at("h1"));
    let client = server.client();
    if let Some(reason) = lacking(&client).await {
        return skip(&reason);
    }
    deploy(&client, "f", 9000, 9001).await;
    let ask_all = || {
        for (from, host) in [(&first, "192.0.2.2"), (&second, "198.51.100.2")] {
            let by = from.within(|| by_tcp(&format!("{host}:9000")));
            assert_eq!(by.expect("an answer"), "f 1");
            let by = from.within(|| by_udp(&format!("{host}:9001")));
            assert_eq!(by.expect("an answer"), "f 1");
        }
    };
    ask_all();
    assert_eq!(programs("h0"), there);
    let view = ingress_of(&client, "f").await;
    assert_eq!(view["received"]["starts"], 2, "of h1 alone: {view}");
    // Nor does another get the server's place.
    let ours = programs("h1");
    assert_eq!(ours.len(), 1);
    foreign
        .attach("h1", Mode::Native)
        .expect_err("the place is taken");
    assert_eq!(programs("h1"), ours);
    ask_all();
}

/// Sends bytes over one connection and gets them back, until it is stopped.
fn other_service(host: &Namespace, outside: &Namespace) -> Asking {
    let listener = host.within(|| TcpListener::bind("192.0.2.2:8000"));
    let listener = listener.expect("bound");
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut byte = [0];
        while stream.read_exact(&mut byte).is_ok() {
            stream.write_all(&byte).expect("written");
        }
    });
    let stream = outside.within(|| TcpStream::connect("192.0.2.2:8000"));
    let mut stream = stream.expect("connected");
    stream.set_read_timeout(Some(PATIENCE)).expect("set");
    let stop = Arc::new(AtomicBool::new(false));
    let answered = Arc::new(AtomicU64::new(0));
    let (stopped, count) = (stop.clone(), answered.clone());
    let thread = std::thread::spawn(move || {
        while !stopped.load(Ordering::Relaxed) {
            let mut exchange = || {
                stream.write_all(&[7])?;
                stream.read_exact(&mut [0])
            };
            exchange().map_err(|error: io::Error| format!("the other service: {error}"))?;
            count.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    });
    Asking {
        stop,
        answered,
        thread,
    }
}

#[tokio::test]
async fn two_servers_share_a_host_and_one_outlives_the_other() {
    let host = Namespace::make("host").expect("a namespace");
    let [first, second] =
        [("h0", "192.0.2"), ("h1", "198.51.100")].map(|(name, network)| wire(&host, name, network));
    host.enter().expect("entered");
    let one = Server::start_with(&at("h0"));
    if let Some(reason) = lacking(&one.client()).await {
        return skip(&reason);
    }
    let two = Server::start_with(&at("h1"));
    deploy(&one.client(), "one", 9000, 9001).await;
    deploy(&two.client(), "two", 9010, 9011).await;
    // Each serves its ports by both interfaces, and counts at its own.
    for (from, host) in [(&first, "192.0.2.2"), (&second, "198.51.100.2")] {
        for (tcp, udp, function) in [(9000, 9001, "one 1"), (9010, 9011, "two 1")] {
            let by = from.within(|| by_tcp(&format!("{host}:{tcp}")));
            assert_eq!(by.expect("an answer"), function);
            let by = from.within(|| by_udp(&format!("{host}:{udp}")));
            assert_eq!(by.expect("an answer"), function);
        }
    }
    for (server, function) in [(&one, "one"), (&two, "two")] {
        let view = ingress_of(&server.client(), function).await;
        assert_eq!(view["received"]["starts"], 2, "{view}");
        assert_eq!(view["received"]["af_xdp"], 1, "{view}");
    }
    let traffic = [
        Asking::start(&second, by_tcp, "198.51.100.2:9010", "two"),
        Asking::start(&second, by_udp, "198.51.100.2:9011", "two"),
        Asking::start(&first, by_tcp, "192.0.2.2:9010", "two"),
        other_service(&host, &first),
    ];
    let met = async || {
        for asking in &traffic {
            asking.goes_on().await;
        }
    };
    met().await;
    // SIGKILL, and again from its data.
    let one = one.restart();
    let by = first.within(|| by_tcp("192.0.2.2:9000"));
    assert_eq!(by.expect("an answer"), "one 1");
    met().await;
    drop(one);
    eventually("its programs are gone", PATIENCE, || async {
        programs("h0").is_empty().then_some(())
    })
    .await;
    met().await;
    assert_eq!(programs("h1").len(), 1);
    for asking in traffic {
        asking.end();
    }
}

/// Runs what its arguments name without the right to load programs, as the default profile of a container does: `bpf` fails with
/// EPERM for `BPF_PROG_LOAD`, on x86-64 or AArch64.
const WITHOUT_LOADING: &str = r#"
import ctypes, os, platform, struct, sys
NUMBER = {"x86_64": 321, "aarch64": 280}[platform.machine()]
PROG_LOAD, EPERM = 5, 1
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, REFUSE = 0x7fff0000, 0x00050000 | EPERM
program = b"".join(struct.pack("HBBI", *one) for one in [
    (LOAD, 0, 0, 0), (EQUAL, 0, 3, NUMBER),
    (LOAD, 0, 0, 16), (EQUAL, 0, 1, PROG_LOAD), (RETURN, 0, 0, REFUSE),
    (RETURN, 0, 0, ALLOW)])
buffer = ctypes.create_string_buffer(program, len(program))
filter = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
libc = ctypes.CDLL(None, use_errno=True)
NO_NEW_PRIVS, SECCOMP, FILTER = 38, 22, 2
for arguments in [(NO_NEW_PRIVS, 1, 0, 0, 0), (SECCOMP, FILTER, filter, 0, 0)]:
    if libc.prctl(*arguments) != 0:
        sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
os.execv(sys.argv[1], sys.argv[1:])
"#;

#[tokio::test]
async fn where_programs_cannot_be_loaded_ports_are_served_all_the_same() {
    let host = Namespace::make("host").expect("a namespace");
    let outside = wire(&host, "h0", "192.0.2");
    host.enter().expect("entered");
    let through = [
        "/usr/bin/env",
        "HEARTH_TRIGGER_ADDRESS=0.0.0.0",
        "/usr/bin/python3",
        "-c",
        WITHOUT_LOADING,
    ];
    // What the operator asks for and cannot have is an error.
    let directory = tempfile::tempdir().expect("a directory");
    let mut whole = std::process::Command::new(through[0]);
    let output = whole
        .args(&through[1..])
        .arg(env!("CARGO_BIN_EXE_hearth"))
        .envs(at("h0"))
        .env("HEARTH_DATA_DIR", directory.path().join("data"))
        .output()
        .expect("started");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && said.contains("HEARTH_XDP_INTERFACE=h0"),
        "{said}"
    );
    let server = Server::start_through(&through);
    let client = server.client();
    let node = client.get("/api/v1/node").await.expect(200).json();
    let steering = &node["capabilities"]["port_steering"];
    assert_eq!(steering["available"], false, "{steering}");
    assert!(steering["reason"].is_string(), "{steering}");
    assert_eq!(steering["reason"], node["ingress"]["steering_missing"]);
    assert_eq!(node["ingress"]["programs"], json!([]));
    // Each port has a socket instead.
    deploy(&client, "f", 9000, 9001).await;
    let by = outside.within(|| by_tcp("192.0.2.2:9000"));
    assert_eq!(by.expect("an answer"), "f 1");
    let by = outside.within(|| by_udp("192.0.2.2:9001"));
    assert_eq!(by.expect("an answer"), "f 1");
}
