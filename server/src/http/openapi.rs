//! `GET /openapi.json`: generated from the handlers, then completed with what all of them share.
//!
//! A handler lists its error codes in the extension `x-errors`; `x-invocation` marks responses with an invocation's
//! headers, `x-tagged` those with an `ETag`. [`complete`] replaces these by full responses from the catalogue of codes
//! and adds what every operation has: 401 and 403 where a token is required, 500, the request id.

mod constraints;
mod tags;
mod trigger;

use std::sync::LazyLock;

use axum::http::header;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde_json::{Map, Value, json};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{ComponentsBuilder, InfoBuilder, License, OpenApi, OpenApiBuilder};

use super::problem::{Problem, ProblemCode};
use super::router;

/// The finished document, made once.
static DOCUMENT: LazyLock<Bytes> =
    LazyLock::new(|| Bytes::from(complete(&router::table().into_openapi()).to_string()));

/// Get this document.
#[utoipa::path(
    get,
    path = "/openapi.json",
    tag = "node",
    operation_id = "openapi",
    responses((status = 200, description = "OpenAPI 3.1", body = serde_json::Value)),
)]
pub async fn document() -> Response {
    let headers = [(header::CONTENT_TYPE, "application/json")];
    (headers, DOCUMENT.clone()).into_response()
}

/// The part of the document that no handler knows.
pub(super) fn base() -> OpenApi {
    let mut license = License::new("Apache-2.0");
    license.identifier = Some("Apache-2.0".to_owned());
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some(
            "An API token. Each operation names the right it requires: read, invoke, write or admin. The console's \
             session cookie is also accepted; requests that change something then require X-CSRF-Token.",
        ))
        .build();
    OpenApiBuilder::new()
        .info(
            InfoBuilder::new()
                .title("Hearth")
                .version(env!("CARGO_PKG_VERSION"))
                .description(Some(
                    "A private function cloud on one Linux host. Errors are RFC 9457 problems with a stable `code`; \
                     times are RFC 3339 in UTC, durations whole µs unless a name says otherwise.",
                ))
                .license(Some(license))
                .build(),
        )
        .components(Some(
            ComponentsBuilder::new()
                .security_scheme("bearer", SecurityScheme::Http(bearer))
                .build(),
        ))
        .build()
}

/// Completes the generated document; see the module.
fn complete(generated: &OpenApi) -> Value {
    // The document is made of maps with string keys and plain values: it always serialises.
    let mut document = serde_json::to_value(generated).unwrap_or_default();
    document["components"]["schemas"]["Problem"] = problem_schema();
    if let Some(paths) = document["paths"].as_object_mut() {
        trigger::describe(paths);
        for operation in paths
            .values_mut()
            .filter_map(Value::as_object_mut)
            .flat_map(|p| p.values_mut())
        {
            if let Some(operation) = operation.as_object_mut() {
                complete_operation(operation);
            }
        }
    }
    constraints::add(&mut document);
    document
}

/// The document as the handlers gave it, for tests that go through all routes.
#[cfg(test)]
pub(super) fn generated() -> Value {
    serde_json::to_value(router::table().into_openapi()).unwrap_or_default()
}

