//! Every operation is asked, for its success and for the errors that a client can provoke.

use std::collections::BTreeSet;

use hearth_testkit::namespaces::Namespace;
use reqwest::Method;
use reqwest::multipart::Form;
use serde_json::{Value, json};

use super::document::Contract;
use super::{experiments, gates};
use crate::support::{Client, Lines, Server, deploy_form};

const CODE: &str = "\
def handler(event, context):
    print('a line')
    if event == 'raise':
        raise ValueError('no')
    return {'event': event}
";
const FUNCTIONS: &str = "/api/v1/functions";
const FUNCTION: &str = "/api/v1/functions/{name}";
const INVOKE: &str = "/api/v1/functions/{name}/invoke";

fn create(name: &str) -> Value {
    json!({"name": name, "runtime": "python3", "code": {"inline": CODE}, "env": {"A": "b"}, "public": true})
}

#[tokio::test]
async fn every_route_answers_as_described() {
    // Networks can be listed where packets are met.
    let namespace = Namespace::make("contract").expect("a namespace");
    namespace.enter().expect("entered");
    let server = Server::start_with(&[("HEARTH_XDP_INTERFACE", "lo")]);
    let client = server.client();
    let contract = Contract::of(&client).await;
    node(&contract, &client).await;
    lists(&contract, &client).await;
    functions(&contract, &client).await;
    invocations(&contract, &client).await;
    triggers(&contract, &client).await;
    chains(&contract, &client).await;
    experiments::ask(&contract, &client).await;
    gates::ask(&contract, &client).await;
    history(&contract, &client).await;
    accounts(&contract, &client).await;
    secrets(&contract, &client).await;
    errors_of_everybody(&contract, &server.client_with(None)).await;
    let path = "/api/v1/functions/f";
    let gone = contract.ask(&client, Method::DELETE, FUNCTION, path).await;
    gone.expect(204);
    let path = "/api/v1/functions/f/events";
    let missing = contract.ask(
        &client,
        Method::GET,
        "/api/v1/functions/{name}/events",
        path,
    );
    missing.await.expect(404);
    // An endless stream has its own test below.
    let left = contract.left();
    let events = (
        "get".to_owned(),
        "/api/v1/functions/{name}/events".to_owned(),
    );
    assert_eq!(left, [events], "not asked, or without success");
}

async fn node(contract: &Contract, client: &Client) {
    for path in [
        "/healthz",
        "/readyz",
        "/metrics",
        "/openapi.json",
        "/api/v1/node",
        "/api/v1/ingress",
        "/api/v1/retention",
    ] {
        let answer = contract.ask(client, Method::GET, path, path).await;
        answer.expect(200);
    }
    let path = "/api/v1/retention";
    let answer = contract.tell(client, Method::PATCH, path, path, json!({"logs_days": 3}));
    answer.await.expect(200);
    let answer = contract.tell(client, Method::PATCH, path, path, json!({"logs_days": 0}));
    answer.await.expect(422);
}

