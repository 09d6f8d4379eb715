//! Content types, forms and files.

use axum::body::Body;
use axum::extract::Request;
use serde_json::Value;

use super::*;
use crate::http::problem::{Problem, ProblemCode};
use crate::uploads::Uploads;

fn uploads() -> Uploads {
    Uploads::for_tests()
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
    Ok(create(upload(form(parts), &uploads()).await?)?)
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
    assert_eq!(spec.network, Network::internet());
    assert_eq!(spec.env["A"], "1");
    assert_eq!(spec.env["B"], "two = 2");
    assert_eq!(source(&code), "x = 'ä'");
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
        upload(broken, &uploads()).await.unwrap_err().code(),
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
        code(upload(request(wrong, b"{}"), &uploads()).await.unwrap_err()),
        "unsupported_media_type"
    );
    assert_eq!(
        code(json_fields(request("text/json", b"{}")).await.unwrap_err()),
        "unsupported_media_type"
    );
    assert!(
        upload(
            request("Application/JSON; charset=utf-8", b"{}"),
            &uploads()
        )
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
            upload(request("application/json", b"{]"), &uploads())
                .await
                .unwrap_err()
        ),
        "invalid_json"
    );
    assert_eq!(
        code(
            upload(request("application/json", b"[]"), &uploads())
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
        let fields = code_upload(request(kind, body), &uploads()).await?;
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

/// Archives of all sizes are the same however they come: in memory, or by the disk.
#[tokio::test]
async fn an_archive_is_the_same_by_every_way() {
    use base64::Engine as _;
    for bytes in [5, 400_000, 3_000_001] {
        let mut zip = b"PK\x03\x04".to_vec();
        zip.extend((0..bytes).map(|at| (at % 253) as u8));
        let text = base64::engine::general_purpose::STANDARD.encode(&zip);
        let json = serde_json::json!({"code": {"zip_base64": text}}).to_string();
        let parts: [(&str, Option<&str>, &[u8]); 1] = [("code", Some("a.zip"), &zip)];
        for request in [
            request("application/json", json.as_bytes()),
            request("application/zip", &zip),
            form(&parts),
        ] {
            let fields = code_upload(request, &uploads()).await.unwrap();
            let code = code_only(fields, Runtime::Python3).unwrap();
            assert!(content(&code) == zip, "{bytes}");
        }
    }
}

#[tokio::test]
async fn source_has_a_limit_of_its_own() {
    let limit = MAX_SOURCE_BYTES;
    for (bytes, taken) in [(limit, true), (limit + 1, false)] {
        let text = vec![b'x'; bytes];
        let json = serde_json::json!({"code": {"inline": String::from_utf8_lossy(&text)}});
        let json = json.to_string();
        let as_text: [(&str, Option<&str>, &[u8]); 1] = [("code", None, &text)];
        let as_file: [(&str, Option<&str>, &[u8]); 1] = [("code", Some("a.py"), &text)];
        for request in [
            request("application/json", json.as_bytes()),
            request("text/x-python", &text),
            form(&as_text),
            form(&as_file),
        ] {
            let read = async {
                let fields = code_upload(request, &uploads()).await?;
                Ok::<_, Problem>(code_only(fields, Runtime::Python3)?)
            };
            match read.await {
                Ok(code) => assert!(taken && content(&code).len() == bytes),
                Err(problem) => {
                    assert!(!taken, "{problem:?}");
                    let code = problem.code();
                    let refused = [ProblemCode::InvalidField, ProblemCode::PayloadTooLarge];
                    assert!(refused.contains(&code), "{code:?}");
                }
            }
        }
    }
    // JSON of nothing but other text, and a form of many fields, end where the text does.
    let long = "x".repeat(2 * limit + (1 << 20));
    let json = serde_json::json!({"name": long, "code": {"zip_base64": "UEs="}}).to_string();
    let refused = upload(request("application/json", json.as_bytes()), &uploads()).await;
    assert_eq!(refused.unwrap_err().code(), ProblemCode::PayloadTooLarge);
    let value = vec![b'x'; 60 << 10];
    let names: Vec<String> = (0..160).map(|number| format!("env.A{number}")).collect();
    let parts: Vec<_> = names
        .iter()
        .map(|name| (name.as_str(), None, value.as_slice()))
        .collect();
    let refused = create_form(&parts).await.unwrap_err();
    assert_eq!(refused.code(), ProblemCode::PayloadTooLarge);
}
