//! Each rule of a chain, by the field that its breach names.

use serde_json::{Value, json};

use super::*;

pub(in crate::model::chain) fn boutique() -> Spec {
    serde_json::from_value(json_boutique()).expect("a chain")
}

fn json_boutique() -> Value {
    json!({
        "name": "boutique",
        "members": {
            "cart": {"function": "cart-py", "version": 3, "concurrency": 2},
            "payment": {"function": "payment"},
            "email": {"function": "cart-py", "version": null},
        },
        "routes": {
            "checkout": ["cart", "payment", "email"],
            "visit": ["cart", "gateway", "cart", "cart"],
        },
        "edges": [["cart", "payment"], ["payment", "cart"]],
        "pool": {"block_kb": 64, "blocks": 1024},
        "transport": "auto",
        "timeout_ms": 30_000,
    })
}

/// The refusal of the boutique with one place of it replaced.
fn refusal(pointer: &str, value: Value) -> InvalidField {
    let mut chain = json_boutique();
    let (parent, name) = pointer.rsplit_once('/').expect("a pointer");
    chain.pointer_mut(parent).expect("a place")[name] = value;
    let spec: Spec = serde_json::from_value(chain).expect("the right types");
    spec.check().expect_err("a refusal")
}

fn many(count: usize, value: &Value) -> Value {
    let named = (0..count).map(|at| (format!("m{at}"), value.clone()));
    Value::Object(named.collect())
}

#[test]
fn a_chain_keeps_its_rules_and_defaults() {
    let spec = boutique();
    assert_eq!(spec.check(), Ok(()));
    assert_eq!(spec.members["payment"].concurrency, 1);
    assert_eq!(spec.routes["visit"][1], Hop::Gateway);
    assert_eq!(spec.pool.bytes(), 64 << 20);
    assert!(!spec.pool.huge_pages && !spec.public);
    let stored = serde_json::to_value(&spec).expect("JSON");
    assert_eq!(stored["routes"], json_boutique()["routes"]);
    assert_eq!(stored["edges"], json_boutique()["edges"]);
    assert_eq!(
        serde_json::from_value::<Spec>(stored).expect("a chain"),
        spec
    );
}

#[test]
fn loops_and_256_hops_are_a_route() {
    let mut spec = boutique();
    let hops = vec![Hop::Member("cart".into()); MAX_HOPS];
    spec.routes.insert("loop".into(), hops);
    spec.edges.push(("cart".into(), "cart".into()));
    assert_eq!(spec.check(), Ok(()));
}

