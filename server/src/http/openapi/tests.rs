//! The document against the contract's tables.

use std::collections::BTreeSet;

use super::*;

fn finished() -> Value {
    serde_json::from_slice(&DOCUMENT).unwrap()
}

/// Every row of the contract's REST table.
const ROUTES: [(&str, &str); 78] = [
    ("get", "/healthz"),
    ("get", "/readyz"),
    ("get", "/api/v1/node"),
    ("post", "/api/v1/functions"),
    ("get", "/api/v1/functions"),
    ("get", "/api/v1/functions/{name}"),
    ("patch", "/api/v1/functions/{name}"),
    ("put", "/api/v1/functions/{name}/code"),
    ("get", "/api/v1/functions/{name}/versions"),
    ("post", "/api/v1/functions/{name}/versions"),
    ("get", "/api/v1/functions/{name}/versions/{n}/code"),
    ("post", "/api/v1/functions/{name}/copies"),
    ("post", "/api/v1/functions/{name}/versions/{n}/activate"),
    ("get", "/api/v1/functions/{name}/gate"),
    ("put", "/api/v1/functions/{name}/gate"),
    ("delete", "/api/v1/functions/{name}/gate"),
    ("get", "/api/v1/functions/{name}/saved-events"),
    ("get", "/api/v1/functions/{name}/saved-events/{event}"),
    ("put", "/api/v1/functions/{name}/saved-events/{event}"),
    ("delete", "/api/v1/functions/{name}/saved-events/{event}"),
    ("delete", "/api/v1/functions/{name}"),
    ("post", "/api/v1/functions/{name}/invoke"),
    ("post", "/api/v1/functions/{name}/versions/{n}/invoke"),
    ("get", "/fn/{name}"),
    ("post", "/fn/{name}"),
    ("delete", "/fn/{name}/{path}"),
    ("get", "/api/v1/functions/{name}/invocations"),
    ("get", "/api/v1/invocations/{id}"),
    ("get", "/api/v1/invocations/{id}/explain"),
    ("get", "/api/v1/functions/{name}/stats"),
    ("get", "/api/v1/functions/{name}/what-if"),
    ("get", "/api/v1/functions/{name}/performance"),
    ("get", "/api/v1/functions/{name}/events"),
    ("get", "/api/v1/functions/{name}/logs"),
    ("get", "/api/v1/tokens"),
    ("post", "/api/v1/tokens"),
    ("delete", "/api/v1/tokens/{id}"),
    ("get", "/api/v1/chains"),
    ("post", "/api/v1/chains"),
    ("get", "/api/v1/chains/{name}"),
    ("put", "/api/v1/chains/{name}"),
    ("patch", "/api/v1/chains/{name}"),
    ("delete", "/api/v1/chains/{name}"),
    ("get", "/api/v1/chains/{name}/versions"),
    ("post", "/api/v1/chains/{name}/versions/{n}/activate"),
    ("get", "/api/v1/chains/{name}/ingress"),
    ("post", "/api/v1/chains/{name}/routes/{route}/invoke"),
    ("get", "/chain/{name}/{route}"),
    ("post", "/chain/{name}/{route}/{path}"),
    ("get", "/api/v1/chain-workloads"),
    ("post", "/api/v1/chain-workloads/{key}/deploy"),
    ("get", "/api/v1/experiments"),
    ("post", "/api/v1/experiments"),
    ("get", "/api/v1/experiments/{id}"),
    ("delete", "/api/v1/experiments/{id}"),
    ("post", "/api/v1/experiments/{id}/cancel"),
    ("get", "/api/v1/experiments/{id}/files/{path}"),
    ("put", "/api/v1/experiments/{id}/files/{path}"),
    ("post", "/api/v1/experiments/taken"),
    ("post", "/api/v1/experiments/next"),
    ("put", "/api/v1/experiments/{id}/progress"),
    ("put", "/api/v1/experiments/{id}/end"),
    ("get", "/api/v1/secrets"),
    ("put", "/api/v1/secrets/{name}"),
    ("delete", "/api/v1/secrets/{name}"),
    ("get", "/api/v1/ingress"),
    ("get", "/api/v1/ingress/lists"),
    ("put", "/api/v1/ingress/lists/{prefix}"),
    ("delete", "/api/v1/ingress/lists/{prefix}"),
    ("get", "/api/v1/retention"),
    ("patch", "/api/v1/retention"),
    ("get", "/api/v1/users"),
    ("post", "/api/v1/users"),
    ("patch", "/api/v1/users/{name}"),
    ("delete", "/api/v1/users/{name}"),
    ("get", "/api/v1/audit"),
    ("get", "/metrics"),
    ("get", "/openapi.json"),
];