async fn functions(contract: &Contract, client: &Client) {
    let post = |body: Value| async move {
        contract
            .tell(client, Method::POST, FUNCTIONS, FUNCTIONS, body.clone())
            .await
    };
    post(create("f")).await.expect(201);
    post(create("f")).await.expect(409);
    post(json!({"name": "F"})).await.expect(422);
    let broken = json!({"name": "b", "runtime": "python3", "code": {"inline": "print('x')\nno"}});
    post(broken).await.expect(422);
    let copies = "/api/v1/functions/{name}/copies";
    for (name, body, status) in [
        ("f", json!({"name": "copy", "memory_mb": 64}), 201),
        ("f", json!({"name": "copy"}), 409),
        ("f", json!({"name": "other", "public": true}), 422),
        ("nobody", json!({"name": "other"}), 404),
    ] {
        let path = format!("{FUNCTIONS}/{name}/copies");
        let made = contract.tell(client, Method::POST, copies, &path, body.clone());
        made.await.expect(status);
    }
    client.delete("/api/v1/functions/copy").await.expect(204);
    let form = || client.request(Method::POST, FUNCTIONS);
    let good = form().multipart(deploy_form("form", "main.py", CODE.into()));
    contract
        .send(client, Method::POST, FUNCTIONS, good)
        .await
        .expect(201);
    for (request, status) in [
        (
            form().header("content-type", "application/json").body("{"),
            400,
        ),
        (form().header("content-type", "text/html").body("x"), 415),
        (
            form().json(&create("g")).header("content-encoding", "gzip"),
            415,
        ),
        (form().multipart(Form::new().text("name", "x")), 422),
    ] {
        let answer = contract
            .send(client, Method::POST, FUNCTIONS, request)
            .await;
        answer.expect(status);
    }
    contract
        .ask(client, Method::GET, FUNCTIONS, FUNCTIONS)
        .await
        .expect(200);
    contract
        .ask(client, Method::GET, FUNCTIONS, "/api/v1/functions?x=1")
        .await
        .expect(422);
    for (name, status) in [("f", 200), ("nobody", 404)] {
        let path = format!("{FUNCTIONS}/{name}");
        contract
            .ask(client, Method::GET, FUNCTION, &path)
            .await
            .expect(status);
        let template = "/api/v1/functions/{name}/ingress";
        let ingress = format!("{path}/ingress");
        let answer = contract.ask(client, Method::GET, template, &ingress);
        answer.await.expect(status);
        let template = "/api/v1/functions/{name}/network";
        let network = format!("{path}/network");
        let answer = contract.ask(client, Method::GET, template, &network);
        answer.await.expect(status);
        let settings = json!({"memory_mb": 256, "env": {"A": null, "B": "c"}});
        let patched = contract.tell(client, Method::PATCH, FUNCTION, &path, settings.clone());
        patched.await.expect(status);
        let template = "/api/v1/functions/{name}/code";
        let code = format!("{path}/code");
        let body = json!({"code": {"inline": CODE}});
        let put = contract.tell(client, Method::PUT, template, &code, body.clone());
        put.await.expect(status);
        let template = "/api/v1/functions/{name}/versions";
        let versions = format!("{path}/versions");
        contract
            .ask(client, Method::GET, template, &versions)
            .await
            .expect(status);
        let added = contract.tell(client, Method::POST, template, &versions, body.clone());
        added.await.expect(if status == 200 { 201 } else { status });
        let template = "/api/v1/functions/{name}/versions/{n}/invoke";
        let invoke = format!("{versions}/1/invoke");
        let answer = contract.ask(client, Method::POST, template, &invoke);
        answer.await.expect(status);
        let template = "/api/v1/functions/{name}/versions/{n}/activate";
        let activate = format!("{versions}/1/activate");
        contract
            .ask(client, Method::POST, template, &activate)
            .await
            .expect(status);
        let template = "/api/v1/functions/{name}/versions/{n}/code";
        let code = format!("{versions}/1/code");
        contract
            .ask(client, Method::GET, template, &code)
            .await
            .expect(status);
    }
    let path = format!("{FUNCTIONS}/f");
    for body in [
        json!({}),
        json!({"memory_mb": null}),
        json!({"name": "g"}),
        json!({"x": 1}),
    ] {
        let refused = contract.tell(client, Method::PATCH, FUNCTION, &path, body.clone());
        refused.await.expect(422);
    }
    let seen = client.get(&path).await.header("etag").to_owned();
    let same = client
        .request(Method::GET, &path)
        .header("if-none-match", &seen);
    contract
        .send(client, Method::GET, FUNCTION, same)
        .await
        .expect(304);
    let stale = client
        .request(Method::DELETE, &path)
        .header("if-match", "\"0.0\"");
    contract
        .send(client, Method::DELETE, FUNCTION, stale)
        .await
        .expect(412);
    let nobody = contract.ask(client, Method::DELETE, FUNCTION, "/api/v1/functions/nobody");
    nobody.await.expect(404);
}

async fn invocations(contract: &Contract, client: &Client) {
    let invoke =
        |name: &'static str| client.request(Method::POST, &format!("{FUNCTIONS}/{name}/invoke"));
    let gzipped = [
        0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ]
    .to_vec();
    for (request, status) in [
        (invoke("f").json(&json!({"a": 1})), 200),
        (invoke("f").json(&json!("raise")), 502),
        (invoke("f").body("{"), 400),
        (
            invoke("f").header("content-encoding", "gzip").body(gzipped),
            415,
        ),
        (
            invoke("f").header("content-encoding", "identity").body("1"),
            200,
        ),
        (invoke("f").body(vec![b' '; (6 << 20) + 1]), 413),
        (invoke("nobody").body("{}"), 404),
    ] {
        let answer = contract.send(client, Method::POST, INVOKE, request).await;
        let accepts = answer.header("accept-encoding").to_owned();
        let answer = answer.expect(status);
        assert_eq!(accepts, if status == 415 { "identity" } else { "" });
        if status == 200 || status == 502 {
            for header in [
                "x-hearth-invocation-id",
                "x-hearth-start",
                "x-hearth-version",
                "server-timing",
            ] {
                assert!(!answer.header(header).is_empty(), "{header}");
            }
        }
    }
}