fn complete_operation(operation: &mut Map<String, Value>) {
    let mut codes: Vec<ProblemCode> = match operation.remove("x-errors") {
        Some(Value::Array(names)) => names
            .iter()
            .filter_map(|name| ProblemCode::by_name(name.as_str()?))
            .collect(),
        _ => Vec::new(),
    };
    let has_invocation = operation.remove("x-invocation").is_some();
    let has_chain = operation.remove("x-chain-invocation").is_some();
    let is_tagged = tags::describe(operation, &mut codes);
    if operation.contains_key("security") {
        codes.extend([ProblemCode::Unauthorized, ProblemCode::Forbidden]);
    }
    if operation.contains_key("requestBody") || has_invocation || has_chain {
        codes.push(ProblemCode::RequestTimeout);
    }
    let takes_code = operation
        .get("requestBody")
        .is_some_and(|body| body["content"]["multipart/form-data"].is_object());
    if takes_code {
        codes.push(ProblemCode::TooManyUploads);
    }
    // Whatever is asked for, it is asked of a host, over a connection.
    codes.extend([
        ProblemCode::InvalidHost,
        ProblemCode::MisdirectedRequest,
        ProblemCode::Internal,
        ProblemCode::TooManyConnections,
    ]);
    let Some(responses) = operation
        .get_mut("responses")
        .and_then(Value::as_object_mut)
    else {
        return;
    };
    for code in codes {
        add_error(responses, code);
    }
    for (status, response) in responses {
        let headers = &mut response["headers"];
        headers["X-Request-Id"] =
            text_header("Request id: the client's own if it sent a valid one");
        let after_invocation = matches!(status.as_str(), "200" | "502" | "504" | "default");
        if has_invocation && after_invocation {
            headers["X-Hearth-Invocation-Id"] = text_header("UUIDv7 of the invocation");
            headers["X-Hearth-Start"] = json!({
                "description": "How its instance was started",
                "schema": {"type": "string", "enum": ["warm", "fork", "restore", "boot"]},
            });
            headers["X-Hearth-Version"] = json!({
                "description": "The version that ran",
                "schema": {"type": "integer", "minimum": 1},
            });
            headers["Server-Timing"] = text_header(
                "queue, start, send, run, recv, total: milliseconds, as `Stages` describes them; recv and total not while streaming",
            );
            headers["traceparent"] = text_header("The request's, if it was well-formed");
        }
        if has_chain && after_invocation {
            headers["X-Hearth-Invocation-Id"] = text_header("UUIDv7 of the request to the chain");
            headers["X-Hearth-Version"] = json!({
                "description": "The version of the chain that the request passed through",
                "schema": {"type": "integer", "minimum": 1},
            });
            headers["Server-Timing"] = text_header(
                "An entry for each hop, named after the member, with its time in milliseconds and the number of the instance; at \
                 last the total. At most 64 hops",
            );
            headers["traceparent"] = text_header("The request's, if it was well-formed");
        }
        if is_tagged && matches!(status.as_str(), "200" | "201" | "304" | "412") {
            headers["ETag"] = text_header(
                "Identifies the state: the configuration and, after a dash, a digest of the whole response",
            );
        }
        match status.as_str() {
            "401" | "403" => headers["WWW-Authenticate"] = text_header("The challenge of RFC 6750"),
            "429" => headers["Retry-After"] = text_header("Whole seconds, at least 1"),
            _ => {}
        }
    }
}

/// Adds a code to the response of its status: several codes share one, each with its example.
fn add_error(responses: &mut Map<String, Value>, code: ProblemCode) {
    let status = code.status().as_u16().to_string();
    let response = responses.entry(status).or_insert_with(|| {
        json!({
            "description": "",
            "content": {"application/problem+json": {
                "schema": {"$ref": "#/components/schemas/Problem"},
                "examples": {},
            }},
        })
    });
    let described = response["description"].as_str().unwrap_or_default();
    let separator = if described.is_empty() { "" } else { "; " };
    let description = format!("{described}{separator}`{}`: {}", code.name(), code.title());
    response["description"] = description.into();
    let example = Problem::new(code, code.title()).document("0195f2c3a1b2c3d4");
    response["content"]["application/problem+json"]["examples"][code.name()] =
        json!({"value": example});
}

fn text_header(description: &str) -> Value {
    json!({"description": description, "schema": {"type": "string"}})
}

fn problem_schema() -> Value {
    let names: Vec<&str> = ProblemCode::ALL.iter().map(|code| code.name()).collect();
    let text = |description: &str| json!({"type": "string", "description": description});
    json!({
        "type": "object",
        "description": "An error, RFC 9457",
        "required": ["type", "title", "status", "detail", "code", "request_id"],
        "properties": {
            "type": text("`urn:hearth:problem:` and the code"),
            "title": text("Summary; the same for every occurrence of the code"),
            "status": {"type": "integer"},
            "detail": text("What happened this time"),
            "code": {"type": "string", "enum": names, "description": "Stable"},
            "request_id": text("Also in X-Request-Id and the server log"),
            "field": text("`invalid_field`: the field's name, dotted if nested"),
            "value": {"description": "`invalid_field`: the value sent; a string if truncated to 100 characters"},
            "rule": text("`invalid_field`: what is allowed"),
            "reason": text("`invalid_package`: stable name of the problem with the archive"),
            "line": {"type": "integer", "description": "`invalid_json`: where"},
            "column": {"type": "integer", "description": "`invalid_json`: where"},
            "limit": {"type": "integer", "description": "`payload_too_large`, `result_too_large`: bytes"},
            "right": text("`forbidden`: the right that the caller lacks"),
            "scope": {"type": "array", "items": {"type": "string"},
                "description": "`forbidden`: the functions that the token is scoped to"},
            "errorType": text("`function_error`, `import_failed`: name of the exception's type"),
            "errorMessage": text("`function_error`, `import_failed`: its message"),
            "stackTrace": {"type": "array", "items": {"type": "string"},
                "description": "`function_error`, `import_failed`: one entry per frame, outermost first"},
            "member": text("Errors of a chain: the member that failed or was reached"),
            "hop": {"type": "integer", "description": "`chain_timeout`: the position in the route that was reached"},
            "logs": {"type": "array", "items": {"$ref": "#/components/schemas/LogLine"},
                "description": "`import_failed`: what the import printed"},
        },
    })
}

#[cfg(test)]
mod tests;
