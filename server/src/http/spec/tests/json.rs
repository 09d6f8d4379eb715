//! Field by field, as JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::*;

fn fields(body: Value) -> Fields {
    match body {
        Value::Object(object) => Fields::from_json(object),
        other => panic!("{other} is not an object"),
    }
}

/// A minimal create with `changes` merged in; null removes.
fn with(changes: Value) -> Value {
    let mut body = json!({"name": "hello", "runtime": "python3", "code": {"inline": "x = 1"}});
    for (name, value) in changes.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

fn created(body: Value) -> Result<(FunctionSpec, Code), InvalidField> {
    create(fields(body))
}

fn patched(body: Value) -> Result<FunctionPatch, InvalidField> {
    patch(fields(body), Runtime::Python3, 8)
}

#[test]
fn defaults_are_the_contracts() {
    let (spec, code) = created(with(json!({}))).unwrap();
    assert_eq!(
        spec,
        FunctionSpec {
            name: "hello".into(),
            runtime: Runtime::Python3,
            handler: "main.handler".into(),
            memory_mb: 128,
            timeout_ms: 30_000,
            max_concurrency: 8,
            idle_timeout_s: 300,
            min_instances: 0,
            keep_warm: false,
            template_idle_timeout_s: 3600,
            start: crate::model::Start::Auto,
            network: Network::None,
            body: crate::model::BodyForm::Base64,
            public: false,
            triggers: Vec::new(),
            port_limits: crate::model::PortLimits::default(),
            cors: None,
            secrets: Vec::new(),
            env: Default::default(),
            copy_of: None,
        }
    );
    assert_eq!(source(&code), "x = 1");
}

#[test]
fn every_field_is_taken() {
    let (spec, code) = created(json!({
        "name": "a-1", "runtime": "node", "handler": "dir/my-mod.fn$", "memory_mb": 32, "timeout_ms": 900_000,
        "max_concurrency": 1000, "idle_timeout_s": 86_400, "min_instances": 1000, "network": "outbound", "public": true,
        "env": {"A": "1", "_b": ""}, "code": {"zip_base64": format!("{}\n", STANDARD.encode("PK\x03\x04"))},
    }))
    .unwrap();
    assert_eq!(spec.runtime, Runtime::Node);
    assert_eq!(spec.handler, "dir/my-mod.fn$");
    assert_eq!((spec.memory_mb, spec.timeout_ms), (32, 900_000));
    assert_eq!((spec.max_concurrency, spec.min_instances), (1000, 1000));
    assert_eq!(spec.network, Network::internet());
    assert!(spec.public);
    assert_eq!(spec.env["A"], "1");
    assert!(matches!(code, Code::Zip(_)));
    assert_eq!(content(&code), b"PK\x03\x04");
}

#[test]
fn wrong_values_are_refused_by_name() {
    let big = "x".repeat(5000);
    for (field, values) in [
        (
            "name",
            json!([
                "",
                "Hello",
                "1a",
                "-a",
                "a_b",
                "a b",
                "ä",
                "a".repeat(65),
                1,
                true,
                null,
                [],
                {}
            ]),
        ),
        (
            "runtime",
            json!(["python", "Python3", "python3 ", "ruby", 3, null]),
        ),
        (
            "handler",
            json!([
                "",
                "main",
                ".handler",
                "main.",
                "main..handler",
                "ma in.handler",
                "../main.handler",
                "/main.handler",
                "main.1x",
                "my-mod.handler",
                "m".repeat(128) + ".f",
                1,
                null
            ]),
        ),
        (
            "memory_mb",
            json!([
                0,
                31,
                16_385,
                -1,
                1.5,
                128.0,
                1e3,
                "128",
                true,
                null,
                4_294_967_296u64 + 128
            ]),
        ),
        ("timeout_ms", json!([0, 900_001, -5, "1s", 1.1, u64::MAX])),
        ("max_concurrency", json!([0, 1001, "8", false])),
        ("idle_timeout_s", json!([0, 86_401, "5m"])),
        ("min_instances", json!([-1, 9, 1001, "0", 0.5])),
        ("template_idle_timeout_s", json!([-1, 2_592_001, "0", null])),
        ("keep_warm", json!([1, "true", null])),
        ("network", json!(["all", "", null, true, "None"])),
        ("public", json!(["true", 1, 0, null])),
        ("env", json!([[], "A=1", 1, null, {"A": big}])),
        (
            "code",
            json!(["x = 1", null, 1, [], {}, {"inline": "a", "zip_base64": "UEs="}]),
        ),
    ] {
        for value in values.as_array().unwrap() {
            let error =
                created(with(json!({field: value}))).expect_err(&format!("{field}: {value}"));
            assert_eq!(error.field, field, "{value}");
            assert!(!error.rule.is_empty() && error.value.chars().count() <= 101);
        }
    }
}

#[test]
fn nested_fields_are_named_with_dots() {
    for (changes, field) in [
        (json!({"env": {"1A": "x"}}), "env.1A"),
        (json!({"env": {"": "x"}}), "env."),
        (json!({"env": {"A-B": "x"}}), "env.A-B"),
        (json!({"env": {"A=B": "x"}}), "env.A=B"),
        (json!({"env": {"HEARTH_X": "x"}}), "env.HEARTH_X"),
        (json!({"env": {"A": 1}}), "env.A"),
        (json!({"env": {"A": null}}), "env.A"),
        (json!({"env": {"A": "x\u{0}y"}}), "env.A"),
        (json!({"code": {"inline": 1}}), "code.inline"),
        (json!({"code": {"inline": " \n"}}), "code.inline"),
        (json!({"code": {"zip_base64": "!!"}}), "code.zip_base64"),
        (json!({"code": {"zip_base64": ""}}), "code.zip_base64"),
        (json!({"code": {"zip_base64": []}}), "code.zip_base64"),
        (json!({"code": {"git": "x"}}), "code.git"),
    ] {
        let error = created(with(changes)).unwrap_err();
        assert_eq!(error.field, field);
        if field.starts_with("env") {
            assert_eq!(error.value, "\"(hidden)\"");
        }
    }
}

#[test]
fn missing_and_unknown_fields_are_named() {
    for field in ["name", "runtime", "code"] {
        let mut body = with(json!({}));
        body.as_object_mut().unwrap().remove(field);
        let error = created(body).unwrap_err();
        assert_eq!(error.field, field);
        assert!(error.rule.starts_with("is required"), "{}", error.rule);
    }
    let error = created(with(json!({"memroy_mb": 1}))).unwrap_err();
    assert_eq!(error.field, "memroy_mb");
    assert!(
        error.rule.contains("did you mean memory_mb"),
        "{}",
        error.rule
    );
    let error = created(with(json!({"env.A": "x"}))).unwrap_err();
    assert_eq!(error.field, "env.A");
}

#[test]
fn wrong_types_are_named() {
    let error = created(with(json!({"memory_mb": "128"}))).unwrap_err();
    assert_eq!(
        error.to_string(),
        "memory_mb: \"128\" is not valid: must be a whole number from 32 to 16384; this is a string"
    );
}

#[test]
fn a_patch_changes_what_it_names() {
    let patch = patched(json!({"memory_mb": 64, "env": {"A": "1", "B": null}})).unwrap();
    assert_eq!(patch.memory_mb, Some(64));
    let env = patch.env.unwrap();
    assert_eq!(env["A"].as_deref(), Some("1"));
    assert_eq!(env["B"], None);
    assert_eq!(patch.timeout_ms, None);

    assert_eq!(
        patched(json!({"min_instances": 8})).unwrap().min_instances,
        Some(8)
    );
    let both = json!({"min_instances": 20, "max_concurrency": 20});
    assert_eq!(patched(both).unwrap().min_instances, Some(20));
    for (body, field) in [
        (json!({}), "body"),
        (json!({"name": "x"}), "name"),
        (json!({"runtime": "node"}), "runtime"),
        (json!({"code": {"inline": "x"}}), "code"),
        (json!({"url": "/fn/x"}), "url"),
        (json!({"min_instances": 9}), "min_instances"),
        (json!({"memory_mb": null}), "memory_mb"),
    ] {
        assert_eq!(patched(body).unwrap_err().field, field);
    }
    assert_eq!(still_room(3, 4).unwrap_err().field, "max_concurrency");
    assert!(still_room(4, 4).is_ok());
}