async fn triggers(contract: &Contract, client: &Client) {
    let methods = [
        Method::GET,
        Method::HEAD,
        Method::POST,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
        Method::OPTIONS,
    ];
    for method in methods {
        for (template, path) in [("/fn/{name}", "/fn/f"), ("/fn/{name}/{path}", "/fn/f/a/b")] {
            contract
                .ask(client, method.clone(), template, path)
                .await
                .expect(200);
        }
        let missing = contract
            .ask(client, method, "/fn/{name}", "/fn/nobody")
            .await;
        missing.expect(404);
    }
}

async fn history(contract: &Contract, client: &Client) {
    for (resource, query, wrong) in [
        (
            "invocations",
            "limit=2&status=succeeded&trigger=invoke",
            "status=none",
        ),
        ("stats", "window=1h", "window=1y"),
        ("latency", "window=1h", "window="),
        ("logs", "limit=10", "limit=0"),
    ] {
        let template = format!("/api/v1/functions/{{name}}/{resource}");
        let path = format!("{FUNCTIONS}/f/{resource}");
        contract
            .ask(client, Method::GET, &template, &path)
            .await
            .expect(200);
        let path = format!("{FUNCTIONS}/f/{resource}?{query}");
        contract
            .ask(client, Method::GET, &template, &path)
            .await
            .expect(200);
        let path = format!("{FUNCTIONS}/f/{resource}?{wrong}");
        contract
            .ask(client, Method::GET, &template, &path)
            .await
            .expect(422);
        let path = format!("{FUNCTIONS}/nobody/{resource}");
        contract
            .ask(client, Method::GET, &template, &path)
            .await
            .expect(404);
    }
    let page = client.get("/api/v1/functions/f/invocations").await.json();
    let items = page["items"].as_array().expect("items");
    assert!(items.iter().any(|item| item["error"].is_object()), "{page}");
    let template = "/api/v1/invocations/{id}";
    for item in items {
        let path = format!(
            "/api/v1/invocations/{}",
            item["id"].as_str().expect("an id")
        );
        let one = contract
            .ask(client, Method::GET, template, &path)
            .await
            .expect(200);
        assert!(one.json()["status"].is_string(), "{}", one.text());
        let path = format!("{path}/explain");
        let template = "/api/v1/invocations/{id}/explain";
        let why = contract.ask(client, Method::GET, template, &path).await;
        let why = why.expect(200).json();
        assert!(why["summary"].is_string(), "{why}");
    }
    contract
        .ask(client, Method::GET, template, "/api/v1/invocations/x")
        .await
        .expect(404);
}

