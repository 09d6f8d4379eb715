//! What operations on something with an `ETag` have in common: see [`crate::http::etag`].

use serde_json::{Map, Value, json};

use crate::http::problem::ProblemCode;

/// Completes an operation that says with `x-tagged` what it does: `read`, `change` or `make`. Returns whether it is one.
pub(super) fn describe(operation: &mut Map<String, Value>, codes: &mut Vec<ProblemCode>) -> bool {
    let Some(kind) = operation.remove("x-tagged") else {
        return false;
    };
    let (header, description) = match kind.as_str() {
        Some("read") => {
            operation["responses"]["304"] = json!({"description": "Not modified"});
            (
                "If-None-Match",
                "ETags of responses that the client has; `*` for any",
            )
        }
        Some("change") => {
            codes.push(ProblemCode::PreconditionFailed);
            (
                "If-Match",
                "ETags of the states that may be changed; `*` for any. A change to any other state is rejected",
            )
        }
        _ => return true,
    };
    let parameter = json!({
        "name": header, "in": "header", "required": false, "schema": {"type": "string"}, "description": description,
    });
    match operation
        .get_mut("parameters")
        .and_then(Value::as_array_mut)
    {
        Some(parameters) => parameters.push(parameter),
        None => drop(operation.insert("parameters".to_owned(), json!([parameter]))),
    }
    true
}
