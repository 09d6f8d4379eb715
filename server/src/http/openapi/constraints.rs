//! Patterns and ranges that attributes cannot express or would repeat.
//!
//! Patterns are ECMA-262's, as JSON Schema has them. The integration test `contract` checks them against the server.

use serde_json::{Value, json};

use crate::http::audit::actions;

/// See [`crate::http::spec::is_function_name`].
const FUNCTION_NAME: &str = "^[a-z][a-z0-9-]{0,63}$";
/// See [`crate::accounts::rules::is_name`].
const USER_NAME: &str = "^[a-z0-9][a-z0-9._@-]{0,63}$";
/// `module.function` of either language.
const HANDLER: &str = "^[A-Za-z0-9_-]+([./][A-Za-z0-9_-]+)*\\.[A-Za-z_$][A-Za-z0-9_$]*$";
/// Names that start with `HEARTH_` are the platform's.
const VARIABLE_NAME: &str = "^(?!HEARTH_)[A-Za-z_][A-Za-z0-9_]*$";
/// See [`crate::model::is_secret_name`].
const SECRET_NAME: &str = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$";
const VARIABLE_VALUE: &str = "^[^\\u0000]*$";
/// Something visible, and no control characters.
const TOKEN_NAME: &str = "^(?=.*\\S)[^\\u0000-\\u001f\\u007f-\\u009f]*$";

const ORIGIN: &str = "^(\\*|[a-z][a-z0-9+.-]*://[a-z0-9._:\\[\\]-]{1,253})$";
const HEADER_NAME: &str = "^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,253}$";

/// Adds them to the document.
pub(super) fn add(document: &mut Value) {
    tuples_as_lists(document);
    for (path, method) in [
        ("/api/v1/functions/{name}/code", "put"),
        ("/api/v1/functions/{name}/versions", "post"),
    ] {
        let code = &mut document["paths"][path][method]["requestBody"];
        code["content"]["application/zip"]["schema"] = bytes();
        code["content"]["text/x-python"]["schema"] = json!({"type": "string"});
    }
    let archive = &mut document["paths"]["/api/v1/functions/{name}/versions/{n}/code"]["get"];
    archive["responses"]["200"]["content"]["application/zip"]["schema"] = bytes();
    let schemas = &mut document["components"]["schemas"];
    for schema in ["CreateFunction", "PatchFunction", "CopyFunction"] {
        let properties = &mut schemas[schema]["properties"];
        if properties["handler"].is_object() {
            properties["handler"]["pattern"] = HANDLER.into();
        }
        let env = &mut properties["env"];
        env["propertyNames"] = json!({"type": "string", "pattern": VARIABLE_NAME});
        env["additionalProperties"]["pattern"] = VARIABLE_VALUE.into();
        env["additionalProperties"]["maxLength"] = 4096.into();
    }
    // Without a field it would change nothing, and is refused.
    for schema in ["PatchFunction", "PatchChain", "PatchUser"] {
        schemas[schema]["minProperties"] = 1.into();
    }
    for schema in ["FunctionView", "InvocationRecord"] {
        let name = if schema == "FunctionView" {
            "name"
        } else {
            "function"
        };
        schemas[schema]["properties"][name]["pattern"] = FUNCTION_NAME.into();
    }
    let cors = &mut schemas["Cors"]["properties"];
    cors["allow_origins"]["items"]["pattern"] = ORIGIN.into();
    cors["allow_methods"]["items"]["enum"] = json!([
        "*", "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"
    ]);
    for list in ["allow_headers", "expose_headers"] {
        cors[list]["items"]["pattern"] = HEADER_NAME.into();
    }
    for list in [
        "allow_origins",
        "allow_methods",
        "allow_headers",
        "expose_headers",
    ] {
        cors[list]["uniqueItems"] = true.into();
    }
    schemas["UserView"]["properties"]["name"]["pattern"] = USER_NAME.into();
    let token = &mut schemas["CreateToken"]["properties"];
    token["name"]["pattern"] = TOKEN_NAME.into();
    for list in ["rights", "scope"] {
        token[list]["uniqueItems"] = true.into();
    }
    token["scope"]["items"]["pattern"] = FUNCTION_NAME.into();
    let Some(paths) = document["paths"].as_object_mut() else {
        return;
    };
    for (path, item) in paths {
        let is_audit = path == "/api/v1/audit";
        let pattern = match path.split('/').nth(3) {
            Some("users") => USER_NAME,
            Some("secrets") => SECRET_NAME,
            _ => FUNCTION_NAME,
        };
        let operations = item
            .as_object_mut()
            .into_iter()
            .flat_map(|item| item.values_mut());
        for operation in operations {
            for parameter in operation["parameters"].as_array_mut().into_iter().flatten() {
                if parameter["name"] == "route" && parameter["in"] == "path" {
                    parameter["schema"]["pattern"] = FUNCTION_NAME.into();
                } else if parameter["name"] == "name" && parameter["in"] == "path" {
                    parameter["schema"]["pattern"] = pattern.into();
                } else if parameter["name"] == "action" && is_audit {
                    let mut names = vec![Value::from("")];
                    names.extend(actions::ALL.iter().copied().map(Value::from));
                    parameter["schema"] = json!({"type": "string", "enum": names});
                }
            }
        }
    }
}

/// The schema of bytes that are no text, by which generators of clients know them.
pub(super) fn bytes() -> Value {
    json!({"type": "string", "format": "binary"})
}

/// Tuples of one type as lists of that many: many generators of clients know no `prefixItems`, nor a schema that is `false`.
fn tuples_as_lists(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            object.values_mut().for_each(tuples_as_lists);
            let Some(Value::Array(parts)) = object.get("prefixItems") else {
                return;
            };
            let (count, first) = (parts.len(), parts.first().cloned());
            if let Some(first) = first.filter(|first| parts.iter().all(|part| part == first)) {
                object.remove("prefixItems");
                object.insert("items".to_owned(), first);
                object.insert("minItems".to_owned(), count.into());
                object.insert("maxItems".to_owned(), count.into());
            }
        }
        Value::Array(items) => items.iter_mut().for_each(tuples_as_lists),
        _ => {}
    }
}