async fn accounts(contract: &Contract, client: &Client) {
    let (users, user) = ("/api/v1/users", "/api/v1/users/{name}");
    let post = |body: Value| async move {
        contract
            .tell(client, Method::POST, users, users, body.clone())
            .await
    };
    post(json!({"name": "ada", "role": "admin"}))
        .await
        .expect(201);
    post(json!({"name": "bob", "role": "viewer", "password": "correct horse"}))
        .await
        .expect(201);
    post(json!({"name": "bob", "role": "viewer"}))
        .await
        .expect(409);
    post(json!({"name": "bob"})).await.expect(422);
    contract
        .ask(client, Method::GET, users, users)
        .await
        .expect(200);
    for (name, body, status) in [
        ("bob", json!({"role": "operator", "disabled": true}), 200),
        ("bob", json!({"role": null}), 422),
        ("ada", json!({"disabled": true}), 409),
        ("eve", json!({"disabled": true}), 404),
    ] {
        let path = format!("/api/v1/users/{name}");
        let answer = contract.tell(client, Method::PATCH, user, &path, body.clone());
        answer.await.expect(status);
    }
    for (name, status) in [("bob", 204), ("bob", 404), ("ada", 409)] {
        let path = format!("/api/v1/users/{name}");
        contract
            .ask(client, Method::DELETE, user, &path)
            .await
            .expect(status);
    }
    let tokens = "/api/v1/tokens";
    let body = json!({"name": "ci", "rights": ["read"], "scope": ["f"], "expires_at": "2100-01-01T00:00:00Z"});
    let made = contract.tell(client, Method::POST, tokens, tokens, body.clone());
    let made = made.await.expect(201).json();
    let refused = contract.tell(
        client,
        Method::POST,
        tokens,
        tokens,
        json!({"name": "ci", "rights": []}),
    );
    refused.await.expect(422);
    contract
        .ask(client, Method::GET, tokens, tokens)
        .await
        .expect(200);
    for status in [204, 404] {
        let path = format!("/api/v1/tokens/{}", made["id"]);
        let deleted = contract.ask(client, Method::DELETE, "/api/v1/tokens/{id}", &path);
        deleted.await.expect(status);
    }
    let audit = "/api/v1/audit";
    contract
        .ask(client, Method::GET, audit, "/api/v1/audit?limit=100")
        .await
        .expect(200);
    contract
        .ask(client, Method::GET, audit, "/api/v1/audit?before=x")
        .await
        .expect(422);
}

async fn secrets(contract: &Contract, client: &Client) {
    let (all, one) = ("/api/v1/secrets", "/api/v1/secrets/{name}");
    let path = "/api/v1/secrets/key";
    for status in [201, 200] {
        let body = json!({"value": "sk_test"});
        let set = contract.tell(client, Method::PUT, one, path, body);
        set.await.expect(status);
    }
    let refused = contract.tell(client, Method::PUT, one, path, json!({"value": 3}));
    refused.await.expect(422);
    contract
        .ask(client, Method::GET, all, all)
        .await
        .expect(200);
    for status in [204, 404] {
        let deleted = contract.ask(client, Method::DELETE, one, path);
        deleted.await.expect(status);
    }
}

async fn lists(contract: &Contract, client: &Client) {
    let (all, one) = ("/api/v1/ingress/lists", "/api/v1/ingress/lists/{prefix}");
    let path = "/api/v1/ingress/lists/198.51.100.0%2F24";
    for status in [201, 200] {
        let body =
            json!({"verdict": "deny", "expires_at": "2100-01-01T00:00:00Z", "note": "scans"});
        let set = contract.tell(client, Method::PUT, one, path, body);
        set.await.expect(status);
    }
    let refused = contract.tell(client, Method::PUT, one, path, json!({"verdict": 3}));
    refused.await.expect(422);
    contract
        .ask(client, Method::GET, all, all)
        .await
        .expect(200);
    for status in [204, 404] {
        let deleted = contract.ask(client, Method::DELETE, one, path);
        deleted.await.expect(status);
    }
}

