//! Every field of the contract: out of range, of the wrong type, unknown, missing.

use axum::body::Body;
use axum::extract::Request;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::*;
use crate::http::problem::{Code as ProblemCode, Problem};

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
            network: Network::None,
            public: false,
            env: Default::default(),
        }
    );
    assert_eq!(code, Code::Inline("x = 1".into()));
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
    assert_eq!(spec.network, Network::Outbound);
    assert!(spec.public);
    assert_eq!(spec.env["A"], "1");
    assert_eq!(code, Code::Zip(bytes::Bytes::from_static(b"PK\x03\x04")));
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

/// A form of (name, file name, content).
fn form(parts: &[(&str, Option<&str>, &[u8])]) -> Request {
    let mut body = Vec::new();
    for (name, file, content) in parts {
        body.extend(b"--BOUND\r\nContent-Disposition: form-data; name=\"");
        body.extend(name.as_bytes());
        body.extend(b"\"");
        if let Some(file) = file {
            body.extend(format!("; filename=\"{file}\"").as_bytes());
        }
        body.extend(b"\r\n\r\n");
        body.extend(*content);
        body.extend(b"\r\n");
    }
    body.extend(b"--BOUND--\r\n");
    Request::builder()
        .header("content-type", "multipart/form-data; boundary=BOUND")
        .body(Body::from(body))
        .unwrap()
}

async fn create_form(
    parts: &[(&str, Option<&str>, &[u8])],
) -> Result<(FunctionSpec, Code), Problem> {
    Ok(create(upload(form(parts)).await?)?)
}

/// The form that the contract promises to take, with another file.
async fn with_file(runtime: &str, file: &str, content: &[u8]) -> Result<Code, Problem> {
    let parts: [(&str, Option<&str>, &[u8]); 3] = [
        ("name", None, b"hello"),
        ("runtime", None, runtime.as_bytes()),
        ("code", Some(file), content),
    ];
    create_form(&parts).await.map(|(_, code)| code)
}

