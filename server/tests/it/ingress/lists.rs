//! The lists of networks that are dropped, or exempt from limits.

use std::time::Duration;

use serde_json::{Value, json};

use super::world::{World, answered, is_answered};
use super::{ECHO, PATIENCE};
use crate::support::eventually;

#[tokio::test]
async fn lists_drop_and_exempt_sources_and_survive_restarts() {
    let world = World::enter();
    let server = world.server();
    let client = server.client();
    let settings = json!({
        "triggers": [{"protocol": "udp", "port": 9000}],
        "port_limits": {"per_source": {"per_second": 1, "burst": 2}},
    });
    client.deploy("echo", ECHO, settings).await;
    let socket = world.socket();
    let allow = json!({"verdict": "allow", "note": "ours"});
    let entry = client
        .put("/api/v1/ingress/lists/192.0.2.0%2F24", &allow)
        .await
        .expect(201)
        .json();
    assert_eq!(
        (
            &entry["prefix"],
            &entry["verdict"],
            &entry["note"],
            &entry["expires_at"]
        ),
        (
            &json!("192.0.2.0/24"),
            &json!("allow"),
            &json!("ours"),
            &Value::Null
        )
    );
    assert_eq!(answered(&socket, 30), 30, "exempt from the limit");
    // The longer prefix decides.
    let end = jiff::Timestamp::now() + Duration::from_secs(600);
    let deny = json!({"verdict": "deny", "expires_at": end.to_string()});
    let deny_path = "/api/v1/ingress/lists/192.0.2.1";
    client.put(deny_path, &deny).await.expect(201);
    assert!(!is_answered(&socket));
    let server = server.restart();
    let client = server.client();
    let listed = client.get("/api/v1/ingress/lists").await.expect(200).json();
    assert_eq!(
        listed["items"].as_array().map(Vec::len),
        Some(2),
        "{listed}"
    );
    assert!(!is_answered(&socket));
    // It ends by itself; then the shorter one holds again.
    let end = jiff::Timestamp::now() + Duration::from_secs(2);
    let deny = json!({"verdict": "deny", "expires_at": end.to_string()});
    client.put(deny_path, &deny).await.expect(200);
    eventually("the entry expires", PATIENCE, || async {
        let listed = client.get("/api/v1/ingress/lists").await.expect(200).json();
        (listed["items"].as_array().map(Vec::len) == Some(1)).then_some(())
    })
    .await;
    assert_eq!(answered(&socket, 10), 10);
    client
        .delete("/api/v1/ingress/lists/192.0.2.0%2F24")
        .await
        .expect(204);
    client
        .delete("/api/v1/ingress/lists/192.0.2.0%2F24")
        .await
        .problem(404, "not_found");
    let few = answered(&socket, 30);
    assert!(few < 10, "{few}: the limit holds again");
    let view = client.get("/api/v1/functions/echo/ingress").await;
    let view = view.expect(200).json();
    assert!(view["dropped"]["denied"].as_u64() >= Some(3), "{view}");
    for (path, body, field) in [
        ("192.0.2.1%2F24", json!({"verdict": "deny"}), "prefix"),
        ("example.com", json!({"verdict": "deny"}), "prefix"),
        ("192.0.2.1", json!({"verdict": "block"}), "verdict"),
    ] {
        let path = format!("/api/v1/ingress/lists/{path}");
        let problem = client.put(&path, &body).await.problem(422, "invalid_field");
        assert_eq!(problem["field"], field);
    }
    let audit = client.get("/api/v1/audit?action=ingress.list").await;
    let audit = audit.expect(200).json();
    let records = audit["items"].as_array().expect("records");
    assert_eq!(records.len(), 3, "{audit}");
    assert!(
        records.iter().all(|record| record["actor"].is_string()),
        "{audit}"
    );
    assert_eq!(records[0]["target"], "192.0.2.1/32");
}
