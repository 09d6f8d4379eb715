//! `/new`: deploy a function.

use axum::Extension;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use hearth_web::pages::{EnvRow, FieldErrors, FunctionForm, NewPage};
use hearth_web::{respond, starters};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::http::App;
use crate::http::problem::Problem;
use crate::http::spec::{self, Fields, Input};
use crate::model::{Code, FunctionSpec, InvalidField, Network, Right};

use super::form::{self, Form, Submitted};
use super::guard::{go, is_htmx};
use super::network_form;
use super::outcome::Failure;
use super::session::Viewer;
use super::view::unavailable;

/// `?template=…`, which was `?starter=…` once.
#[derive(Debug, Default, Deserialize)]
pub struct Starter {
    #[serde(default, alias = "starter")]
    template: String,
}

/// Names tried before the field is left to the user: bounds the look-ups.
const MAX_NUMBERED: u32 = 1_000;

/// Settings that the form passes on as typed.
const SETTINGS: [&str; 9] = [
    "handler",
    "memory_mb",
    "timeout_ms",
    "max_concurrency",
    "idle_timeout_s",
    "min_instances",
    "template_idle_timeout_s",
    "start",
    "body",
];

/// `GET /new`.
pub async fn page(
    State(app): State<App>,
    Extension(viewer): Extension<Viewer>,
    Query(query): Query<Starter>,
) -> Result<Response, Problem> {
    viewer.needs(Right::Write)?;
    let starter = starters::by_key(&query.template).unwrap_or(starters::STARTERS[0]);
    let page = NewPage {
        chrome: viewer.chrome(),
        form: FunctionForm::starting_from(starter, free_name(&app, starter.name)),
        starter: starter.key.to_owned(),
        native_reason: unavailable(&app, &["runtimes", "native"]),
        provided_reason: unavailable(&app, &["runtimes", "provided"]),
        node_reason: unavailable(&app, &["runtimes", "node"]),
        node_boots: unavailable(&app, &["runtimes", "node", "fork"]),
        outbound_reason: unavailable(&app, &["network_outbound"]),
        errors: FieldErrors::default(),
        problem: None,
    };
    Ok(respond::page(StatusCode::OK, &page))
}

/// `POST /new`.
pub async fn submit(
    State(app): State<App>,
    submitted: Submitted<form::CodeFields>,
) -> Result<Response, Problem> {
    let Submitted {
        viewer,
        form,
        headers,
        ..
    } = submitted;
    viewer.needs(Right::Write)?;
    let failure = match read(&form) {
        Err(error) => Failure::field(error, FunctionForm::FIELDS),
        Ok((spec, code)) => match app.engine.create(spec, code).await {
            Ok(function) => {
                save_sample(&app, &function.name, form.text("template")).await;
                let page = format!("/functions/{}?notice=created", function.name);
                return Ok(go(&headers, &page));
            }
            Err(error) => Failure::engine(error, FunctionForm::FIELDS, &viewer.request_id)?,
        },
    };
    if is_htmx(&headers) {
        return Ok(failure.partial(FunctionForm::FIELDS));
    }
    let page = NewPage {
        chrome: viewer.chrome(),
        form: typed(&form),
        starter: form.trimmed("template"),
        native_reason: unavailable(&app, &["runtimes", "native"]),
        provided_reason: unavailable(&app, &["runtimes", "provided"]),
        node_reason: unavailable(&app, &["runtimes", "node"]),
        node_boots: unavailable(&app, &["runtimes", "node", "fork"]),
        outbound_reason: unavailable(&app, &["network_outbound"]),
        errors: failure.errors,
        problem: failure.problem,
    };
    Ok(respond::page(StatusCode::UNPROCESSABLE_ENTITY, &page))
}

/// `name`, or the first of `name-2`, `name-3` … that no function has.
fn free_name(app: &App, name: &str) -> String {
    let taken = |name: &str| app.engine.id_of(name).is_some();
    if !taken(name) {
        return name.to_owned();
    }
    (2..=MAX_NUMBERED)
        .map(|number| format!("{name}-{number}"))
        .find(|name| !taken(name))
        .unwrap_or_default()
}

/// Saves the starter's event for the test panel. Optional: a failure is only logged.
async fn save_sample(app: &App, name: &str, template: &str) {
    let (Some(starter), Some(id)) = (starters::by_key(template), app.engine.id_of(name)) else {
        return;
    };
    let event = starter.event.trim_end();
    let saved = app.store.save_event(id, starters::EVENT_NAME, event).await;
    if let Err(error) = saved {
        tracing::warn!(function = name, %error, "the starter's event was not saved");
    }
}

/// The same rules as the API's, over the same fields.
fn read(form: &Form) -> Result<(FunctionSpec, Code), InvalidField> {
    let mut fields = Fields::default();
    for name in ["name", "runtime"].into_iter().chain(SETTINGS) {
        let value = form.trimmed(name);
        // An empty setting is the default one; an empty name is a missing one.
        if !value.is_empty() {
            fields.add(name.to_owned(), Input::Text(value))?;
        }
    }
    for name in ["public", "keep_warm"] {
        let ticked = !form.text(name).is_empty();
        fields.add(name.to_owned(), Input::Text(ticked.to_string()))?;
    }
    let network = network_form::value(&network_form::typed(form), &Network::None);
    fields.add("network".to_owned(), Input::Json(network))?;
    fields.add("env".to_owned(), Input::Json(Value::Object(env(form)?)))?;
    if let Some(code) = code(form) {
        fields.add("code".to_owned(), code)?;
    }
    spec::create(fields).map_err(|error| rephrase_missing(error, form))
}

