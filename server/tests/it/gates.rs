//! Gates: new versions that are compared before they become active.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::experiments::agent;
use crate::support::{Browser, Client, Server, TOKEN, eventually};

const GATE: &str = "/api/v1/functions/summed/gate";
const CODE: &str = "/api/v1/functions/summed/code";

/// Code that works so hard.
fn code(work: u32) -> Value {
    let text = format!("def handler(event, context):\n    return sum(range({work}))\n");
    json!({"code": {"inline": text}})
}

async fn function(client: &Client) -> Value {
    client
        .get("/api/v1/functions/summed")
        .await
        .expect(200)
        .json()
}

async fn version(client: &Client, number: u64) -> Value {
    let path = "/api/v1/functions/summed/versions";
    let list = client.get(path).await.expect(200).json();
    let items = list["items"].as_array().expect("a list");
    let found = items.iter().find(|one| one["version"] == number);
    found.expect("the version").clone()
}

/// A version once its gate has decided.
async fn decided(client: &Client, number: u64) -> Value {
    eventually("it is decided", Duration::from_secs(120), || async {
        let found = version(client, number).await;
        (found["gate"]["state"] != "pending").then_some(found)
    })
    .await
}

/// A version once its gate has judged it. One comparison in a hundred finds by chance that the active version differs from itself.
async fn judged(client: &Client, number: u64) -> Value {
    let activate = format!("/api/v1/functions/summed/versions/{number}/activate");
    for _ in 0..5 {
        let found = decided(client, number).await;
        if found["gate"]["state"] != "not_judged" {
            return found;
        }
        client.post(&activate, &Value::Null).await.expect(202);
    }
    panic!("five comparisons were too noisy");
}

async fn audited(client: &Client, action: &str) -> Vec<String> {
    let path = format!("/api/v1/audit?target=summed&action={action}");
    let list = client.get(&path).await.expect(200).json();
    let items = list["items"].as_array().expect("a list");
    let details = items.iter().map(|one| one["detail"].as_str());
    details.map(|one| one.expect("text").to_owned()).collect()
}

/// A client with a token of these rights.
async fn with_rights(server: &Server, rights: &[&str]) -> Client {
    let body = json!({"name": rights.join("+"), "rights": rights});
    let made = server.client().post("/api/v1/tokens", &body).await;
    let token = made.expect(201).json()["token"].clone();
    Client::at(&server.url, token.as_str())
}

