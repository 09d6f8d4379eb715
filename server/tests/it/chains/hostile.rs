//! A member that breaks the rules: it fails requests of its own chain, with errors that say so, and nothing else.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::path::{create, invoke};
use super::{CHAINS, ECHO};
use crate::native;
use crate::support::{Answer, Client, Server, eventually};

/// Longest time for what happens in the background.
const LIMIT: Duration = Duration::from_secs(30);

/// What no member that keeps to the rules sends to the gateway.
const BROKEN_RULES: [&str; 18] = [
    "foreign",
    "outside",
    "far outside",
    "stale",
    "long",
    "longest",
    "beyond",
    "ask for less",
    "ask for too much",
    "ask twice",
    "another hop",
    "another route",
    "another table",
    "grant",
    "call",
    "granted",
    "noted another route",
    "flood",
];

/// The other member of the chain, and another chain.
async fn others_go_on(client: &Client, after: &str) {
    let event = json!(after);
    let own = invoke(client, "good", &event).await.expect(200);
    assert_eq!(own.json(), event);
    let path = format!("{CHAINS}/other/routes/r/invoke");
    let other = client.post(&path, &event).await.expect(200);
    assert_eq!(other.json(), event);
}

async fn order(client: &Client, what: &str) -> Answer {
    invoke(
        client,
        if what.starts_with("peer") {
            "on"
        } else {
            "bad"
        },
        &json!(what),
    )
    .await
}

#[tokio::test]
async fn a_hostile_member_fails_requests_of_its_own_chain_and_nothing_else() {
    let server = Server::start();
    let client = server.client();
    native::deploy(
        &client,
        "hostile",
        "native_hostile",
        json!({"start": "boot"}),
    )
    .await;
    client.deploy("echo", ECHO, json!({})).await;
    create(
        &client,
        json!({
            "members": {"bad": {"function": "hostile"}, "good": {"function": "echo"}},
            "routes": {"bad": ["bad"], "on": ["bad", "good"], "on2": ["bad", "good"], "good": ["good"]},
            "edges": [["bad", "good"]],
            "pool": {"block_kb": 4, "blocks": 32, "payload_kb": 32},
            "timeout_ms": 3000,
        }),
    )
    .await;
    let other =
        json!({"name": "other", "members": {"a": {"function": "echo"}}, "routes": {"r": ["a"]}});
    client.post(CHAINS, &other).await.expect(201);
    let passed = order(&client, "pass").await.expect(200);
    assert_eq!(passed.json(), "pass");
    let passed = order(&client, "peer pass").await.expect(200);
    assert_eq!(passed.json(), "peer pass");

    for what in BROKEN_RULES {
        let (answer, ()) = tokio::join!(order(&client, what), others_go_on(&client, what));
        let problem = answer.problem(502, "chain_rule_broken");
        assert_eq!(problem["member"], "bad", "{what}: {problem}");
        let detail = problem["detail"].as_str().unwrap_or_default();
        assert!(
            detail.contains("broke the chain's rules"),
            "{what}: {problem}"
        );
        others_go_on(&client, what).await;
    }
    // With a run of blocks in hand.
    for what in ["inner", "long", "stale", "ask twice"] {
        let longer = format!("{what}{}", " ".repeat(6_000));
        let problem = order(&client, &longer)
            .await
            .problem(502, "chain_rule_broken");
        assert_eq!(problem["member"], "bad", "{what}: {problem}");
        others_go_on(&client, what).await;
    }
    let crashed = order(&client, "die").await.problem(502, "function_crashed");
    assert_eq!(crashed["member"], "bad", "{crashed}");

    // What leads nowhere changes nothing.
    let written = order(&client, "memory").await.expect(200);
    assert_eq!(written.json(), json!([]));
    let undeclared = order(&client, "undeclared").await.expect(200);
    assert_eq!(undeclared.json(), "undeclared");
    // What is checked is what is answered with, whatever becomes of the block.
    for _ in 0..20 {
        let answer = order(&client, "rewrite").await;
        if answer.status == 200 {
            let _: Value = answer.json();
        } else {
            let problem = answer.problem(502, "function_error");
            assert_eq!(problem["errorType"], "Runtime.InvalidResult", "{problem}");
        }
    }
    // It takes a request only when it rewrites no more, but may have spoilt that one.
    let is_over = || async {
        let passed = order(&client, "pass").await;
        (passed.status == 200 && passed.json() == "pass").then_some(())
    };
    eventually("it rewrites no more", LIMIT, is_over).await;

    // The other member refuses what it must not follow, and the time limit ends what nobody answers.
    let inner = format!("peer inner{}", " ".repeat(6_000));
    let silent = [
        "silent",
        "blame",
        "peer outside",
        "peer stale",
        "peer long",
        "peer longest",
        &inner,
        "peer grant",
        "peer another hop",
        "peer another route",
        "peer another table",
        "peer granted",
    ];
    let answers = join_all(silent.map(|what| order(&client, what))).await;
    for (what, answer) in silent.into_iter().zip(answers) {
        let problem = answer.problem(504, "chain_timeout");
        assert!(problem["title"].is_string(), "{what}");
        others_go_on(&client, what).await;
    }
    let (answer, ()) = tokio::join!(
        order(&client, "peer flood"),
        others_go_on(&client, "flooded")
    );
    answer.problem(504, "chain_timeout");
    others_go_on(&client, "flooded").await;

    // Nothing is lost of the pool but four blocks that an instance has for calls, and the member is there again. The other one has
    // been led to nothing that it would have been ended for.
    let chain = || async { client.get(&format!("{CHAINS}/c")).await.expect(200).json() };
    let is_whole = || async { (chain().await["live"]["pool"]["in_use"] == 4).then_some(()) };
    eventually("all blocks are back", LIMIT, is_whole).await;
    let members = chain().await["live"]["members"].clone();
    assert_eq!(members["good"]["restarts"], 0, "{members}");
    assert!(members["bad"]["restarts"].as_u64() > Some(10), "{members}");
    let passed = order(&client, "pass").await.expect(200);
    assert_eq!(passed.json(), "pass");
}
