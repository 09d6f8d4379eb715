//! What a schema takes the server takes, and what it refuses the server refuses: each field of each body, and each query
//! parameter, with values on both sides of every rule.

use reqwest::Method;
use serde_json::{Map, Value, json};

use super::document::Contract;
use crate::support::{Answer, Client, Server};

const COPIES: &str = "/api/v1/functions/{name}/copies";
const CODE: &str = "def handler(event, context):\n    return event\n";

/// Values of every type, and beside every limit of these fields.
fn values(schema: &Value) -> Vec<Value> {
    let mut values = vec![
        json!(null),
        json!(true),
        json!(-1),
        json!(1.5),
        json!(5_000_000_000_u64),
        json!(""),
        json!(" "),
        json!("a"),
        json!("node"),
        json!("none"),
        json!("viewer"),
        json!("module.function"),
        json!("Upper-Case"),
        json!("a\u{0}b"),
        json!("a\nb"),
        json!("x".repeat(64)),
        json!("x".repeat(65)),
        json!("x".repeat(128)),
        json!("x".repeat(129)),
        json!("2100-01-01T00:00:00Z"),
        json!([]),
        json!(["read"]),
        json!(["read", "read"]),
        json!(["some-name"]),
        json!(["Some_Name"]),
        json!({}),
        json!({"A": "b"}),
        json!({"A": "b\u{0}"}),
        json!({"A": 1}),
        json!({"A": null}),
        json!({"1A": "b"}),
        json!({"HEARTH_A": "b"}),
        json!({"inline": CODE}),
        json!({"inline": CODE, "zip_base64": ""}),
        json!({"allow_origins": ["*"]}),
        json!({"allow_origins": []}),
        json!({"allow_origins": ["a.example"]}),
        json!({"allow_origins": ["*", "*"]}),
        json!({"allow_origins": ["*"], "allow_credentials": true}),
        json!({"allow_origins": ["https://a.example"], "allow_methods": ["GET"], "allow_headers": ["X-A"],
            "expose_headers": ["*"], "allow_credentials": true, "max_age_s": 86_400}),
        json!({"allow_origins": ["*"], "allow_methods": ["get"]}),
        json!({"allow_origins": ["*"], "allow_headers": ["a b"]}),
        json!({"allow_origins": ["*"], "max_age_s": 86_401}),
        json!({"allow_origins": ["*"], "max_age": 1}),
    ];
    for limit in ["minimum", "maximum"] {
        if let Some(limit) = schema[limit].as_i64() {
            values.extend([limit - 1, limit, limit + 1].map(Value::from));
        }
    }
    if let Some(names) = schema["enum"].as_array() {
        values.extend(names.iter().cloned());
    }
    values
}

/// What a schema cannot say: rules over two fields, or that depend on the server's state.
fn is_beyond_a_schema(field: &str, answer: &Answer) -> bool {
    let problem = answer.json();
    let rule = problem["rule"].as_str().unwrap_or_default();
    match field {
        // There are as many as there are.
        "version" => rule.contains("whose newest is"),
        // No more than max_concurrency, and the other way round.
        "min_instances" => rule.contains("max_concurrency"),
        "max_concurrency" => rule.contains("min_instances"),
        // An entry's rule is more than a schema says, and not every node has a way out.
        "network" => problem["field"] != "network" || rule.contains("on this node"),
        "cors" => problem["field"] == "cors.allow_credentials",
        // Not the user's own name.
        "password" => rule.contains("must differ from the name"),
        "handler" => problem["code"] == "import_failed",
        // Source text is no program.
        "runtime" => problem["code"] == "import_failed" || rule.contains("not source text"),
        _ => false,
    }
}

struct Body {
    method: Method,
    template: &'static str,
    path: &'static str,
    /// What is sent beside the field in question; `NEW` stands for a name that is not taken.
    rest: Value,
}

#[tokio::test]
async fn bodies_are_taken_as_their_schemas_say() {
    let server = Server::start();
    let client = server.client();
    let contract = Contract::of(&client).await;
    client.deploy("f", CODE, json!({})).await;
    let user = json!({"name": "ada", "role": "admin"});
    client.post("/api/v1/users", &user).await.expect(201);
    let user = json!({"name": "bob", "role": "viewer"});
    client.post("/api/v1/users", &user).await.expect(201);
    let create = json!({"name": "NEW", "runtime": "python3", "code": {"inline": CODE}});
    for body in [
        body(Method::POST, "/api/v1/functions", "", create),
        body(
            Method::PATCH,
            "/api/v1/functions/{name}",
            "/api/v1/functions/f",
            json!({}),
        ),
        body(
            Method::PUT,
            "/api/v1/functions/{name}/code",
            "/api/v1/functions/f/code",
            json!({"code": {"inline": CODE}}),
        ),
        body(
            Method::POST,
            COPIES,
            "/api/v1/functions/f/copies",
            json!({"name": "NEW"}),
        ),
        body(Method::PATCH, "/api/v1/retention", "", json!({})),
        body(
            Method::POST,
            "/api/v1/tokens",
            "",
            json!({"name": "t", "rights": ["read"]}),
        ),
        body(
            Method::POST,
            "/api/v1/users",
            "",
            json!({"name": "NEW", "role": "viewer"}),
        ),
        body(
            Method::PATCH,
            "/api/v1/users/{name}",
            "/api/v1/users/bob",
            json!({}),
        ),
    ] {
        probe(&contract, &client, &body).await;
    }
}

fn body(method: Method, template: &'static str, path: &'static str, rest: Value) -> Body {
    let path = if path.is_empty() { template } else { path };
    Body {
        method,
        template,
        path,
        rest,
    }
}

