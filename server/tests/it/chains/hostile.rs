//! A member that breaks the rules: it fails requests of its own chain, with errors that say so, and nothing else. Over each transport.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::path::invoke;
use super::runs::{TRANSPORTS, put};
use super::{CHAINS, ECHO};
use crate::native;
use crate::support::{Answer, Client, Server, eventually};

/// Longest time for what happens in the background.
const LIMIT: Duration = Duration::from_secs(30);

/// What no member that keeps to the rules sends to the gateway.
const BROKEN_RULES: [&str; 19] = [
    "foreign",
    "outside",
    "far outside",
    "stale",
    "long",
    "longest",
    "beyond",
    "cycle",
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
/// Of those, what the kernel lets nobody have who does not have the block: it stays where it is, and the request ends in time.
const NOT_IN_HAND: [&str; 4] = ["foreign", "outside", "far outside", "ask twice"];
/// What it leads the other member to, or does not do: the time limit ends the request.
const SILENT: [&str; 11] = [
    "silent",
    "blame",
    "peer outside",
    "peer stale",
    "peer long",
    "peer longest",
    "peer cycle",
    "peer another hop",
    "peer another route",
    "peer another table",
    "peer granted",
];

/// An order as an event that needs a run of blocks.
fn longer(what: &str) -> String {
    format!("{what}{}", " ".repeat(6_000))
}

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

/// Whether it keeps the rules once, and its request comes back as it was.
async fn passes(client: &Client) -> Option<()> {
    let passed = order(client, "pass").await;
    (passed.status == 200 && passed.json() == "pass").then_some(())
}

/// Waits for it to be there after it was ended: what follows has only the chain's time.
async fn is_back(client: &Client) {
    eventually("it passes requests on", LIMIT, || passes(client)).await;
}

async fn live(client: &Client) -> Value {
    let chain = client.get(&format!("{CHAINS}/c")).await.expect(200).json();
    chain["live"].clone()
}

/// A server with a hostile function and one that is not.
async fn with_hostile() -> (Server, Client) {
    let server = Server::start();
    let client = server.client();
    let start = json!({"start": "boot"});
    native::deploy(&client, "hostile", "native_hostile", start).await;
    client.deploy("echo", ECHO, json!({})).await;
    let other =
        json!({"name": "other", "members": {"a": {"function": "echo"}}, "routes": {"r": ["a"]}});
    client.post(CHAINS, &other).await.expect(201);
    (server, client)
}

#[tokio::test]
async fn a_hostile_member_fails_requests_of_its_own_chain_and_nothing_else() {
    let (_server, client) = with_hostile().await;
    for transport in TRANSPORTS {
        let chain = json!({
            "members": {"bad": {"function": "hostile"}, "good": {"function": "echo"}},
            "routes": {"bad": ["bad"], "on": ["bad", "good"], "on2": ["bad", "good"], "good": ["good"]},
            "edges": [["bad", "good"]],
            "pool": {"block_kb": 4, "blocks": 64, "payload_kb": 32},
            "timeout_ms": 2000,
        });
        if put(&client, transport, &chain).await {
            attack(&client, transport).await;
        }
    }
}

async fn attack(client: &Client, transport: &str) {
    let is_kernels = transport == "sk_msg";
    for what in ["pass", "peer pass", "twice"] {
        let passed = order(client, what).await.expect(200);
        assert_eq!(passed.json(), what, "{transport}");
    }
    let broken = |what: &&&str| !is_kernels || !NOT_IN_HAND.contains(what) && **what != "flood";
    for what in BROKEN_RULES.iter().filter(broken) {
        is_back(client).await;
        let (answer, ()) = tokio::join!(order(client, what), others_go_on(client, what));
        let problem = answer.problem(502, "chain_rule_broken");
        assert_eq!(problem["member"], "bad", "{transport}, {what}: {problem}");
        let detail = problem["detail"].as_str().unwrap_or_default();
        assert!(
            detail.contains("broke the chain's rules"),
            "{transport}, {what}: {problem}"
        );
        others_go_on(client, what).await;
    }
    // With a run of blocks in hand.
    let in_a_run = ["inner", "long", "stale", "cycle", "ask twice"];
    let by_kernel = ["inner", "ask twice"];
    for what in in_a_run {
        if is_kernels && by_kernel.contains(&what) {
            continue;
        }
        is_back(client).await;
        let problem = order(client, &longer(what))
            .await
            .problem(502, "chain_rule_broken");
        assert_eq!(problem["member"], "bad", "{transport}, {what}: {problem}");
        others_go_on(client, what).await;
    }
    // A part of a payload, and then death.
    for what in ["die", "ask and die", "ask and die at once"] {
        for order_of in [what.to_owned(), longer(what)] {
            is_back(client).await;
            let crashed = order(client, &order_of).await;
            let crashed = crashed.problem(502, "function_crashed");
            assert_eq!(crashed["member"], "bad", "{transport}, {what}: {crashed}");
            others_go_on(client, what).await;
        }
    }

    // What leads nowhere changes nothing.
    is_back(client).await;
    let written = order(client, "memory").await.expect(200);
    assert_eq!(written.json(), json!([]));
    let undeclared = order(client, "undeclared").await;
    match is_kernels {
        // The block is taken from it with the first of these descriptors.
        true => assert_eq!(undeclared.status, 502),
        false => assert_eq!(undeclared.expect(200).json(), "undeclared"),
    }
    // Who had its block taken from it may be about to end.
    is_back(client).await;
    // What is checked is what is answered with, whatever becomes of the block.
    for _ in 0..20 {
        let answer = order(client, "rewrite").await;
        if answer.status == 200 {
            let _: Value = answer.json();
        } else {
            let problem = answer.problem(502, "function_error");
            assert_eq!(problem["errorType"], "Runtime.InvalidResult", "{problem}");
        }
    }
    // It takes a request only when it rewrites no more, but may have spoilt that one.
    eventually("it rewrites no more", LIMIT, || passes(client)).await;

    if is_kernels {
        // It goes on sending until it is ended.
        let (answer, ()) = tokio::join!(order(client, "flood"), others_go_on(client, "flood"));
        answer.problem(504, "chain_timeout");
        is_back(client).await;
        let problem = order(client, "peer grant").await;
        problem.problem(502, "chain_rule_broken");
        // One at a time: of several that it keeps, it could name one by the other.
        let mut not_in_hand = NOT_IN_HAND.map(str::to_owned).to_vec();
        not_in_hand.extend(by_kernel.map(longer));
        for what in &not_in_hand {
            is_back(client).await;
            let (answer, ()) = tokio::join!(order(client, what), others_go_on(client, what));
            let problem = answer.problem(504, "chain_timeout");
            assert!(problem["title"].is_string(), "{what}");
            is_back(client).await;
            let crashed = order(client, "die").await;
            crashed.problem(502, "function_crashed");
        }
    }
    // The other member refuses what it must not follow, and the time limit ends what nobody answers.
    let mut silent: Vec<String> = SILENT.map(str::to_owned).to_vec();
    silent.extend([longer("peer inner"), longer("peer cycle")]);
    if !is_kernels {
        silent.push("peer grant".to_owned());
    }
    let answers = join_all(silent.iter().map(|what| order(client, what))).await;
    for (what, answer) in silent.iter().zip(answers) {
        let problem = answer.problem(504, "chain_timeout");
        assert!(problem["title"].is_string(), "{transport}, {what}");
        others_go_on(client, what).await;
    }
    let (answer, ()) = tokio::join!(order(client, "peer flood"), others_go_on(client, "flooded"));
    assert!(answer.status.as_u16() >= 500, "{transport}");
    others_go_on(client, "flooded").await;

    // Nothing is lost of the pool but four blocks that an instance has for calls, and the member is there again. The other one has
    // been led to nothing that it would have been ended for.
    let is_whole = || async { (live(client).await["pool"]["in_use"] == 4).then_some(()) };
    eventually("all blocks are back", LIMIT, is_whole).await;
    let members = live(client).await["members"].clone();
    assert_eq!(members["good"]["restarts"], 0, "{transport}: {members}");
    assert!(members["bad"]["restarts"].as_u64() > Some(10), "{members}");
    let passed = order(client, "pass").await.expect(200);
    assert_eq!(passed.json(), "pass");
}

/// What comes of a call to the hostile member.
enum Called {
    /// A result.
    Result,
    /// A result, or what is left of it.
    Any,
    /// An error of this type.
    Error(&'static str),
    /// Nothing, until the time is up.
    Nothing,
}

/// What it does with a call; whether the call's payload has a run of blocks; and what comes of it with rings, and by the kernel.
const CALLS: [(&str, [bool; 2], Called, Called); 19] = {
    use Called::{Any, Error, Nothing, Result};
    const BOTH: [bool; 2] = [false, true];
    const WRONG: Called = Error("Chain.RuleBroken");
    const DEAD: Called = Error("Chain.MemberCrashed");
    [
        ("reply", BOTH, Result, Result),
        ("long", BOTH, WRONG, WRONG),
        ("longest", BOTH, WRONG, WRONG),
        ("stale", BOTH, WRONG, WRONG),
        ("cycle", BOTH, WRONG, WRONG),
        ("twice", BOTH, Result, Result),
        ("keep", BOTH, Any, Any),
        ("pass", [false, false], Nothing, WRONG),
        ("outside", [false, false], Nothing, Nothing),
        ("inner", [true, true], Nothing, Nothing),
        ("own", [false, false], Nothing, Nothing),
        ("silent", [true, true], Nothing, Nothing),
        ("ask for less", BOTH, DEAD, DEAD),
        ("ask for too much", BOTH, DEAD, DEAD),
        ("ask and reply beyond", BOTH, WRONG, WRONG),
        ("ask and stop", [true, true], Nothing, Nothing),
        // By the kernel's word, that block is not its any more.
        ("ask and reply in the first", BOTH, Result, Nothing),
        ("ask for others", [false, false], Result, Nothing),
        ("ask without end", [true, true], DEAD, DEAD),
    ]
};

#[tokio::test]
async fn a_hostile_member_that_is_called_fails_these_calls_and_nothing_else() {
    let (_server, client) = with_hostile().await;
    let caller = "\
def handler(event, context):
    try:
        return ['result', context.chain.call('bad', event)]
    except Exception as error:
        return ['error', getattr(error, 'error_type', type(error).__name__)]
";
    client.deploy("caller", caller, json!({})).await;
    for transport in TRANSPORTS {
        let chain = json!({
            "members": {
                "bad": {"function": "hostile"}, "good": {"function": "echo"}, "they": {"function": "caller"},
            },
            "routes": {"they": ["they"], "good": ["good"]},
            "edges": [["bad", "good"], ["they", "bad"]],
            "pool": {"block_kb": 4, "blocks": 256, "payload_kb": 32},
            "timeout_ms": 1500,
        });
        if !put(&client, transport, &chain).await {
            continue;
        }
        // Each has four blocks for its own calls.
        let is_whole = || async { (live(&client).await["pool"]["in_use"] == 8).then_some(()) };
        for (what, large, by_rings, by_kernel) in CALLS {
            let expected = match transport {
                "sk_msg" => by_kernel,
                _ => by_rings,
            };
            for is_large in large {
                let event = match is_large {
                    true => longer(what),
                    false => what.to_owned(),
                };
                let event = json!(event);
                answers(&client).await;
                let called = invoke(&client, "they", &event);
                let (answer, ()) = tokio::join!(called, others_go_on(&client, what));
                let about = format!("{transport}, {what}, {is_large}");
                match expected {
                    // Whoever notices it first, the gateway or who calls.
                    Called::Nothing if answer.status == 200 => {
                        assert_eq!(answer.json(), json!(["error", "Chain.Timeout"]), "{about}");
                    }
                    Called::Nothing => drop(answer.problem(504, "chain_timeout")),
                    Called::Error(error_type) => {
                        assert_eq!(
                            answer.expect(200).json(),
                            json!(["error", error_type]),
                            "{about}"
                        );
                    }
                    Called::Result => {
                        assert_eq!(
                            answer.expect(200).json(),
                            json!(["result", event]),
                            "{about}"
                        );
                    }
                    Called::Any => drop(answer.expect(200)),
                }
                others_go_on(&client, what).await;
                if matches!(expected, Called::Nothing) {
                    // Who calls has a block less for calls until that is over.
                    let is_over = || async {
                        let answer = invoke(&client, "they", &json!("die")).await;
                        let dead = json!(["error", "Chain.MemberCrashed"]);
                        (answer.status == 200 && answer.json() == dead).then_some(())
                    };
                    eventually("the call is over", LIMIT, is_over).await;
                }
            }
        }
        // What it still has comes back with its end, whatever it says of where that is.
        for what in ["die", "ask and die", "ask, blame and die"] {
            for event in [what.to_owned(), longer(what)] {
                answers(&client).await;
                let answer = invoke(&client, "they", &json!(event)).await.expect(200);
                let dead = json!(["error", "Chain.MemberCrashed"]);
                assert_eq!(answer.json(), dead, "{transport}, {what}");
                eventually("all blocks are back", LIMIT, is_whole).await;
                others_go_on(&client, what).await;
            }
        }
        let members = live(&client).await["members"].clone();
        assert_eq!(members["good"]["restarts"], 0, "{transport}: {members}");
        answers(&client).await;
    }
}

/// Waits for the hostile member to answer a call: after it was ended, what follows has only the chain's time.
async fn answers(client: &Client) {
    let result = json!(["result", "reply"]);
    let called = || async {
        let answer = invoke(client, "they", &json!("reply")).await;
        (answer.status == 200 && answer.json() == result).then_some(())
    };
    eventually("it answers a call", LIMIT, called).await;
}