#[tokio::test]
async fn the_forms_fields_are_the_json_ones() {
    let (spec, code) = create_form(&[
        ("name", None, b"hello"),
        ("runtime", None, b"python3"),
        ("memory_mb", None, b"256"),
        ("public", None, b"true"),
        ("network", None, b"outbound"),
        ("env", None, br#"{"A": "1"}"#),
        ("env.B", None, b"two = 2"),
        ("code", Some("hello.py"), "x = 'ä'".as_bytes()),
    ])
    .await
    .unwrap();
    assert_eq!((spec.memory_mb, spec.public), (256, true));
    assert_eq!(spec.network, Network::Outbound);
    assert_eq!(spec.env["A"], "1");
    assert_eq!(spec.env["B"], "two = 2");
    assert_eq!(code, Code::Inline("x = 'ä'".into()));
}

#[tokio::test]
async fn files_are_told_apart_by_name_and_content() {
    let zip: &[u8] = b"PK\x03\x04rest";
    assert!(matches!(
        with_file("python3", "a.zip", zip).await,
        Ok(Code::Zip(_))
    ));
    assert!(matches!(
        with_file("python3", "A.ZIP", b"no zip").await,
        Ok(Code::Zip(_))
    ));
    assert!(matches!(
        with_file("python3", "a.bin", zip).await,
        Ok(Code::Zip(_))
    ));
    assert!(matches!(
        with_file("node", "a.mjs", b"1").await,
        Ok(Code::Inline(_))
    ));
    for (runtime, file, content) in [
        ("python3", "a.js", &b"1"[..]),
        ("node", "a.py", b"1"),
        ("python3", "a.txt", b"1"),
        ("python3", "noextension", b"1"),
        ("python3", "a.py", b"\xff\xfe"),
        ("python3", "a.py", b""),
    ] {
        let problem = with_file(runtime, file, content).await.unwrap_err();
        assert_eq!(problem.code(), ProblemCode::InvalidField, "{file}");
        assert_eq!(problem.document("")["field"], "code");
    }
}

#[tokio::test]
async fn bad_forms_are_refused() {
    let long = vec![b'x'; 100_000];
    for (parts, code, field) in [
        (
            vec![("name", None, &b"a"[..]), ("name", None, b"b")],
            "invalid_field",
            "name",
        ),
        (
            vec![("env.A", None, &b"1"[..]), ("env.A", None, b"2")],
            "invalid_field",
            "env.A",
        ),
        (
            vec![("name", Some("f"), &b"a"[..])],
            "invalid_field",
            "name",
        ),
        (
            vec![("memory_mb", None, &b"12x"[..])],
            "invalid_field",
            "name",
        ),
        (vec![("name", None, &b"\xff"[..])], "invalid_field", "name"),
        (vec![("nmae", None, &b"a"[..])], "invalid_field", "nmae"),
        (vec![("env", None, &long[..])], "payload_too_large", ""),
    ] {
        let problem = create_form(&parts).await.unwrap_err();
        assert_eq!(problem.code().name(), code);
        assert_eq!(
            problem
                .document("")
                .get("field")
                .and_then(Value::as_str)
                .unwrap_or_default(),
            field
        );
    }
    let broken = Request::builder()
        .header("content-type", "multipart/form-data; boundary=BOUND")
        .body(Body::from(
            "--BOUND\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nno end",
        ))
        .unwrap();
    assert_eq!(
        upload(broken).await.unwrap_err().code(),
        ProblemCode::InvalidMultipart
    );
}

fn request(kind: &str, body: &[u8]) -> Request {
    let request = Request::builder().header("content-type", kind);
    request.body(Body::from(body.to_vec())).unwrap()
}

#[tokio::test]
async fn content_types_are_checked() {
    let code = |problem: Problem| problem.code().name();
    let wrong = "application/x-www-form-urlencoded";
    assert_eq!(
        code(upload(request(wrong, b"{}")).await.unwrap_err()),
        "unsupported_media_type"
    );
    assert_eq!(
        code(json_fields(request("text/json", b"{}")).await.unwrap_err()),
        "unsupported_media_type"
    );
    assert!(
        upload(request("Application/JSON; charset=utf-8", b"{}"))
            .await
            .is_ok()
    );
    assert!(
        json_fields(request("application/merge-patch+json", b"{}"))
            .await
            .is_ok()
    );
    assert_eq!(
        code(
            upload(request("application/json", b"{]"))
                .await
                .unwrap_err()
        ),
        "invalid_json"
    );
    assert_eq!(
        code(
            upload(request("application/json", b"[]"))
                .await
                .unwrap_err()
        ),
        "invalid_field"
    );
    let large = vec![b' '; 300 << 10];
    assert_eq!(
        code(
            json_fields(request("application/json", &large))
                .await
                .unwrap_err()
        ),
        "payload_too_large"
    );
}

#[tokio::test]
async fn code_can_be_the_body_itself() {
    let read = async |kind: &str, body: &[u8]| {
        let fields = code_upload(request(kind, body)).await?;
        Ok::<_, Problem>(code_only(fields, Runtime::Python3)?)
    };
    assert!(matches!(
        read("text/x-python", b"x = 1").await,
        Ok(Code::Inline(_))
    ));
    assert!(matches!(
        read("application/octet-stream", b"PK\x03\x04").await,
        Ok(Code::Zip(_))
    ));
    assert!(matches!(
        read("application/octet-stream", b"x = 1").await,
        Ok(Code::Inline(_))
    ));
    assert!(matches!(
        read("application/zip", b"no zip").await,
        Ok(Code::Zip(_))
    ));
    let json = br#"{"code": {"inline": "x = 1"}}"#;
    assert!(matches!(
        read("application/json", json).await,
        Ok(Code::Inline(_))
    ));
    let extra = br#"{"code": {"inline": "x = 1"}, "memory_mb": 64}"#;
    assert_eq!(
        read("application/json", extra)
            .await
            .unwrap_err()
            .document("")["field"],
        "memory_mb"
    );
    for (body, code) in [(&b""[..], "invalid_field"), (b"\xff", "invalid_field")] {
        assert_eq!(
            read("text/plain", body).await.unwrap_err().code().name(),
            code
        );
    }
    assert!(read("image/png", b"x").await.is_err());
}