#[tokio::test]
async fn slower_versions_are_refused_with_figures_and_an_admin_may_override() {
    let server = Server::start();
    let client = server.client();
    client
        .deploy(
            "summed",
            "def handler(event, context):\n    return 1\n",
            json!({}),
        )
        .await;
    client.put(CODE, &code(3000)).await.expect(200);
    let browser = Browser::logged_in(&server, TOKEN).await;
    let saved = [("event_name", "small"), ("event", "{\"a\": 1}")];
    browser
        .submit("/functions/summed/events", &saved)
        .await
        .expect(303);

    client.get(GATE).await.problem(404, "not_found");
    for bad in [
        json!({"threshold_percent": -1}),
        json!({"threshold": 5}),
        json!({"events": ["none"]}),
        json!([]),
    ] {
        client.put(GATE, &bad).await.problem(422, "invalid_field");
    }
    let writer = with_rights(&server, &["read", "invoke", "write"]).await;
    let gate = json!({"threshold_percent": 20, "events": ["small"]});
    let set = writer.put(GATE, &gate).await.expect(200).json();
    assert_eq!(set["confidence_percent"], 99.0, "{set}");
    // It is no gate if whoever deploys can open it.
    let open = json!({"threshold_percent": 1000});
    writer.put(GATE, &open).await.problem(403, "forbidden");
    writer.delete(GATE).await.problem(403, "forbidden");

    // Nothing of what a handler does changes: no comparison.
    let limits = json!({"timeout_ms": 9000});
    client
        .patch("/api/v1/functions/summed", &limits)
        .await
        .expect(200);

    // No agent is there: the version waits, and the active one serves.
    let slower = writer.put(CODE, &code(30000)).await.expect(202);
    let location = slower.header("location").to_owned();
    let slower = slower.json();
    assert_eq!(slower["version"], 4, "{slower}");
    assert_eq!(slower["gate"]["state"], "pending", "{slower}");
    assert_eq!(slower["gate"]["against"], 3);
    assert_eq!(function(&client).await["active_version"], 3);
    let experiment = client.get(&location).await.expect(200).json();
    assert_eq!(experiment["title"], "May summed@4 replace summed@3?");
    assert_eq!(experiment["config"]["names"], json!(["small"]));
    let activate = "/api/v1/functions/summed/versions/4/activate";
    writer.post(activate, &Value::Null).await.expect(202);
    let missing = "/api/v1/functions/summed/versions/9/activate";
    writer
        .post(missing, &Value::Null)
        .await
        .problem(404, "not_found");

    // A restart loses nothing of what waits.
    let server = server.restart();
    let client = server.client();
    let writer = with_rights(&server, &["read", "write"]).await;
    let _agent = agent(&server);
    let refused = judged(&client, 4).await;
    assert_eq!(refused["gate"]["state"], "refused", "{refused}");
    let reason = refused["gate"]["reason"].as_str().expect("figures");
    assert!(
        reason.contains("is slower by +") && reason.contains("small"),
        "{reason}"
    );
    assert_eq!(function(&client).await["active_version"], 3);
    let records = audited(&client, "function.gate").await;
    assert!(
        records[0].contains("version 4, refused") && records[0].contains("is slower by +"),
        "{records:?}"
    );

    // An admin may, and the audit log has the figures.
    let overriding = format!("{activate}?override_gate=true");
    writer
        .post(&overriding, &Value::Null)
        .await
        .problem(403, "forbidden");
    let active = client.post(&overriding, &Value::Null).await.expect(200);
    assert_eq!(active.json()["active_version"], 4);
    assert_eq!(version(&client, 4).await["gate"]["state"], "overridden");
    let records = audited(&client, "function.activate").await;
    assert!(
        records[0].contains("version 4, gate overridden: is slower by +"),
        "{records:?}"
    );

    // One that is faster becomes active by itself.
    writer.put(CODE, &code(3001)).await.expect(202);
    let passed = judged(&client, 5).await;
    assert_eq!(passed["gate"]["state"], "passed", "{passed}");
    assert_eq!(function(&client).await["active_version"], 5);
    // What was active before is gone back to at once.
    let back = "/api/v1/functions/summed/versions/3/activate";
    writer.post(back, &Value::Null).await.expect(200);

    let browser = Browser::logged_in(&server, TOKEN).await;
    let page = browser.get("/functions/summed/versions").await.expect(200);
    let page = page.text();
    for part in [
        "gate overridden",
        "passed the gate",
        "Compared with version 3",
    ] {
        assert!(page.contains(part), "{part} in {page}");
    }
    let page = browser.get("/functions/summed/settings").await.expect(200);
    assert!(page.text().contains("id=\"gate-form\""));
    let off = browser
        .submit("/functions/summed/gate", &[("on", "")])
        .await;
    off.expect(303);
    client.get(GATE).await.problem(404, "not_found");
    client.put(CODE, &code(30001)).await.expect(200);
}

#[tokio::test]
async fn a_comparison_that_does_not_happen_is_not_judged() {
    let server = Server::start();
    let client = server.client();
    let first = "def handler(event, context):\n    return 1\n";
    client.deploy("summed", first, json!({})).await;
    client.put(GATE, &json!({})).await.expect(200);

    let cancelled = client.put(CODE, &code(1)).await.expect(202);
    let experiment = cancelled.header("location").to_owned();
    client
        .post(&format!("{experiment}/cancel"), &Value::Null)
        .await
        .expect(200);
    let found = decided(&client, 2).await;
    assert_eq!(found["gate"]["state"], "not_judged", "{found}");
    assert_eq!(found["gate"]["reason"], "it was cancelled");

    // It may try again; a newer one overtakes it.
    let activate = "/api/v1/functions/summed/versions/2/activate";
    client.post(activate, &Value::Null).await.expect(202);
    let changed = client
        .patch("/api/v1/functions/summed", &json!({"memory_mb": 256}))
        .await
        .expect(202);
    let experiment = changed.header("location").to_owned();
    let found = decided(&client, 2).await;
    assert_eq!(
        found["gate"]["reason"],
        "version 3 is to become active instead"
    );

    client.delete(&experiment).await.expect(204);
    let found = decided(&client, 3).await;
    assert_eq!(found["gate"]["reason"], "its experiment was deleted");
    assert_eq!(function(&client).await["active_version"], 1);

    // Code that does not import is refused before anything is compared.
    let broken = json!({"code": {"inline": "import nothing_of_this_name\n"}});
    client
        .put(CODE, &broken)
        .await
        .problem(422, "import_failed");
    // A function that is deleted takes its comparisons along.
    client.put(CODE, &code(2)).await.expect(202);
    client.delete("/api/v1/functions/summed").await.expect(204);
    client.deploy("summed", first, json!({})).await;
    client.get(GATE).await.problem(404, "not_found");
}

