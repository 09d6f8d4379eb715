//! The node and its description: health, capabilities, metrics, OpenAPI; and addresses that do not exist.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::Server;

const ONE: &str = "def handler(event, context):\n    if event: raise ValueError()\n";

#[tokio::test]
async fn health_needs_no_token() {
    let server = Server::start();
    let anonymous = server.client_with(None);
    for path in ["/healthz", "/readyz"] {
        let answer = anonymous.get(path).await.expect(200);
        assert_eq!(answer.json(), json!({"status": "ok"}));
        assert_eq!(answer.header("cache-control"), "no-store");
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
    }
}

#[tokio::test]
async fn the_node_tells_what_it_can_and_why_not() {
    let server = Server::start();
    let node = server.client().get("/api/v1/node").await.expect(200).json();
    assert_eq!(node["version"], env!("CARGO_PKG_VERSION"));
    assert!(node["uptime_s"].is_u64());
    assert!(node["cpus"].as_u64() >= Some(1));
    assert!(node["memory_total_bytes"].as_u64() >= node["memory_available_bytes"].as_u64());
    let capabilities = node["capabilities"].as_object().unwrap();
    for name in ["criu", "xdp", "sk_msg", "cgroup", "userns", "landlock"] {
        let capability = &capabilities[name];
        let available = capability["available"].as_bool().expect(name);
        let reason = capability["reason"].as_str();
        assert_eq!(reason.is_some(), !available, "{name}: {capability}");
        assert!(reason.is_none_or(|reason| !reason.is_empty()));
    }
    let python = &capabilities["runtimes"]["python3"];
    assert_eq!(python["available"], true);
    assert!(python["version"].as_str().unwrap().starts_with("3."));
    assert_eq!(python["fork"]["available"], true);
    let node = &capabilities["runtimes"]["node"];
    assert_eq!(node["available"], true, "{node}");
    assert!(node["version"].as_str().unwrap().contains('.'));
    assert_eq!(node["fork"], json!({"available": true, "reason": null}));
    // The console says where a runtime cannot be forked, and why.
    let server = Server::start_with(&[("HEARTH_NODE_FORK", "off")]);
    let node = server.client().get("/api/v1/node").await.expect(200).json();
    let node = &node["capabilities"]["runtimes"]["node"];
    assert_eq!(node["available"], true, "{node}");
    assert_eq!(
        node["fork"],
        json!({"available": false, "reason": "HEARTH_NODE_FORK=off"})
    );
}

#[tokio::test]
async fn metrics_count_invocations_by_function_and_status() {
    let server = Server::start();
    let client = server.client();
    client.deploy("counted", ONE, json!({})).await;
    for event in [0, 0, 0, 1] {
        client.invoke("counted", &json!(event)).await;
    }
    let answer = client.get("/metrics").await.expect(200);
    assert!(
        answer
            .header("content-type")
            .starts_with("application/openmetrics-text")
    );
    let text = answer.text();
    assert!(text.trim_end().ends_with("# EOF"), "{text}");
    let sample = |name: &str, labels: &[&str]| {
        text.lines()
            .filter(|line| {
                line.starts_with(name) && labels.iter().all(|label| line.contains(label))
            })
            .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
            .sum::<f64>()
    };
    let function = "function=\"counted\"";
    let of_status = |status: &str| sample("hearth_invocations_total{", &[function, status]);
    assert_eq!(of_status("status=\"succeeded\""), 3.0, "{text}");
    assert_eq!(of_status("status=\"failed\""), 1.0, "{text}");
    assert_eq!(
        sample("hearth_functions{", &["state=\"ready\""]),
        1.0,
        "{text}"
    );
    assert_eq!(
        sample("hearth_instances{", &[function, "state=\"idle\""]),
        1.0
    );
}