/// The code that the form carries: the file or the editor's text, as chosen.
pub fn code(form: &Form) -> Option<Input> {
    match (form.text("code_source"), &form.file) {
        ("file", Some(file)) => Some(Input::File {
            name: Some(file.name.clone()),
            content: file.content.clone(),
        }),
        ("file", None) => None,
        _ => Some(Input::Text(form.lines("code"))),
    }
}

/// Rephrases missing fields for the form.
pub fn rephrase_missing(mut error: InvalidField, form: &Form) -> InvalidField {
    if error.field == "code" && form.text("code_source") == "file" && form.file.is_none() {
        error.rule = "choose a file".to_owned();
    } else if error.field == "name" && form.trimmed("name").is_empty() {
        error.rule = "give the function a name".to_owned();
    }
    error
}

/// The environment's rows; rows without name and value are not meant.
pub fn env(form: &Form) -> Result<Map<String, Value>, InvalidField> {
    let mut variables = Map::new();
    for EnvRow { name, value } in env_rows(form) {
        if variables.insert(name.clone(), value.into()).is_some() {
            return Err(InvalidField {
                field: format!("env.{name}"),
                value: "\"(hidden)\"".to_owned(),
                rule: "must be given once".to_owned(),
            });
        }
    }
    Ok(variables)
}

/// The rows as typed.
pub fn env_rows(form: &Form) -> Vec<EnvRow> {
    form.all("env_name")
        .zip(form.all("env_value"))
        .map(|(name, value)| EnvRow {
            name: name.trim().to_owned(),
            value: value.to_owned(),
        })
        .filter(|row| !row.name.is_empty() || !row.value.is_empty())
        .collect()
}

fn typed(form: &Form) -> FunctionForm {
    FunctionForm {
        name: form.trimmed("name"),
        runtime: form.trimmed("runtime"),
        handler: form.trimmed("handler"),
        code_source: form.trimmed("code_source"),
        code: form.lines("code"),
        memory_mb: form.trimmed("memory_mb"),
        timeout_ms: form.trimmed("timeout_ms"),
        max_concurrency: form.trimmed("max_concurrency"),
        idle_timeout_s: form.trimmed("idle_timeout_s"),
        min_instances: form.trimmed("min_instances"),
        keep_warm: !form.text("keep_warm").is_empty(),
        template_idle_timeout_s: form.trimmed("template_idle_timeout_s"),
        start: form.trimmed("start"),
        body: form.trimmed("body"),
        network: network_form::typed(form),
        public: !form.text("public").is_empty(),
        env: env_rows(form),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::console::form::{self, encoded};
    use crate::model::Runtime;

    #[tokio::test]
    async fn a_filled_form_is_a_function() {
        let form = encoded::<form::CodeFields>(
            "name=+hello+&runtime=python3&handler=main.handler&memory_mb=64&timeout_ms=&network=none&public=true\
             &env_name=A&env_value=1&env_name=&env_value=&code_source=inline&code=def+handler(e,c):%0D%0A++return+1",
        )
        .await;
        let (spec, code) = read(&form).expect("valid");
        assert_eq!(spec.name, "hello");
        assert_eq!(spec.runtime, Runtime::Python3);
        assert_eq!((spec.memory_mb, spec.timeout_ms), (64, 30_000));
        assert!(spec.public);
        assert_eq!(spec.env.get("A").map(String::as_str), Some("1"));
        assert_eq!(spec.env.len(), 1);
        let Code::Inline(source) = code else {
            panic!("{code:?}");
        };
        let source = source.part(0, 100).expect("it can be read");
        assert_eq!(source, b"def handler(e,c):\n  return 1");
    }

    #[tokio::test]
    async fn what_is_wrong_is_named() {
        const GOOD: &str = "name=a&runtime=python3&code_source=inline&code=x";
        for (more, field) in [
            ("&memory_mb=abc", "memory_mb"),
            ("&memory_mb=1", "memory_mb"),
            ("&env_name=A&env_value=1&env_name=A&env_value=2", "env.A"),
            ("&env_name=&env_value=orphan", "env."),
            ("&network=all", "network"),
        ] {
            let error = read(&encoded::<form::CodeFields>(&format!("{GOOD}{more}")).await)
                .expect_err("refused");
            assert_eq!(error.field, field);
        }
        let error = read(&encoded::<form::CodeFields>("runtime=python3&code=x").await)
            .expect_err("refused");
        assert_eq!(
            (error.field.as_str(), error.rule.as_str()),
            ("name", "give the function a name")
        );
        let error = read(
            &encoded::<form::CodeFields>("name=a&runtime=python3&code_source=file&code=x").await,
        )
        .expect_err("refused");
        assert_eq!(
            (error.field.as_str(), error.rule.as_str()),
            ("code", "choose a file")
        );
    }

    #[tokio::test]
    async fn what_was_typed_is_kept() {
        let form = encoded::<form::CodeFields>(
            "name=Bad+Name&memory_mb=x&code=%0Ay&env_name=A&env_value=+1",
        )
        .await;
        let typed = typed(&form);
        assert_eq!(typed.name, "Bad Name");
        assert_eq!(typed.memory_mb, "x");
        assert_eq!(typed.code, "\ny");
        assert_eq!(typed.env[0].value, " 1");
    }
}