#[test]
fn every_route_of_the_contract_is_described() {
    let document = finished();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    for (method, path) in ROUTES {
        let operation = &document["paths"][path][method];
        assert!(operation.is_object(), "{method} {path}");
        assert!(
            operation["summary"].is_string(),
            "{method} {path} has no summary"
        );
        let open = ["/healthz", "/readyz", "/openapi.json"].contains(&path);
        assert_eq!(operation["security"].is_array(), !open, "{method} {path}");
        assert_eq!(
            operation["responses"]["401"].is_object(),
            !open,
            "{method} {path}"
        );
        assert!(operation["responses"]["500"].is_object(), "{method} {path}");
    }
}

#[test]
fn every_code_is_documented_and_every_listed_code_exists() {
    let raw = serde_json::to_value(router::table().into_openapi()).unwrap();
    for (path, item) in raw["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            for name in operation["x-errors"].as_array().into_iter().flatten() {
                let name = name.as_str().unwrap();
                assert!(
                    ProblemCode::by_name(name).is_some(),
                    "{method} {path}: {name}"
                );
            }
        }
    }
    let text = String::from_utf8(DOCUMENT.to_vec()).unwrap();
    for code in ProblemCode::ALL {
        // Every address has methods it does not take: this one belongs to none.
        if *code != ProblemCode::MethodNotAllowed {
            let example = format!("\"type\":\"{}\"", code.type_uri());
            assert!(
                text.contains(&example),
                "{} is on no operation",
                code.name()
            );
        }
    }
    assert!(
        !text.contains("x-errors") && !text.contains("x-invocation") && !text.contains("x-chain")
    );
}

#[test]
fn operation_ids_are_unique_and_references_lead_somewhere() {
    let document = finished();
    let mut ids = BTreeSet::new();
    for item in document["paths"].as_object().unwrap().values() {
        for operation in item.as_object().unwrap().values() {
            let id = operation["operationId"].as_str().unwrap();
            assert!(ids.insert(id.to_owned()), "{id} is there twice");
        }
    }
    let text = document.to_string();
    for reference in text.split("\"#/components/schemas/").skip(1) {
        let name = reference.split('"').next().unwrap();
        assert!(
            document["components"]["schemas"][name].is_object(),
            "{name} is not a schema"
        );
    }
}

#[test]
fn the_documented_fields_are_the_parsed_ones() {
    use crate::http::spec;
    let document = finished();
    let chain_fields = [&["name"], spec::CHAIN_FIELDS].concat();
    for (schema, fields) in [
        ("CreateFunction", spec::CREATE_FIELDS),
        ("CreateFunctionForm", spec::CREATE_FIELDS),
        ("PatchFunction", spec::PATCH_FIELDS),
        ("CopyFunction", spec::COPY_FIELDS),
        ("PutChain", &chain_fields),
        ("CreateChain", &chain_fields),
        ("PatchChain", spec::CHAIN_FIELDS),
    ] {
        let is_form = schema.ends_with("Form");
        let schema = &document["components"]["schemas"][schema];
        let documented: BTreeSet<&str> = schema["properties"]
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        assert_eq!(documented, fields.iter().copied().collect());
        // A form's `env.NAME` fields are additional ones.
        assert_eq!(schema["additionalProperties"] == false, !is_form);
    }
    let required = &document["components"]["schemas"]["CreateFunction"]["required"];
    assert_eq!(*required, json!(["name", "runtime", "code"]));
}

#[test]
fn an_invocation_documents_its_headers_and_errors() {
    let document = finished();
    let responses = &document["paths"]["/api/v1/functions/{name}/invoke"]["post"]["responses"];
    for status in [
        "200", "400", "401", "403", "404", "413", "429", "502", "503", "504",
    ] {
        assert!(responses[status].is_object(), "{status}");
    }
    assert!(responses["200"]["headers"]["Server-Timing"].is_object());
    assert!(responses["429"]["headers"]["Retry-After"].is_object());
    let examples = &responses["502"]["content"]["application/problem+json"]["examples"];
    for code in [
        "function_error",
        "function_crashed",
        "function_out_of_memory",
        "result_too_large",
    ] {
        assert_eq!(examples[code]["value"]["status"], 502);
    }
}

#[test]
fn the_trigger_documents_what_it_holds_back() {
    let document = finished();
    for path in ["/fn/{name}", "/fn/{name}/{path}"] {
        for (method, operation) in document["paths"][path].as_object().unwrap() {
            let answer = &operation["responses"]["default"];
            let header = &answer["headers"]["X-Hearth-Withheld-Headers"];
            assert!(header["schema"].is_object(), "{method} {path}");
            // Beside those that every answer has.
            assert!(
                answer["headers"]["X-Request-Id"].is_object(),
                "{method} {path}: {answer}"
            );
        }
    }
}