#[tokio::test]
async fn the_openapi_document_describes_every_route() {
    let server = Server::start();
    let anonymous = server.client_with(None);
    let document = anonymous.get("/openapi.json").await.expect(200).json();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    let mut described = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys() {
            described.insert(format!("{method} {path}"));
        }
    }
    for route in [
        "get /healthz",
        "get /readyz",
        "get /metrics",
        "get /openapi.json",
        "get /api/v1/node",
        "get /api/v1/functions",
        "post /api/v1/functions",
        "get /api/v1/functions/{name}",
        "patch /api/v1/functions/{name}",
        "delete /api/v1/functions/{name}",
        "put /api/v1/functions/{name}/code",
        "get /api/v1/functions/{name}/versions",
        "post /api/v1/functions/{name}/versions/{n}/activate",
        "post /api/v1/functions/{name}/invoke",
        "get /api/v1/functions/{name}/invocations",
        "get /api/v1/functions/{name}/stats",
        "get /api/v1/functions/{name}/events",
        "get /api/v1/functions/{name}/logs",
        "get /api/v1/invocations/{id}",
        "get /api/v1/tokens",
        "post /api/v1/tokens",
        "delete /api/v1/tokens/{id}",
        "get /fn/{name}",
        "post /fn/{name}/{path}",
    ] {
        assert!(described.contains(route), "{route} is missing");
    }
    // What is described is served: with a token, no documented address is unknown to the router.
    let client = server.client();
    for route in described.iter().filter(|route| !route.contains("/fn/")) {
        let (method, path) = route.split_once(' ').unwrap();
        let path = path
            .replace("{name}", "nobody")
            .replace("{n}", "1")
            .replace("{id}", "0");
        let method = Method::from_bytes(method.to_ascii_uppercase().as_bytes()).unwrap();
        let answer = client.send(client.request(method, &path)).await;
        assert_ne!(answer.status, 405, "{route}");
        assert!(
            !answer.text().contains("there is no address"),
            "{route}: {}",
            answer.text()
        );
    }
}

#[tokio::test]
async fn unknown_addresses_and_methods_are_problems_too() {
    let server = Server::start();
    let client = server.client();
    for path in [
        "/api/v1",
        "/api/v1/",
        "/api/v2/functions",
        "/api/v1/functions/",
        "/api/v1/functions/a/b/c",
        "/fn",
        "/fn/",
        "/favicon.ico2",
        "/.env",
        "/api/v1/functions/a/invoke/",
    ] {
        let problem = client.get(path).await.problem(404, "not_found");
        assert!(
            problem["detail"].as_str().unwrap().contains(path),
            "{problem}"
        );
    }
    for (method, path, allowed) in [
        (Method::DELETE, "/api/v1/functions", &["GET", "POST"][..]),
        (
            Method::POST,
            "/api/v1/functions/a",
            &["GET", "PATCH", "DELETE"],
        ),
        (Method::GET, "/api/v1/functions/a/invoke", &["POST"]),
        (Method::PUT, "/api/v1/tokens", &["GET", "POST"]),
        (Method::GET, "/api/v1/tokens/1", &["DELETE"]),
        (Method::POST, "/healthz", &["GET"]),
        (Method::POST, "/openapi.json", &["GET"]),
    ] {
        let answer = client.send(client.request(method.clone(), path)).await;
        let allow = answer.header("allow").to_owned();
        for one in allowed {
            assert!(allow.contains(one), "{method} {path}: {allow}");
        }
        answer.problem(405, "method_not_allowed");
    }
}

#[tokio::test]
async fn every_answer_carries_a_request_id() {
    let server = Server::start();
    let client = server.client();
    client.deploy("named", ONE, json!({})).await;
    let mut seen = BTreeSet::new();
    for (method, path) in [
        (Method::GET, "/healthz"),
        (Method::GET, "/api/v1/functions"),
        (Method::GET, "/api/v1/functions/nobody"),
        (Method::GET, "/nowhere"),
        (Method::DELETE, "/healthz"),
        (Method::POST, "/api/v1/functions/named/invoke"),
        (Method::GET, "/fn/named"),
    ] {
        let answer = client.send(client.request(method.clone(), path)).await;
        let id = answer.header("x-request-id").to_owned();
        assert!(
            !id.is_empty() && seen.insert(id.clone()),
            "{method} {path}: {id:?}"
        );
        if answer.status.is_client_error() {
            assert_eq!(answer.json()["request_id"], id);
        }
        let own = client
            .request(method.clone(), path)
            .header("x-request-id", "trace-42/a");
        assert_eq!(client.send(own).await.header("x-request-id"), "trace-42/a");
        for odd in ["a b", "<script>", &"x".repeat(200)] {
            let odd = client
                .request(method.clone(), path)
                .header("x-request-id", odd);
            let id = client.send(odd).await.header("x-request-id").to_owned();
            assert!(seen.insert(id.clone()), "{id:?} was not replaced");
        }
    }
    let unknown = client.get("/api/v1/functions/nobody").await;
    assert_ne!(unknown.json()["request_id"], Value::Null);
}