#[test]
fn each_wrong_field_is_named() {
    let member = json!({"function": "f", "concurrency": 64});
    let long = "n".repeat(65);
    for (pointer, value, field) in [
        ("/name", json!("Boutique"), "name"),
        ("/name", json!(long), "name"),
        ("/members", json!({}), "members"),
        ("/members", many(65, &json!({"function": "f"})), "members"),
        ("/members", many(2, &member), "members"),
        (
            "/members/gateway",
            json!({"function": "f"}),
            "members.gateway",
        ),
        ("/members/A", json!({"function": "f"}), "members.A"),
        ("/members/cart/function", json!(""), "members.cart.function"),
        ("/members/cart/version", json!(0), "members.cart.version"),
        (
            "/members/cart/concurrency",
            json!(0),
            "members.cart.concurrency",
        ),
        (
            "/members/cart/concurrency",
            json!(65),
            "members.cart.concurrency",
        ),
        ("/routes", json!({}), "routes"),
        ("/routes", many(257, &json!(["cart"])), "routes"),
        ("/routes/a_b", json!(["cart"]), "routes.a_b"),
        ("/routes/visit", json!([]), "routes.visit"),
        ("/routes/visit", json!(vec!["cart"; 257]), "routes.visit"),
        ("/routes/visit", json!(["cart", "card"]), "routes.visit[1]"),
        (
            "/routes/visit",
            json!(["gateway", "cart"]),
            "routes.visit[0]",
        ),
        (
            "/routes/visit",
            json!(["cart", "gateway"]),
            "routes.visit[1]",
        ),
        (
            "/routes/visit",
            json!(["cart", "gateway", "gateway", "cart"]),
            "routes.visit[2]",
        ),
        (
            "/edges",
            json!([["cart", "payment"], ["cart", "x"]]),
            "edges[1][1]",
        ),
        ("/edges", json!([["gateway", "cart"]]), "edges[0][0]"),
        (
            "/edges",
            json!([["cart", "email"], ["email", "cart"], ["cart", "email"]]),
            "edges[2]",
        ),
        ("/edges", json!(vec![["cart", "email"]; 4097]), "edges"),
        ("/pool/block_kb", json!(2), "pool.block_kb"),
        ("/pool/block_kb", json!(96), "pool.block_kb"),
        ("/pool/block_kb", json!(16384), "pool.block_kb"),
        ("/pool/blocks", json!(0), "pool.blocks"),
        ("/pool/blocks", json!(65_537), "pool.blocks"),
        (
            "/pool",
            json!({"block_kb": 8192, "blocks": 8193}),
            "pool.blocks",
        ),
        ("/pool/payload_kb", json!(0), "pool.payload_kb"),
        ("/pool/payload_kb", json!(32), "pool.payload_kb"),
        ("/pool/payload_kb", json!(100), "pool.payload_kb"),
        ("/pool/payload_kb", json!(65_600), "pool.payload_kb"),
        (
            "/pool",
            json!({"block_kb": 64, "blocks": 16, "payload_kb": 576}),
            "pool.payload_kb",
        ),
        (
            "/pool",
            json!({"block_kb": 64, "blocks": 1, "payload_kb": 128}),
            "pool.payload_kb",
        ),
        ("/timeout_ms", json!(0), "timeout_ms"),
        ("/timeout_ms", json!(900_001), "timeout_ms"),
    ] {
        let found = refusal(pointer, value);
        assert_eq!(found.field, field, "{pointer}: {found}");
        assert!(!found.rule.is_empty());
    }
}

#[test]
fn a_refusal_says_what_would_be_right() {
    let found = refusal("/routes/visit", json!(["card"]));
    assert_eq!(found.value, "\"card\"");
    let rule = "must be a member of the chain: one of cart, email, payment, gateway";
    assert_eq!(found.rule, rule);
    let long = refusal("/members/cart/function", json!("F".repeat(1000)));
    assert_eq!(long.value.chars().count(), SHOWN_CHARS + 1);
}

#[test]
fn a_port_has_a_route_of_its_chain() {
    let udp = |route: Value| json!({"protocol": "udp", "port": 9000, "route": route});
    let tcp = |mode: &str, route: Value| json!({"protocol": "tcp", "port": 9001, "mode": mode, "route": route});
    let with = |triggers: Value| {
        let mut chain = json_boutique();
        chain["triggers"] = triggers;
        serde_json::from_value::<Spec>(chain).expect("the right types")
    };
    let good = json!([
        udp(json!("visit")),
        tcp("http", json!(null)),
        tcp("raw", json!("visit"))
    ]);
    assert_eq!(with(good).check(), Ok(()));
    for (triggers, field, rule) in [
        (
            json!([udp(json!("visit")), udp(json!("x"))]),
            "triggers[1].route",
            "must be a route of the chain: one of checkout, visit",
        ),
        (
            json!([tcp("http", json!("x"))]),
            "triggers[0].route",
            "must be a route of the chain: one of checkout, visit",
        ),
        (
            json!([udp(json!(null))]),
            "triggers[0].route",
            "must be given, because the chain has several routes: one of checkout, visit",
        ),
        (
            json!([tcp("http", json!(null)), tcp("raw", json!(null))]),
            "triggers[1].route",
            "must be given, because the chain has several routes: one of checkout, visit",
        ),
    ] {
        let found = with(triggers).check().expect_err("a refusal");
        assert_eq!((found.field.as_str(), found.rule.as_str()), (field, rule));
    }
    // The same when routes change: with one route a port needs to name none, and cannot keep one that is gone.
    let mut one = with(json!([udp(json!(null)), tcp("raw", json!(null))]));
    one.routes.remove("checkout");
    assert_eq!(one.check(), Ok(()));
    let mut gone = with(json!([udp(json!("checkout"))]));
    gone.routes.remove("checkout");
    assert_eq!(gone.check().expect_err("gone").field, "triggers[0].route");
}
