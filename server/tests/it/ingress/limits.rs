//! Limits at functions' ports.

use std::net::UdpSocket;

use serde_json::{Value, json};

use super::world::{CLIENT, World, answered};
use super::{CODE, ECHO};
use crate::support::{Client, Server};

#[tokio::test]
async fn limits_belong_to_versions_and_who_exceeds_them_is_shown() {
    let world = World::enter();
    let server = world.server();
    let client = server.client();
    let settings = json!({
        "triggers": [{"protocol": "udp", "port": 9000}],
        "port_limits": {"per_source": {"per_second": 1, "burst": 5}},
    });
    let made = client.deploy("echo", ECHO, settings).await;
    assert_eq!(
        made["port_limits"],
        json!({"per_source": {"per_second": 1, "burst": 5}, "total": null})
    );
    let socket = world.socket();
    let is_limited = |answers: usize| (5..15).contains(&answers);
    let answers = answered(&socket, 50);
    assert!(is_limited(answers), "{answers} of 50");
    let node = client.get("/api/v1/ingress").await.expect(200).json();
    let source = &node["sources"][0];
    assert_eq!(
        (&source["source"], &source["function"], &source["limited"]),
        (&json!(CLIENT), &json!("echo"), &json!(true)),
        "{node}"
    );
    assert_eq!(source["admitted"], answers, "{node}");
    assert!(
        node["traffic"]["for_functions"].as_u64() >= Some(50),
        "{node}"
    );
    let view = client.get("/api/v1/functions/echo/ingress").await;
    let view = view.expect(200).json();
    assert_eq!(view["dropped"]["source_limit"], 50 - answers, "{view}");
    assert_eq!(view["limits_enforced"], true);
    assert_eq!(view["sources"][0]["source"], CLIENT);
    let metrics = client.get("/metrics").await.expect(200).text();
    for line in [
        format!(
            "hearth_ingress_dropped_packets_total{{function=\"echo\",reason=\"source_limit\"}} {}",
            50 - answers
        ),
        "hearth_ingress_packets_total{function=\"echo\",direction=\"in\"} 50".to_owned(),
        format!("hearth_ingress_starts_total{{function=\"echo\"}} {answers}"),
    ] {
        assert!(metrics.contains(&line), "{line} in {metrics}");
    }
    let maps = client.get("/api/v1/node").await.expect(200).json();
    let maps = maps["ingress"]["maps"].as_array().expect("maps").clone();
    let used = |name: &str| {
        let map = maps.iter().find(|map| map["name"] == name);
        map.expect("the map")["used"].clone()
    };
    assert_eq!((used("ports"), used("sources")), (json!(1), json!(1)));
    // The next version has none, and a roll-back has those of its version again.
    client
        .patch("/api/v1/functions/echo", &json!({"port_limits": null}))
        .await
        .expect(200);
    assert_eq!(answered(&socket, 50), 50);
    client
        .post("/api/v1/functions/echo/versions/1/activate", &json!({}))
        .await
        .expect(200);
    answered(&socket, 50);
    let answers = answered(&socket, 50);
    assert!(answers < 15, "{answers} of 50 after the roll-back");
    // All sources together.
    let total = json!({"port_limits": {"total": {"per_second": 1, "burst": 2}}});
    client
        .patch("/api/v1/functions/echo", &total)
        .await
        .expect(200);
    answered(&socket, 50);
    let view = client.get("/api/v1/functions/echo/ingress").await;
    let view = view.expect(200).json();
    assert!(
        view["dropped"]["total_limit"].as_u64() >= Some(30),
        "{view}"
    );
    chains_are_limited_too(&client, &socket).await;
}

/// A chain of the function's name is another one, with limits and counters of its own. What was dropped for one that is gone
/// stays in the node's sum.
async fn chains_are_limited_too(client: &Client, socket: &UdpSocket) {
    let open = json!({"triggers": [], "port_limits": null});
    client
        .patch("/api/v1/functions/echo", &open)
        .await
        .expect(200);
    let dropped = async || {
        let node = client.get("/api/v1/ingress").await.expect(200).json();
        let sum = |reasons: &Value| {
            let all = reasons.as_object().expect("reasons").values();
            all.filter_map(Value::as_u64).sum::<u64>()
        };
        (sum(&node["dropped"]), node)
    };
    let (before, _) = dropped().await;
    assert!(before > 30, "{before} of the function, which has no port");
    let chain = json!({
        "name": "echo", "members": {"a": {"function": "echo"}}, "routes": {"r": ["a"]},
        "triggers": [{"protocol": "udp", "port": 9000}],
        "port_limits": {"per_source": {"per_second": 1, "burst": 5}},
    });
    client.post("/api/v1/chains", &chain).await.expect(201);
    let answers = answered(socket, 50);
    assert!(answers < 15, "{answers} of 50");
    let view = client.get("/api/v1/chains/echo/ingress").await;
    let view = view.expect(200).json();
    assert_eq!(view["dropped"]["source_limit"], 50 - answers, "{view}");
    assert_eq!(view["sources"][0]["source"], CLIENT);
    let metrics = client.get("/metrics").await.expect(200).text();
    let line = format!("hearth_ingress_starts_total{{chain=\"echo\"}} {answers}");
    assert!(metrics.contains(&line), "{line} in {metrics}");
    let (after, node) = dropped().await;
    assert_eq!(after, before + 50 - answers as u64, "{node}");
    let source = &node["sources"][0];
    assert_eq!(
        (&source["function"], &source["chain"]),
        (&Value::Null, &json!("echo")),
        "{node}"
    );
    client.delete("/api/v1/chains/echo").await.expect(204);
    assert_eq!(dropped().await.0, after);
}

#[tokio::test]
async fn limits_that_nothing_would_enforce_are_refused() {
    let server = Server::start();
    let client = server.client();
    client.deploy("f", CODE, json!({})).await;
    let limits = json!({"port_limits": {"total": {"per_second": 1}}});
    let refused = client.patch("/api/v1/functions/f", &limits).await;
    let problem = refused.expect(422).json();
    assert_eq!(problem["field"], "port_limits");
    let rule = problem["rule"].as_str().expect("a rule");
    assert!(rule.contains("HEARTH_XDP_INTERFACE"), "{problem}");
    let wrong = json!({"port_limits": {"total": {"per_second": 0}}});
    let refused = client.patch("/api/v1/functions/f", &wrong).await;
    assert_eq!(
        refused.expect(422).json()["field"],
        "port_limits.total.per_second"
    );
    let node = client.get("/api/v1/ingress").await.expect(200).json();
    assert_eq!(node["traffic"], Value::Null);
}
