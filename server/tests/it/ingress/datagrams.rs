//! Datagrams past the kernel's stack.

use std::net::UdpSocket;

use serde_json::{Value, json};

use super::world::{ADDRESS, World};
use super::{ECHO, PATIENCE};
use crate::support::skip;

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
    let world = World::enter();
    let server = world.server();
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
    let socket = world.socket();
    let own = socket.local_addr().expect("its address").port();
    let to = ADDRESS;
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
    world
        .outside
        .ip("route add 198.51.100.7/32 via 192.0.2.2")
        .expect("a route");
    socket
        .send_to(b"through", "198.51.100.7:9000")
        .expect("sent");
    exchange(&socket, b"to the host", to);
    let after = view().await["received"]["packets"].clone();
    assert_eq!(after.as_u64(), before.as_u64().map(|before| before + 1));
}
