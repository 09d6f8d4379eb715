//! `/openapi.json` as something that answers can be held against.

use std::collections::BTreeSet;
use std::sync::Mutex;

use jsonschema::{Draft, Validator};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::support::{Answer, Client};

/// The description of a server's API, and which of its operations have answered with success.
pub struct Contract {
    pub document: Value,
    answered: Mutex<BTreeSet<(String, String)>>,
}

impl Contract {
    /// As the server tells it.
    pub async fn of(client: &Client) -> Self {
        let document = client.get("/openapi.json").await.expect(200).json();
        Self {
            document: closed(document),
            answered: Mutex::default(),
        }
    }

    /// All operations, as method and path.
    pub fn operations(&self) -> BTreeSet<(String, String)> {
        let paths = self.document["paths"].as_object().expect("paths");
        paths
            .iter()
            .flat_map(|(path, item)| {
                let item = item.as_object().expect("operations");
                item.keys()
                    .map(move |method| (method.clone(), path.clone()))
            })
            .collect()
    }

    /// Those that have not answered with success yet.
    pub fn left(&self) -> Vec<(String, String)> {
        let answered = self.answered.lock().expect("no test panics with it");
        self.operations().difference(&answered).cloned().collect()
    }

    /// A schema of the document as a validator.
    pub fn validator(&self, schema: &Value) -> Validator {
        let mut schema = schema.clone();
        // References are to components of the whole document.
        schema["components"] = self.document["components"].clone();
        jsonschema::options()
            .with_draft(Draft::Draft202012)
            .should_validate_formats(true)
            .build(&schema)
            .unwrap_or_else(|error| panic!("not a schema ({error}): {schema}"))
    }

    /// Asks, and checks that the answer is as described. `path` is an address below the document's `template`.
    pub async fn ask(&self, client: &Client, method: Method, template: &str, path: &str) -> Answer {
        let request = client.request(method.clone(), path);
        self.send(client, method, template, request).await
    }

    /// The same with a JSON body, which has to be as described where the answer is a success.
    pub async fn tell(
        &self,
        client: &Client,
        method: Method,
        template: &str,
        path: &str,
        body: Value,
    ) -> Answer {
        let request = client.request(method.clone(), path).json(&body);
        let answer = self.send(client, method.clone(), template, request).await;
        if answer.status.is_success() {
            let operation = self.operation(&method, template);
            let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
            self.hold(schema, &body, "a request that was taken");
        }
        answer
    }

    /// The same with a request made by the test.
    pub async fn send(
        &self,
        client: &Client,
        method: Method,
        template: &str,
        request: RequestBuilder,
    ) -> Answer {
        let answer = client.send(request).await;
        self.check(&method, template, &answer);
        answer
    }

    fn operation(&self, method: &Method, template: &str) -> &Value {
        let operation = &self.document["paths"][template][method.as_str().to_lowercase()];
        assert!(
            operation.is_object(),
            "{method} {template} is not described"
        );
        operation
    }

    /// Checks status, headers and body of an answer.
    pub fn check(&self, method: &Method, template: &str, answer: &Answer) {
        let what = format!("{method} {template}: {}", answer.status);
        let responses = &self.operation(method, template)["responses"];
        let response = responses
            .get(answer.status.as_str())
            .or_else(|| responses.get("default"))
            .unwrap_or_else(|| panic!("{what} is not described: {}", answer.text()));
        let described = response["headers"].as_object().expect("headers");
        assert!(described.contains_key("X-Request-Id"), "{what}");
        for (name, header) in described {
            if let Some(value) = answer.headers.get(name) {
                let text = value.to_str().expect("text");
                let value = match header["schema"]["type"] == "integer" {
                    true => serde_json::from_str(text).expect("a number"),
                    false => Value::from(text),
                };
                self.hold(&header["schema"], &value, &format!("{what}, {name}"));
            }
        }
        for always in [
            "X-Request-Id",
            "ETag",
            "Retry-After",
            "WWW-Authenticate",
            "Location",
        ] {
            let is_sent = answer.headers.contains_key(always);
            let is_own = response["content"]["*/*"].is_object();
            assert!(
                is_own || is_sent == described.contains_key(always),
                "{what}: {always} is sent: {is_sent}"
            );
        }
        self.check_body(method, &what, response, answer);
        if answer.status.is_success() {
            let operation = (method.as_str().to_lowercase(), template.to_owned());
            let mut answered = self.answered.lock().expect("no test panics with it");
            answered.insert(operation);
        }
    }

    fn check_body(&self, method: &Method, what: &str, response: &Value, answer: &Answer) {
        let Some(content) = response["content"].as_object() else {
            assert!(answer.bytes.is_empty(), "{what} has a body");
            return;
        };
        if *method == Method::HEAD || content.contains_key("*/*") {
            return;
        }
        let sent = answer.header("content-type");
        let media = sent.split(';').next().unwrap_or_default().trim();
        let schema = content
            .get(media)
            .map(|media| &media["schema"])
            .unwrap_or_else(|| panic!("{what} is {sent:?}, and {content:?} is described"));
        match media {
            "application/json" | "application/problem+json" => {
                self.hold(schema, &answer.json(), what);
            }
            "application/x-ndjson" => {
                for line in answer.text().lines() {
                    let line = serde_json::from_str(line).expect("a line of JSON");
                    self.hold(schema, &line, what);
                }
            }
            "application/zip" | "application/openmetrics-text" => {}
            other => panic!("{what}: the test knows no {other}"),
        }
    }

    /// Checks a value against a schema of the document.
    pub fn hold(&self, schema: &Value, value: &Value, what: &str) {
        let validator = self.validator(schema);
        let errors: Vec<String> = validator
            .iter_errors(value)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{what}: {errors:#?}\n{value:#}");
    }
}

/// The document with every object closed: what an answer has, its schema has to name. Objects that are put together
/// (`allOf`) are closed as a whole.
fn closed(mut document: Value) -> Value {
    let text = document.to_string();
    let mut parts = BTreeSet::new();
    collect_parts(&document, &mut parts);
    assert!(text.contains("\"schemas\""), "{text}");
    let schemas = document["components"]["schemas"]
        .as_object_mut()
        .expect("schemas");
    for (name, schema) in schemas {
        close(schema, !parts.contains(name));
    }
    document
}

/// Names of the components that are parts of others.
fn collect_parts(value: &Value, parts: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for part in object
                .get("allOf")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
            {
                let name = part["$ref"]
                    .as_str()
                    .and_then(|path| path.rsplit('/').next());
                parts.extend(name.map(str::to_owned));
            }
            object
                .values()
                .for_each(|value| collect_parts(value, parts));
        }
        Value::Array(items) => items.iter().for_each(|value| collect_parts(value, parts)),
        _ => {}
    }
}

fn close(schema: &mut Value, itself: bool) {
    let Some(object) = schema.as_object_mut() else {
        return;
    };
    let whole = object.contains_key("properties") || object.contains_key("allOf");
    if itself && whole && !object.contains_key("additionalProperties") {
        object.insert("unevaluatedProperties".to_owned(), json!(false));
    }
    for key in ["properties", "oneOf", "anyOf"] {
        match object.get_mut(key) {
            Some(Value::Object(inner)) => inner.values_mut().for_each(|inner| close(inner, true)),
            Some(Value::Array(inner)) => inner.iter_mut().for_each(|inner| close(inner, true)),
            _ => {}
        }
    }
    if let Some(items) = object.get_mut("items") {
        close(items, true);
    }
}