/// Whoever asks first has it compared; the others are told of that, and whoever overrides the gate waits for nobody's decision.
#[tokio::test]
async fn a_version_that_many_activate_at_once_is_compared_once() {
    let server = Server::start();
    let client = server.client();
    client
        .deploy(
            "summed",
            "def handler(event, context):\n    return 1\n",
            json!({}),
        )
        .await;
    client.put(GATE, &json!({})).await.expect(200);
    let first = client.put(CODE, &code(1)).await.expect(202);
    let cancel = format!("{}/cancel", first.header("location"));
    client.post(&cancel, &Value::Null).await.expect(200);
    decided(&client, 2).await;
    let activate = "/api/v1/functions/summed/versions/2/activate";
    let all = join_all((0..8).map(|_| client.post(activate, &Value::Null))).await;
    let mut locations: Vec<String> = Vec::new();
    for answer in all {
        locations.push(answer.expect(202).header("location").to_owned());
    }
    locations.dedup();
    assert_eq!(locations.len(), 1, "{locations:?}");
    let list = client.get("/api/v1/experiments").await.expect(200).json();
    assert_eq!(list["items"].as_array().map(Vec::len), Some(2), "{list}");

    // One is told that it is active, whichever comes first; the others are compared with it, or find it active.
    let overriding = format!("{activate}?override_gate=true");
    let (overridden, others) = tokio::join!(
        client.post(&overriding, &Value::Null),
        join_all((0..8).map(|_| client.post(activate, &Value::Null)))
    );
    overridden.expect(200);
    for answer in others {
        assert!(
            [200, 202].contains(&answer.status.as_u16()),
            "{}",
            answer.text()
        );
    }
    assert_eq!(function(&client).await["active_version"], 2);
    let found = version(&client, 2).await;
    assert_eq!(found["gate"]["state"], "overridden", "{found}");
    let list = client.get("/api/v1/experiments").await.expect(200).json();
    let items = list["items"].as_array().expect("a list");
    assert!(
        items.iter().all(|one| one["state"] == "cancelled"),
        "{list}"
    );
}

#[tokio::test]
async fn events_of_a_gate_may_be_gone_or_never_have_come() {
    let server = Server::start();
    let client = server.client();
    client
        .deploy(
            "summed",
            "def handler(event, context):\n    return sum(range(30000))\n",
            json!({}),
        )
        .await;
    let browser = Browser::logged_in(&server, TOKEN).await;
    let saved = [("event_name", "small"), ("event", "{\"a\": 1}")];
    let page = browser.submit("/functions/summed/events", &saved).await;
    let page = page.expect(303).header("location").to_owned();
    let key = page.split_once("pick=").expect("the event's key").1;
    let gate = json!({"events": ["small"]});
    client.put(GATE, &gate).await.expect(200);
    let waiting = client.put(CODE, &code(1)).await.expect(202);
    browser
        .submit("/functions/summed/events/delete", &[("pick", key)])
        .await
        .expect(303);
    let refused = client.put(CODE, &code(2)).await;
    refused.problem(422, "invalid_field");
    // Nothing was stored, and what waited still does.
    let versions = client.get("/api/v1/functions/summed/versions").await;
    let versions = versions.expect(200).json();
    assert_eq!(versions["items"].as_array().map(Vec::len), Some(2));
    assert_eq!(version(&client, 2).await["gate"]["state"], "pending");

    // Those that it names are part of an experiment's configuration.
    let large = format!("\"{}\"", "x".repeat(250 << 10));
    for name in ["a", "b", "c", "d", "e"] {
        let saved = [("event_name", name), ("event", large.as_str())];
        let page = browser.submit("/functions/summed/events", &saved).await;
        page.expect(303);
    }
    let refused = client.put(GATE, &json!({})).await;
    let problem = refused.problem(422, "invalid_field");
    let rule = problem["detail"].as_str().expect("a detail");
    assert!(rule.contains("1048576 bytes together"), "{problem}");
    let two = json!({"events": ["a", "b"]});
    client.put(GATE, &two).await.expect(200);

    // Recorded events are beside others: a function that was never called so has a gate, too.
    let experiment = waiting.header("location").to_owned();
    client.delete(&experiment).await.expect(204);
    let recorded = json!({"recorded": 5, "events": ["a"]});
    client.put(GATE, &recorded).await.expect(200);
    let _agent = agent(&server);
    client.put(CODE, &code(3)).await.expect(202);
    let passed = judged(&client, 3).await;
    assert_eq!(passed["gate"]["state"], "passed", "{passed}");
}
