//! A function's gate, and what other settings would have made of its calls.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::json;

use super::document::Contract;
use crate::support::{Client, eventually};

const GATE: &str = "/api/v1/functions/{name}/gate";
const WHAT_IF: &str = "/api/v1/functions/{name}/what-if";

/// There is a function `f`, which was called.
pub async fn ask(contract: &Contract, client: &Client) {
    let (path, nobody) = ("/api/v1/functions/f/gate", "/api/v1/functions/nobody/gate");
    let none = contract.ask(client, Method::GET, GATE, path).await;
    none.expect(404);
    for (path, body, status) in [
        (path, json!({"threshold_percent": 5}), 200),
        (path, json!({"threshold_percent": -1}), 422),
        (path, json!({"threshold": 5}), 422),
        (nobody, json!({}), 404),
    ] {
        let set = contract.tell(client, Method::PUT, GATE, path, body).await;
        set.expect(status);
    }
    let there = contract.ask(client, Method::GET, GATE, path).await;
    there.expect(200);
    let taken = contract.ask(client, Method::DELETE, GATE, path).await;
    taken.expect(204);
    let missing = contract.ask(client, Method::DELETE, GATE, nobody).await;
    missing.expect(404);

    let path = "/api/v1/functions/f/what-if?window=1h";
    // What is recorded is written a moment later.
    eventually("it is recorded", Duration::from_secs(30), || async {
        let found = contract.ask(client, Method::GET, WHAT_IF, path).await;
        (found.status == StatusCode::OK).then_some(())
    })
    .await;
    let refused = format!("{path}&idle_timeout_s=x");
    let refused = contract.ask(client, Method::GET, WHAT_IF, &refused).await;
    refused.expect(422);
}
