//! `/api/v1/chains`: chains as objects.

mod affinity;
mod blocks;
mod calls;
mod console;
mod cpu;
mod hostile;
mod large_calls;
mod members;
mod objects;
mod path;
mod ports;
mod requests;
mod runs;
mod sk_msg;

use serde_json::{Value, json};

use crate::support::{Answer, Client, Server};

pub(crate) const CHAINS: &str = "/api/v1/chains";
pub(crate) const SHOP: &str = "/api/v1/chains/shop";
const ECHO: &str = "def handler(event, context):\n    return event\n";

/// Settings of a chain of the functions `cart` and `payment`, without its name.
pub(crate) fn settings() -> Value {
    json!({
        "members": {"cart": {"function": "cart"}, "pay": {"function": "payment"}},
        "routes": {"checkout": ["cart", "pay"]},
    })
}

pub(crate) fn named(name: &str) -> Value {
    let mut body = settings();
    body["name"] = name.into();
    body
}

/// A server with the two functions.
async fn with_functions() -> (Server, Client) {
    let server = Server::start();
    let client = server.client();
    for name in ["cart", "payment"] {
        client.deploy(name, ECHO, json!({})).await;
    }
    (server, client)
}

/// A server with the chain `shop`.
async fn with_shop() -> (Server, Client) {
    let (server, client) = with_functions().await;
    client.post(CHAINS, &named("shop")).await.expect(201);
    (server, client)
}

fn field_of(answer: Answer) -> String {
    let problem = answer.problem(422, "invalid_field");
    problem["field"].as_str().unwrap_or_default().to_owned()
}
