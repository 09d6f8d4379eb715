//! The network of a function that was given none.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};

use serde_json::{Value, json};

use super::Arena;

const CODE: &str = include_str!("network.py");

/// Listens over TCP and on an abstract socket, on behalf of the first request; later ones look whether it does.
const NEIGHBOUR: &str = r#"
import socket
import threading

tcp = socket.create_server(("0.0.0.0", 0))
local = socket.socket(socket.AF_UNIX)

def serve(listener):
    while True:
        listener.accept()[0].send(b"x")

def ask(family, address):
    with socket.socket(family) as made:
        made.connect(address)
        return made.recv(1).decode()

def handler(event, context):
    global name
    if "abstract" in event:
        name = "\0" + event["abstract"]
        local.bind(name)
        local.listen()
        for listener in tcp, local:
            threading.Thread(target=serve, args=(listener,), daemon=True).start()
        return tcp.getsockname()[1]
    return [ask(socket.AF_INET, tcp.getsockname()), ask(socket.AF_UNIX, name)]
"#;

/// The host's addresses other than the loopback's, as the kernel lists them.
fn own_addresses() -> Vec<String> {
    let text = std::fs::read_to_string("/proc/net/fib_trie").unwrap_or_default();
    let mut found: Vec<String> = Vec::new();
    let mut before = "";
    for line in text.lines() {
        if line.contains("/32 host LOCAL")
            && let Some(address) = before.split_whitespace().last()
            && !address.starts_with("127.")
        {
            found.push(address.to_owned());
        }
        before = line;
    }
    found
}

by_fork_and_restore!(
    a_function_without_network_reaches_nobody,
    CODE,
    json!({"network": "none"})
);

async fn a_function_without_network_reaches_nobody(arena: Arena) {
    let families = arena.report("families").await;
    let all = |results: &Value, expected: &str| {
        let results = results.as_object().expect("an object");
        assert!(!results.is_empty());
        for (what, result) in results {
            assert_eq!(result, expected, "{what}");
        }
    };
    all(&families["refused"], "EPERM");
    all(&families["allowed"], "done");
    all(&arena.report("options").await, "EPERM");
    for (what, result) in arena
        .report("changes")
        .await
        .as_object()
        .expect("an object")
    {
        let result = result.as_str().unwrap_or_default();
        assert!(["EPERM", "EACCES"].contains(&result), "{what}: {result}");
    }
    let own = own_addresses();
    let event = json!({"attack": "elsewhere", "own": own});
    all(&arena.send(&event).await.expect(200).json(), "ENETUNREACH");

    let name = format!("hearth-test-{}", arena.server.pid());
    let address = SocketAddr::from_abstract_name(&name).expect("a name");
    let _abstract = UnixListener::bind_addr(&address).expect("an abstract socket");
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("socket");
    let _listener = UnixListener::bind(&path).expect("a socket");
    let port = arena.server.url.rsplit(':').next().expect("a port");
    let port: u16 = port.trim_end_matches('/').parse().expect("a number");
    let refused = json!({
        "127.0.0.1": "ECONNREFUSED", "127.9.9.9": "ECONNREFUSED", "::1": "ECONNREFUSED", "::ffff:127.0.0.1": "ECONNREFUSED",
        "0.0.0.0": "ECONNREFUSED", "::": "ECONNREFUSED", "abstract": "ECONNREFUSED", "path": "ENOENT",
    });
    let event = json!({"attack": "connect", "port": port, "abstract": name, "path": path});
    assert_eq!(arena.send(&event).await.expect(200).json(), refused);
    // Another function's listeners are as far away as the host's.
    arena
        .client
        .deploy("neighbour", NEIGHBOUR, json!({"max_concurrency": 1}))
        .await;
    let event = json!({"abstract": name});
    let port = arena.client.invoke("neighbour", &event).await.expect(200);
    let event = json!({"attack": "connect", "port": port.json(), "abstract": name, "path": path});
    assert_eq!(arena.send(&event).await.expect(200).json(), refused);
    let own = arena.client.invoke("neighbour", &json!({})).await;
    assert_eq!(own.expect(200).json(), json!(["x", "x"]), "it listens");
    arena
        .client
        .delete("/api/v1/functions/neighbour")
        .await
        .expect(204);

    let unknown = json!([true, "Temporary failure in name resolution"]);
    assert_eq!(
        arena.report("names").await,
        json!({"example.com": unknown, "metadata.google.internal": unknown, "own": ["127.0.0.1"]})
    );

    let seen = arena.report("seen").await;
    assert_eq!(seen["devices"], json!(["lo"]), "{seen}");
    for (protocol, lines) in seen["sockets"].as_object().expect("an object") {
        let lines = lines.to_string();
        assert!(!lines.contains(&name), "{protocol}: {lines}");
        assert!(protocol == "unix" || lines == "[]", "{protocol}: {lines}");
    }
    assert_eq!(arena.report("own_sockets").await, "x");
    arena.finish().await;
}
