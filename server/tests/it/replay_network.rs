//! What copies reach: nothing, or what the policy of their replay names.

use serde_json::{Value, json};

use crate::experiments::{agent, ended, functions, refused};
use crate::lab_forms::replay_form;
use crate::network::world::{PRIVATE, WEB, World};
use crate::replay::{replay, replayed, said};
use crate::support::{Browser, Client, Server, TOKEN};

/// Connects to the address in the event, and fails where it cannot.
const CODE: &str = "\
import socket

def handler(event, context):
    socket.create_connection((event, 80), timeout=8).close()
    return 'reached'
";
/// Each is a part of a replay: as many as a verdict takes.
const CALLS: usize = 12;
const COPIES: &str = "/api/v1/functions/asks/copies";

fn replica() -> String {
    format!("{PRIVATE}:80")
}

/// A function that reaches all that is public, and an address that stands for a replica on the host's own network. Its history has
/// connections to the latter.
async fn with_history() -> (World, Server, Client) {
    let world = World::enter();
    let server = Server::start_with(&[("HEARTH_NETWORK_ALLOW_PRIVATE", "10.9.0.0/16")]);
    let client = server.client();
    let network = json!({"allow": ["internet", replica()]});
    client
        .deploy("asks", CODE, json!({"network": network}))
        .await;
    for address in [PRIVATE; CALLS] {
        let told = client.invoke("asks", &json!(address)).await.expect(200);
        assert_eq!(told.json(), "reached");
    }
    (world, server, client)
}

fn experiment(network: Value) -> Value {
    json!({"kind": "replay", "first": "asks", "speed": 100, "network": network})
}

#[tokio::test]
async fn a_replay_reaches_what_its_policy_names_and_nothing_without_one() {
    let (_world, server, client) = with_history().await;
    let _agent = agent(&server);
    let allowed = json!({"allow": [replica()]});
    let found = replayed(&client, &experiment(allowed.clone())).await;
    let result = &found["result"];
    assert_eq!(result["replayed"]["network"], allowed, "{found}");
    let benchmark = &result["benchmarks"][0];
    assert_eq!(
        (&benchmark["trials"], &benchmark["failed"]),
        (&json!(CALLS), &json!(0)),
        "{found}"
    );
    let browser = Browser::logged_in(&server, TOKEN).await;
    let page = browser.get(&format!("/lab/{}", found["id"])).await;
    let page = page.expect(200).text();
    let could = format!("The copies could reach {}.", replica());
    assert!(page.contains(&could), "{page}");

    // Whatever the function's own policy allows.
    for network in [json!("none"), json!({"allow": [format!("{WEB}:80")]})] {
        let found = ended(&client, &experiment(network)).await;
        assert_eq!(found["state"], "failed", "{found}");
        let error = found["error"].as_str().expect("an error");
        assert!(error.contains("given up"), "{error}");
    }

    let done = replay(&server, &["asks", "--speed", "100", "--allow", &replica()]).await;
    let told = said(&done);
    // A/A: by chance something may differ.
    assert!(matches!(done.status.code(), Some(0 | 1)), "{told}");
    assert!(
        told.contains(&format!("the copies could reach {}", replica())),
        "{told}"
    );
    assert_eq!(functions(&client).await, ["asks"]);
}

