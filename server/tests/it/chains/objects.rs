//! Create, list, get, change, versions, delete; who may; what the audit log says.

use std::time::Duration;

use reqwest::{Method, StatusCode, header};
use serde_json::{Value, json};

use super::{CHAINS, SHOP, field_of, named, settings, with_functions, with_shop};
use crate::support::eventually;

/// Longest wait for members that have nothing to do.
const REST: Duration = Duration::from_secs(30);

/// What does not depend on when.
fn without_times(mut chain: Value) -> Value {
    let object = chain.as_object_mut().expect("a chain");
    for field in ["created_at", "updated_at"] {
        let time = object.remove(field).expect("a time");
        let time: jiff::Timestamp = time.as_str().unwrap().parse().expect("RFC 3339");
        assert!(time.as_second() > 1_700_000_000);
    }
    for live in ["state", "state_reason", "live", "versions", "url"] {
        object.remove(live);
    }
    chain
}

#[tokio::test]
async fn a_chain_with_only_what_is_required_has_the_documented_defaults() {
    let (server, client) = with_functions().await;
    let created = client.post(CHAINS, &named("shop")).await.expect(201);
    assert_eq!(created.header("location"), SHOP);
    let expected = json!({
        "name": "shop",
        "active_version": 1,
        "members": {
            "cart": {"function": "cart", "version": null, "concurrency": 1, "payload": "json"},
            "pay": {"function": "payment", "version": null, "concurrency": 1, "payload": "json"},
        },
        "routes": {"checkout": ["cart", "pay"]},
        "edges": [],
        "pool": {"block_kb": 64, "blocks": 1024, "payload_kb": null, "huge_pages": false},
        "transport": "auto",
        "timeout_ms": 30_000,
        "cpu": "shared",
        "cpu_us": {},
        "cpu_cores": [],
        "public": false,
        "triggers": [],
        "port_limits": {"per_source": null, "total": null},
    });
    assert_eq!(without_times(created.json()), expected);
    let got = client.get(SHOP).await.expect(200).json();
    assert_eq!(got["versions"].as_array().map(Vec::len), Some(1));
    assert_eq!(got["versions"][0]["active"], true);
    assert_eq!(without_times(got), expected);
    let list = client.get(CHAINS).await.expect(200).json();
    assert_eq!(without_times(list["items"][0].clone()), expected);

    // What is acknowledged is there after the server was killed.
    let server = server.restart();
    let got = server.client().get(SHOP).await.expect(200).json();
    assert_eq!(without_times(got), expected);
}

