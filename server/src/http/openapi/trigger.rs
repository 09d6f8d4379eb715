//! The HTTP trigger's part of the document. OpenAPI knows neither "any method" nor a path that goes on, so that one
//! operation per usual method is written down here.

use serde_json::{Map, Value, json};

use super::constraints::bytes;

const METHODS: [&str; 7] = ["get", "head", "post", "put", "patch", "delete", "options"];

/// Adds `/fn/{name}` and `/fn/{name}/{path}`.
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
            "description": "Any path, slashes included: the event's rawPath"}),
        );
    }
    let mut operation = json!({
        "tags": ["invocation"],
        "operationId": id,
        "summary": "Call a function over HTTP",
        "description": "Any method. The handler gets the request as AWS Lambda's payload format 2.0 and answers in it; \
            binary bodies are base64 in the event, answers are streamed. Bodies have no size limit. A token is needed \
            unless the function is public; our own token and the console's cookies are not passed on. Headers of the \
            connection, Content-Length and X-Hearth-* of the answer are not the function's to set.",
        "security": [{"bearer": ["invoke"]}, {}],
        "parameters": parameters,
        "responses": {"default": {
            "description": "The function's own status, headers and body",
            "headers": {"X-Hearth-Withheld-Headers": {
                "description": "Names of the function's headers that were not sent on, separated by commas, 512 bytes of \
                    them at most; absent where all were sent",
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