async fn probe(contract: &Contract, client: &Client, body: &Body) {
    let verb = body.method.as_str().to_lowercase();
    let content = &contract.document["paths"][body.template][&verb]["requestBody"]["content"];
    let schema = resolved(contract, &content["application/json"]["schema"]);
    let validator = contract.validator(schema);
    let properties = schema["properties"]
        .as_object()
        .expect("an object's schema");
    let mut tries: Vec<(String, Map<String, Value>)> = Vec::new();
    let rest = body.rest.as_object().expect("an object");
    for (field, described) in properties {
        for value in values(resolved(contract, described)) {
            let mut fields = rest.clone();
            fields.insert(field.clone(), value);
            tries.push((field.clone(), fields));
        }
    }
    for field in rest.keys() {
        let mut fields = rest.clone();
        fields.remove(field);
        tries.push((field.clone(), fields));
    }
    tries.push(("body".to_owned(), Map::new()));
    let mut unknown = rest.clone();
    unknown.insert("no_such_field".to_owned(), json!(1));
    tries.push(("no_such_field".to_owned(), unknown));

    let (mut taken, mut refused) = (0, 0);
    for (number, (field, mut fields)) in tries.into_iter().enumerate() {
        if fields.get("name").is_some_and(|name| name == "NEW") {
            fields.insert("name".to_owned(), format!("n{number}").into());
        }
        let fields = Value::Object(fields);
        let described = validator.is_valid(&fields);
        let request = client.request(body.method.clone(), body.path).json(&fields);
        let answer = contract
            .send(client, body.method.clone(), body.template, request)
            .await;
        let what = format!(
            "{} {} {fields}: {}",
            body.method,
            body.template,
            answer.text()
        );
        match answer.status.as_u16() {
            200 | 201 => {
                assert!(
                    described,
                    "the server takes what its schema refuses: {what}"
                );
                taken += 1;
                if ["/api/v1/functions", COPIES].contains(&body.template) {
                    let name = fields["name"].as_str().expect("a name");
                    let path = format!("/api/v1/functions/{name}");
                    client.delete(&path).await.expect(204);
                }
            }
            400 | 422 => {
                let beyond = is_beyond_a_schema(&field, &answer);
                assert!(
                    !described || beyond,
                    "the schema takes what is refused: {what}"
                );
                refused += 1;
            }
            409 => assert!(described, "{what}"),
            _ => panic!("{what}"),
        }
    }
    assert!(
        taken > 0 && refused > 0,
        "{} {}",
        body.method,
        body.template
    );
}

/// A schema, or the component that it refers to.
fn resolved<'a>(contract: &'a Contract, schema: &'a Value) -> &'a Value {
    let reference = schema["$ref"]
        .as_str()
        .or_else(|| schema["allOf"][0]["$ref"].as_str());
    match reference.and_then(|path| path.strip_prefix("#/components/schemas/")) {
        Some(name) => &contract.document["components"]["schemas"][name],
        None => schema,
    }
}

#[tokio::test]
async fn query_parameters_are_taken_as_their_schemas_say() {
    let server = Server::start();
    let client = server.client();
    let contract = Contract::of(&client).await;
    client.deploy("f", CODE, json!({})).await;
    client.invoke("f", &json!(1)).await.expect(200);
    let texts = [
        "",
        "0",
        "1",
        "2",
        "-1",
        "1.5",
        "1000",
        "1001",
        "10000",
        "10001",
        "3600000000",
        "3600000001",
        "99999999999999",
        "true",
        "false",
        "yes",
        "a",
        "failed",
        "warm",
        "http",
        "60s",
        "59s",
        "7d",
        "8d",
        "1y",
        "5M",
        "0195f2c3-a1b2-7c3d-8000-000000000000",
    ];
    let mut asked = 0;
    for (method, template) in contract.operations() {
        // Those of other methods are asked for with what they do.
        if method != "get" {
            continue;
        }
        let parameters = &contract.document["paths"][&template][&method]["parameters"];
        let path = template.replace("{name}", "f");
        for parameter in parameters.as_array().into_iter().flatten() {
            let name = parameter["name"].as_str().expect("a name");
            // What a page's key looks like is the server's own affair; a stream that follows has no end.
            if parameter["in"] != "query" || ["before", "follow"].contains(&name) {
                continue;
            }
            let validator = contract.validator(&parameter["schema"]);
            for text in texts {
                // A number or a flag where the schema knows such, else text.
                let typed = serde_json::from_str(text)
                    .ok()
                    .filter(|value: &Value| !value.is_null() && validator.is_valid(value));
                let described = typed.is_some() || validator.is_valid(&text.into());
                let path = format!("{path}?{name}={text}");
                let answer = contract.ask(&client, Method::GET, &template, &path).await;
                let what = format!("{path}: {}", answer.text());
                match answer.status.as_u16() {
                    200 => assert!(described, "taken: {what}"),
                    422 => assert!(
                        !described || is_beyond_a_pattern(name, text),
                        "refused: {what}"
                    ),
                    _ => panic!("{what}"),
                }
                asked += 1;
            }
        }
    }
    assert!(asked > 100, "{asked}");
}

/// Ranges of numbers are not in their patterns.
fn is_beyond_a_pattern(name: &str, text: &str) -> bool {
    let refused: &[&str] = match name {
        "window" => &["59s", "8d"],
        "idle_timeout_s" | "memory_mib" => &["0"],
        "min_instances" => &["1001", "10000", "10001"],
        "max_concurrency" => &["0", "1001", "10000", "10001"],
        _ => &[],
    };
    refused.contains(&text)
}