#[tokio::test]
async fn versions_are_immutable_and_any_of_them_can_be_activated() {
    let (_server, client) = with_shop().await;
    let all = json!({
        "members": {"cart": {"function": "cart", "version": 1, "concurrency": 2, "payload": "block"}, "pay": {"function": "payment"}},
        "routes": {"checkout": ["cart", "pay"], "back": ["cart", "gateway", "pay", "cart"]},
        "edges": [["cart", "pay"]],
        "pool": {"block_kb": 4, "blocks": 32, "payload_kb": 64, "huge_pages": false},
        "transport": "ring", "timeout_ms": 700, "public": true,
        "cpu": "proportional", "cpu_us": {"cart": 120, "pay": 1}, "cpu_cores": [0],
    });
    let second = client.patch(SHOP, &all).await.expect(200).json();
    assert_eq!(second["active_version"], 2);
    for (field, value) in all.as_object().unwrap() {
        let mut value = value.clone();
        if field == "members" {
            value["pay"] = json!({"function": "payment", "version": null, "concurrency": 1, "payload": "json"});
        }
        assert_eq!(second[field], value, "{field}");
    }
    let same = client.patch(SHOP, &json!({"timeout_ms": 700})).await;
    assert_eq!(same.expect(200).json()["active_version"], 2);

    let back = format!("{SHOP}/versions/1/activate");
    let back = client.post(&back, &json!(null)).await.expect(200).json();
    assert_eq!(
        (&back["active_version"], &back["timeout_ms"]),
        (&json!(1), &json!(30_000))
    );
    let put = client.put(SHOP, &all).await.expect(200).json();
    assert_eq!(put["active_version"], 3, "the number follows the newest");
    let versions = client
        .get(&format!("{SHOP}/versions"))
        .await
        .expect(200)
        .json();
    let numbers: Vec<_> = versions["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["version"])
        .collect();
    assert_eq!(json!(numbers), json!([3, 2, 1]));
    for wrong in ["4", "0", "x", "-1"] {
        let path = format!("{SHOP}/versions/{wrong}/activate");
        client
            .post(&path, &json!(null))
            .await
            .problem(404, "not_found");
    }
}

#[tokio::test]
async fn put_creates_replaces_and_is_idempotent() {
    let (_server, client) = with_functions().await;
    let created = client.put(SHOP, &settings()).await.expect(201);
    assert_eq!(created.header("location"), SHOP);
    assert_eq!(
        client.put(SHOP, &named("shop")).await.expect(200).json()["active_version"],
        1
    );
    let mut other = settings();
    other["timeout_ms"] = json!(9);
    assert_eq!(
        client.put(SHOP, &other).await.expect(200).json()["active_version"],
        2
    );
    let reset = client.put(SHOP, &settings()).await.expect(200).json();
    assert_eq!(
        reset["timeout_ms"], 30_000,
        "what is left out has its default again"
    );
    assert_eq!(field_of(client.put(SHOP, &named("another")).await), "name");
    client
        .post(CHAINS, &named("shop"))
        .await
        .problem(409, "already_exists");
}

#[tokio::test]
async fn a_wrong_field_is_named_and_nothing_is_changed() {
    let (_server, client) = with_shop().await;
    let before = client.get(SHOP).await.expect(200).json();
    let member = |value: Value| json!({"cart": value, "pay": {"function": "payment"}});
    for (field, body) in [
        ("body", json!({})),
        ("name", json!({"name": "shop"})),
        ("cores", json!({"cores": 2})),
        ("cpu", json!({"cpu": "all"})),
        ("cpu_cores", json!({"cpu": "dedicated"})),
        ("cpu_cores[1]", json!({"cpu_cores": [1, 1]})),
        (
            "cpu_cores[0]",
            json!({"cpu": "dedicated", "cpu_cores": [127]}),
        ),
        ("cpu_us.cart", json!({"cpu": "proportional"})),
        ("cpu_us.nobody", json!({"cpu_us": {"nobody": 1}})),
        ("cpu_us.pay", json!({"cpu_us": {"pay": 1_000_001}})),
        (
            "members.cart.function",
            json!({"members": member(json!({"function": "nobody"}))}),
        ),
        (
            "members.cart.version",
            json!({"members": member(json!({"function": "cart", "version": 2}))}),
        ),
        (
            "members.cart.concurrency",
            json!({"members": member(json!({"function": "cart", "concurrency": 65}))}),
        ),
        (
            "members.cart.concurrency",
            json!({"members": member(json!({"function": "cart", "concurrency": 9}))}),
        ),
        // The present routes need the member that would be gone.
        (
            "routes.checkout[1]",
            json!({"members": {"cart": {"function": "cart"}}}),
        ),
        (
            "routes.checkout[0]",
            json!({"routes": {"checkout": ["nobody"]}}),
        ),
        ("edges[0][1]", json!({"edges": [["cart", "nobody"]]})),
        ("pool.block_kb", json!({"pool": {"block_kb": 100}})),
        ("pool.payload_kb", json!({"pool": {"payload_kb": 100}})),
        ("transport", json!({"transport": "tcp"})),
        ("timeout_ms", json!({"timeout_ms": 0})),
        ("public", json!({"public": 1})),
    ] {
        assert_eq!(field_of(client.patch(SHOP, &body).await), field, "{body}");
        let mut whole = named("new");
        for (name, value) in body.as_object().unwrap() {
            whole[name] = value.clone();
        }
        if !["body", "name"].contains(&field) {
            assert_eq!(
                field_of(client.post(CHAINS, &whole).await),
                field,
                "{whole}"
            );
        }
    }
    let request = client
        .request(Method::PATCH, SHOP)
        .header(header::CONTENT_TYPE, "application/json");
    client
        .send(request.body("{"))
        .await
        .problem(400, "invalid_json");
    let mut after = client.get(SHOP).await.expect(200).json();
    let mut before = before;
    for live in ["live", "state"] {
        for chain in [&mut before, &mut after] {
            chain.as_object_mut().unwrap().remove(live);
        }
    }
    assert_eq!(after, before);
    client
        .get("/api/v1/chains/new")
        .await
        .problem(404, "not_found");
}

#[tokio::test]
async fn a_change_is_made_to_what_it_is_meant_for_or_not_at_all() {
    let (_server, client) = with_shop().await;
    // The members may still use some processor time, which is in the answer.
    let first = eventually("nothing moves", REST, || async {
        let tag = client.get(SHOP).await.expect(200).header("etag").to_owned();
        let kept = client
            .request(Method::GET, SHOP)
            .header(header::IF_NONE_MATCH, &tag);
        let answer = client.send(kept).await;
        (answer.status == StatusCode::NOT_MODIFIED).then_some(tag)
    })
    .await;
    client
        .patch(SHOP, &json!({"timeout_ms": 5}))
        .await
        .expect(200);
    let activate = format!("{SHOP}/versions/1/activate");
    for (method, path, body) in [
        (Method::PATCH, SHOP, json!({"timeout_ms": 6})),
        (Method::PUT, SHOP, settings()),
        (Method::POST, &activate, json!({})),
        (Method::DELETE, SHOP, json!({})),
    ] {
        let request = client
            .request(method, path)
            .header(header::IF_MATCH, &first);
        client
            .send(request.json(&body))
            .await
            .problem(412, "precondition_failed");
    }
    let now = client.get(SHOP).await.expect(200);
    assert_eq!(now.json()["active_version"], 2);
    let request = client
        .request(Method::DELETE, SHOP)
        .header(header::IF_MATCH, now.header("etag"));
    client.send(request).await.expect(204);
    client.get(SHOP).await.problem(404, "not_found");
}

#[tokio::test]
async fn who_lacks_a_right_changes_nothing_and_who_is_limited_to_functions_sees_no_chain() {
    let (server, client) = with_shop().await;
    let token = async |body: Value| {
        let made = client
            .post("/api/v1/tokens", &body)
            .await
            .expect(201)
            .json();
        server.client_with(Some(made["token"].as_str().expect("a secret")))
    };
    let reader = token(json!({"name": "r", "rights": ["read"]})).await;
    reader.get(SHOP).await.expect(200);
    let limited =
        token(json!({"name": "l", "rights": ["read", "write"], "scope": ["cart", "payment"]}))
            .await;
    for (client, reads) in [
        (&reader, true),
        (&limited, false),
        (&server.client_with(None), false),
    ] {
        let status = client.get(CHAINS).await.status;
        assert_eq!(status == 200, reads, "{status}");
        for (method, path) in [
            (Method::POST, CHAINS.to_owned()),
            (Method::PUT, SHOP.to_owned()),
            (Method::PATCH, SHOP.to_owned()),
            (Method::DELETE, SHOP.to_owned()),
            (Method::POST, format!("{SHOP}/versions/1/activate")),
        ] {
            let request = client.request(method, &path).json(&settings());
            let status = client.send(request).await.status.as_u16();
            assert!([401, 403].contains(&status), "{path}: {status}");
        }
    }
    client.get(SHOP).await.expect(200);
}

#[tokio::test]
async fn the_audit_log_has_every_change_and_no_refusal() {
    let (_server, client) = with_functions().await;
    client.post(CHAINS, &named("shop")).await.expect(201);
    client
        .put("/api/v1/chains/other", &settings())
        .await
        .expect(201);
    client
        .patch(SHOP, &json!({"timeout_ms": 5, "public": true}))
        .await
        .expect(200);
    client
        .patch(SHOP, &json!({"timeout_ms": 0}))
        .await
        .expect(422);
    client
        .post(&format!("{SHOP}/versions/1/activate"), &json!(null))
        .await
        .expect(200);
    client.delete(SHOP).await.expect(204);
    let audit = client.get("/api/v1/audit?limit=5").await.expect(200).json();
    let told: Vec<String> = audit["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            let text = |field: &str| one[field].as_str().unwrap_or_default().to_owned();
            format!("{} {} {}", text("action"), text("target"), text("detail"))
        })
        .collect();
    assert_eq!(
        told,
        [
            "chain.delete shop ",
            "chain.activate shop version 1",
            "chain.settings shop timeout_ms, public, version 2",
            "chain.create other ",
            "chain.create shop ",
        ]
    );
}
