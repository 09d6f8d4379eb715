//! A function's gate, what other settings would have made of its calls, and how fast its versions run.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::json;

use super::document::Contract;
use crate::support::{Client, eventually};

const GATE: &str = "/api/v1/functions/{name}/gate";
const PERFORMANCE: &str = "/api/v1/functions/{name}/performance";
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

    let path = "/api/v1/functions/f/performance?days=1";
    let found = contract.ask(client, Method::GET, PERFORMANCE, path).await;
    let versions = &found.expect(200).json()["versions"];
    assert_eq!(versions[0]["version"], 1, "{versions}");
    for (query, status) in [("f/performance?days=0", 422), ("nobody/performance", 404)] {
        let path = format!("/api/v1/functions/{query}");
        let found = contract.ask(client, Method::GET, PERFORMANCE, &path).await;
        found.expect(status);
    }
}