#[tokio::test]
async fn a_policy_that_no_replay_can_have_is_refused_at_once() {
    let (_world, server, client) = with_history().await;
    let public =
        "network: must be \"none\", or an object whose \"allow\" names what copies may reach";
    for (network, expected) in [
        (json!("internet"), public),
        (json!({"allow": ["internet"]}), public),
        (json!({"allow": [], "dry_run": true}), public),
        (json!(null), public),
        (
            json!({"allow": ["a.example", "b c"]}),
            "network: allow[1]: \"b c\" is not valid: b c is not a host name",
        ),
        (
            json!({"allow": ["10.8.0.1:80"]}),
            "network: allow[0]: \"10.8.0.1:80\" is not valid: is in 10.0.0.0/8",
        ),
        (
            json!({"allow": [], "port": 1}),
            "network: port: 1 is not valid: unknown field",
        ),
    ] {
        refused(&client, &experiment(network), expected).await;
    }
    for (entry, expected) in [("internet", public), ("b c", "b c is not a host name")] {
        let done = replay(&server, &["asks", "--allow", entry]).await;
        let told = said(&done);
        assert_eq!(done.status.code(), Some(2), "{told}");
        assert!(told.contains(expected), "{told}");
    }

    let browser = Browser::logged_in(&server, TOKEN).await;
    let form = |allow| replay_form(&[("first", "asks"), ("allow", allow)]);
    let page = browser.submit("/lab", &form("a.example, Internet")).await;
    let page = page.expect(422).text();
    assert!(
        page.contains("is not for copies") && page.contains("value=\"a.example, Internet\""),
        "{page}"
    );
    let made = browser
        .submit("/lab", &form("a.example, b.example:5432 "))
        .await;
    let made = made.expect(303).header("location").to_owned();
    let made = client
        .get(&format!("/api/v1/experiments{}", &made["/lab".len()..]))
        .await;
    assert_eq!(
        made.expect(200).json()["config"]["network"],
        json!({"allow": ["a.example", "b.example:5432"]})
    );
}

#[tokio::test]
async fn who_may_copy_a_function_may_name_what_the_copy_reaches() {
    let (_world, server, client) = with_history().await;
    let token = async |body: Value| {
        let made = client.post("/api/v1/tokens", &body).await.expect(201);
        let made = made.json();
        server.client_with(Some(made["token"].as_str().expect("a secret")))
    };
    let rights = json!(["read", "invoke", "write"]);
    let source = token(json!({"name": "source", "rights": rights, "scope": ["asks"]})).await;
    let other = token(json!({"name": "other", "rights": rights, "scope": ["shadow"]})).await;
    let reader = token(json!({"name": "reader", "rights": ["read", "invoke"]})).await;
    let scope = json!(["asks", "shadow"]);
    let both = token(json!({"name": "both", "rights": rights, "scope": scope})).await;
    let asked = json!({"name": "shadow", "network": {"allow": [replica()]}});
    for refused in [&source, &other, &reader] {
        let answer = refused.post(COPIES, &asked).await;
        answer.problem(403, "forbidden");
        // Nor an experiment, whose agent would ask for copies with another token.
        let config = experiment(asked["network"].clone());
        let answer = refused.post("/api/v1/experiments", &config).await;
        answer.problem(403, "forbidden");
    }
    for (network, field) in [
        (json!("internet"), "network"),
        (json!({"allow": ["internet"]}), "network"),
        (json!({"allow": [], "dry_run": true}), "network"),
        (json!({"allow": ["b c"]}), "network.allow[0]"),
        (json!({"allow": ["10.8.0.1:80"]}), "network.allow[0]"),
    ] {
        let asked = json!({"name": "shadow", "network": network});
        let answer = both.post(COPIES, &asked).await;
        let problem = answer.problem(422, "invalid_field");
        assert_eq!(problem["field"], field, "{problem}");
    }
    let made = both.post(COPIES, &asked).await.expect(201).json();
    assert_eq!(
        made["network"],
        json!({"allow": [replica()], "dry_run": false})
    );
    let told = both.invoke("shadow", &json!(PRIVATE)).await.expect(200);
    assert_eq!(told.json(), "reached");
    let failed = both.invoke("shadow", &json!(WEB)).await;
    failed.problem(502, "function_error");
    // As every setting of a copy, for good.
    let more = json!({"network": "internet"});
    let changed = both.patch("/api/v1/functions/shadow", &more).await;
    changed.problem(409, "function_is_copy");
    let plain = json!({"name": "plain"});
    client.post(COPIES, &plain).await.expect(201);
    let failed = client.invoke("plain", &json!(PRIVATE)).await;
    failed.problem(502, "function_error");

    let log = client.get("/api/v1/audit?action=function.copy").await;
    let log = log.expect(200).json();
    let details = log["items"].as_array().expect("a list").iter();
    let details: Vec<&str> = details.filter_map(|one| one["detail"].as_str()).collect();
    assert_eq!(
        details,
        [
            "as plain, version 1".to_owned(),
            format!("as shadow, version 1, network {}", replica())
        ]
    );
}
