//! Ports of functions: connections to them, who has them, and what becomes of them.

use std::net::TcpListener;

use serde_json::{Value, json};

use crate::support::{Answer, Client, Server, exchange, skip};

const CODE: &str = r#"
def handler(event, context):
    return {"path": event["rawPath"], "by": context.function_name, "version": context.function_version,
            "query": event.get("queryStringParameters"), "body": event.get("body"),
            "cookies": event.get("cookies")}
"#;

/// Ports that were free a moment ago.
fn free_ports<const N: usize>() -> [u16; N] {
    let listeners: [TcpListener; N] =
        std::array::from_fn(|_| TcpListener::bind("127.0.0.1:0").expect("a port"));
    listeners.map(|listener| listener.local_addr().expect("its address").port())
}

fn tcp(ports: &[u16]) -> Value {
    let triggers = ports
        .iter()
        .map(|port| json!({"protocol": "tcp", "port": port}));
    json!({ "triggers": triggers.collect::<Vec<_>>(), "public": true })
}

/// A server whose host steers connections; counts the test as skipped where it does not.
async fn server() -> Option<Server> {
    let server = Server::start();
    let node = server.client().get("/api/v1/node").await.expect(200).json();
    let steering = &node["capabilities"]["port_steering"];
    if steering["available"] == true {
        return Some(server);
    }
    skip(&format!("connections cannot be steered here: {}", steering["reason"]));
    None
}

/// What a function answers at its port on an address; none where nobody listens.
fn at(address: &str, port: u16, path: &str) -> Option<Answer> {
    let address = format!("{address}:{port}").parse().expect("an address");
    let request = format!("GET {path} HTTP/1.1\r\nhost: any.example\r\nconnection: close\r\n\r\n");
    exchange(address, request.as_bytes())
}

/// The function that answers at a port.
fn by(port: u16) -> Option<Value> {
    at("127.0.0.1", port, "/").map(|answer| answer.json()["by"].clone())
}

async fn deploy(client: &Client, name: &str, ports: &[u16]) {
    client.deploy(name, CODE, tcp(ports)).await;
}