async fn chains(contract: &Contract, client: &Client) {
    let (all, one) = ("/api/v1/chains", "/api/v1/chains/{name}");
    let (path, nobody) = ("/api/v1/chains/c", "/api/v1/chains/nobody");
    let settings = json!({
        "members": {"a": {"function": "f", "version": null, "concurrency": 1, "payload": "json"}}, "routes": {"r": ["a"]}, "edges": [["a", "a"]],
        "pool": {"block_kb": 16, "blocks": 8, "payload_kb": 16, "huge_pages": false}, "transport": "auto", "timeout_ms": 5000, "public": true,
        "triggers": [
            {"protocol": "tcp", "port": 9100, "mode": "http", "route": "r"},
            {"protocol": "udp", "port": 9100, "batch": {"max": 2, "wait_ms": 0}, "route": null},
        ],
        "port_limits": null,
    });
    let mut create = settings.clone();
    create["name"] = json!("c");
    for status in [201, 409] {
        let made = contract.tell(client, Method::POST, all, all, create.clone());
        made.await.expect(status);
    }
    let refused = contract.tell(client, Method::POST, all, all, json!({"name": "c"}));
    refused.await.expect(422);
    let ask = async |method: Method, template: &str, path: &str, status: u16| {
        contract
            .ask(client, method, template, path)
            .await
            .expect(status)
    };
    ask(Method::GET, all, all, 200).await;
    ask(Method::GET, all, "/api/v1/chains?x=1", 422).await;
    for (path, status) in [(path, 200), (nobody, 404)] {
        ask(Method::GET, one, path, status).await;
        let versions = format!("{path}/versions");
        ask(
            Method::GET,
            "/api/v1/chains/{name}/versions",
            &versions,
            status,
        )
        .await;
        let ingress = format!("{path}/ingress");
        let template = "/api/v1/chains/{name}/ingress";
        ask(Method::GET, template, &ingress, status).await;
        let change = contract.tell(
            client,
            Method::PATCH,
            one,
            path,
            json!({"timeout_ms": 6000}),
        );
        change.await.expect(status);
        let activate = format!("{versions}/1/activate");
        let template = "/api/v1/chains/{name}/versions/{n}/activate";
        ask(Method::POST, template, &activate, status).await;
        let invoke = format!("{path}/routes/r/invoke");
        let template = "/api/v1/chains/{name}/routes/{route}/invoke";
        let answer = contract.tell(client, Method::POST, template, &invoke, json!(1));
        answer.await.expect(status);
    }
    let template = "/api/v1/chains/{name}/routes/{route}/invoke";
    let invoke = "/api/v1/chains/c/routes/r/invoke";
    let raised = contract.tell(client, Method::POST, template, invoke, json!("raise"));
    raised.await.expect(502);
    let large = "x".repeat(20_000);
    let large = contract.tell(client, Method::POST, template, invoke, json!(large));
    large.await.expect(413);
    for (template, path) in [
        ("/chain/{name}/{route}", "/chain/c/r"),
        ("/chain/{name}/{route}/{path}", "/chain/c/r/x"),
    ] {
        let operations = contract.document["paths"][template]
            .as_object()
            .expect("operations");
        for method in operations.keys() {
            let method = Method::from_bytes(method.to_uppercase().as_bytes()).expect("a method");
            ask(method, template, path, 200).await;
        }
    }
    let mut settings = settings;
    for (path, status) in [(path, 200), ("/api/v1/chains/d", 201)] {
        let put = contract.tell(client, Method::PUT, one, path, settings.clone());
        put.await.expect(status);
        settings["triggers"] = json!([]);
    }
    let workloads = "/api/v1/chain-workloads";
    ask(Method::GET, workloads, workloads, 200).await;
    let template = "/api/v1/chain-workloads/{key}/deploy";
    for (key, status) in [("motion", 201), ("motion", 409), ("nothing", 404)] {
        let path = format!("{workloads}/{key}/deploy");
        ask(Method::POST, template, &path, status).await;
    }
    let used = "/api/v1/functions/f";
    ask(Method::DELETE, FUNCTION, used, 409).await;
    for (path, status) in [(path, 204), (path, 404), ("/api/v1/chains/d", 204)] {
        ask(Method::DELETE, one, path, status).await;
    }
}

/// 401 where a token is needed.
async fn errors_of_everybody(contract: &Contract, nobody: &Client) {
    for (method, template) in contract.operations() {
        let operation = &contract.document["paths"][&template][&method];
        let is_trigger = template.starts_with("/fn/") || template.starts_with("/chain/");
        let is_open = operation["security"].is_null() || is_trigger;
        if is_open {
            continue;
        }
        let path = template
            .replace("{name}", "f")
            .replace("{n}", "1")
            .replace("{route}", "r")
            .replace("{key}", "motion")
            .replace("{id}", "1");
        let method = Method::from_bytes(method.to_uppercase().as_bytes()).expect("a method");
        contract
            .ask(nobody, method, &template, &path)
            .await
            .expect(401);
    }
}

#[tokio::test]
async fn events_are_as_described() {
    let server = Server::start();
    let client = server.client();
    let contract = Contract::of(&client).await;
    client.deploy("f", CODE, json!({})).await;
    let path = "/api/v1/functions/f/events";
    let mut lines = Lines::open(client.request(Method::GET, path)).await;
    client.invoke("f", &json!(1)).await.expect(200);
    let schemas = &contract.document["components"]["schemas"];
    let mut seen = BTreeSet::new();
    while seen.len() < 2 {
        let (event, data) = lines.event().await.expect("the stream goes on");
        let schema = match event.as_str() {
            "stats" => "StatsEvent",
            "invocation" => "InvocationRecord",
            other => panic!("{other} is not described"),
        };
        contract.hold(&schemas[schema], &data, &event);
        seen.insert(event);
    }
}
