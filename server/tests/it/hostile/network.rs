//! The network of a function that was given none.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};

use serde_json::json;

use super::Arena;

const CODE: &str = include_str!("network.py");

by_both_rungs!(
    a_function_without_network_reaches_nobody,
    CODE,
    json!({"network": "none"})
);

async fn a_function_without_network_reaches_nobody(arena: Arena) {
    for (family, result) in arena
        .report("families")
        .await
        .as_object()
        .expect("an object")
    {
        assert_eq!(result, "EPERM", "{family}");
    }
    let name = format!("hearth-test-{}", arena.server.pid());
    let address = SocketAddr::from_abstract_name(&name).expect("a name");
    let _abstract = UnixListener::bind_addr(&address).expect("an abstract socket");
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("socket");
    let _listener = UnixListener::bind(&path).expect("a socket");
    let event = json!({"attack": "connect", "url": format!("{}/healthz", arena.server.url), "abstract": name, "path": path});
    let result = arena.send(&event).await.expect(200).json();
    assert_eq!(
        result,
        json!({"url": "URLError", "name": "gaierror", "abstract": "ECONNREFUSED", "path": "ENOENT"})
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
