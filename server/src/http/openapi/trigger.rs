//! The HTTP triggers' part of the document. OpenAPI has neither "any method" nor path wildcards, so this adds one
//! operation per common method.

use serde_json::{Map, Value, json};

use super::constraints::bytes;

const METHODS: [&str; 7] = ["get", "head", "post", "put", "patch", "delete", "options"];

/// Adds `/fn/{name}` and `/chain/{name}/{route}`, and what is below them.
pub(super) fn describe(paths: &mut Map<String, Value>) {
    for (address, suffix) in [("/fn/{name}", ""), ("/fn/{name}/{path}", "_path")] {
        let operations: Map<String, Value> = METHODS
            .iter()
            .map(|method| {
                let id = format!("trigger_{method}{suffix}");
                (
                    (*method).to_owned(),
                    operation(method, &id, !suffix.is_empty()),
                )
            })
            .collect();
        paths.insert(address.to_owned(), operations.into());
    }
    for (address, suffix) in [
        ("/chain/{name}/{route}", ""),
        ("/chain/{name}/{route}/{path}", "_path"),
    ] {
        let operations: Map<String, Value> = METHODS
            .iter()
            .map(|method| {
                let id = format!("chain_trigger_{method}{suffix}");
                let operation = chain_operation(method, &id, !suffix.is_empty());
                ((*method).to_owned(), operation)
            })
            .collect();
        paths.insert(address.to_owned(), operations.into());
    }
}

fn chain_operation(method: &str, id: &str, with_path: bool) -> Value {
    let mut operation = operation(method, id, with_path);
    let string = json!({"type": "string"});
    operation["tags"] = json!(["chains"]);
    operation["summary"] = json!("Call a chain over HTTP");
    operation["description"] = json!(
        "Any method. The first member's event and the last member's result use AWS Lambda's payload format 2.0, bodies that are not \
         text as base64; each may be as large as the chain's `pool.payload_kb` says. A token is required unless the chain is public; Hearth's tokens \
         and the console's cookies are not passed on. A chain cannot set connection headers, Content-Length or X-Hearth-*."
    );
    if let Some(parameters) = operation["parameters"].as_array_mut() {
        parameters[0]["description"] = json!("Name of the chain");
        let route = json!({"name": "route", "in": "path", "required": true, "schema": string, "description": "Name of the route"});
        parameters.insert(1, route);
    }
    if let Some(operation) = operation.as_object_mut() {
        operation.remove("x-invocation");
        operation.insert("x-chain-invocation".to_owned(), json!(true));
    }
    operation["x-errors"] = json!([
        "not_found",
        "bad_request_body",
        "payload_too_large",
        "function_error",
        "function_crashed",
        "result_too_large",
        "chain_rule_broken",
        "chain_pool_exhausted",
        "chain_unavailable",
        "shutting_down",
        "chain_timeout"
    ]);
    operation
}

fn operation(method: &str, id: &str, with_path: bool) -> Value {
    let string = json!({"type": "string"});
    let mut parameters = vec![
        json!({"name": "name", "in": "path", "required": true, "schema": string,
            "description": "Name of the function"}),
    ];
    if with_path {
        parameters.push(
            json!({"name": "path", "in": "path", "required": true, "schema": string,
            "description": "Any path, including slashes: the event's rawPath"}),
        );
    }
    let mut operation = json!({
        "tags": ["invocation"],
        "operationId": id,
        "summary": "Call a function over HTTP",
        "description": "Any method. Request and response use AWS Lambda's payload format 2.0; \
            binary bodies are base64 in the event, responses are streamed. Bodies have no size limit. A token is \
            required unless the function is public; Hearth's tokens and the console's cookies are not passed on. A \
            function cannot set connection headers, Content-Length or X-Hearth-*.",
        "security": [{"bearer": ["invoke"]}, {}],
        "parameters": parameters,
        "responses": {"default": {
            "description": "The function's own status, headers and body",
            "headers": {"X-Hearth-Withheld-Headers": {
                "description": "Names of the function's headers that were dropped, comma-separated, 512 bytes at most; \
                    absent if none were",
                "schema": {"type": "string"},
            }},
                        "content": {"*/*": {"schema": bytes()}},
        }},
        "x-invocation": true,
        "x-errors": ["not_found", "bad_request_body", "too_many_requests", "function_error", "function_crashed",
            "function_out_of_memory", "function_unavailable", "host_exhausted", "shutting_down", "function_timeout"],
    });
    if matches!(method, "post" | "put" | "patch" | "delete") {
        operation["requestBody"] =
            json!({"content": {"*/*": {"schema": bytes()}}, "required": false});
    }
    operation
}
