//! The form of the settings: filled in from a function, and read into a change of it.

use hearth_web::pages::{CorsForm, SettingsForm};
use serde_json::Value;

use crate::http::spec::{self, Fields, Input};
use crate::model::{Cors, FunctionPatch, FunctionView, InvalidField};

use super::create::{env, env_rows};
use super::form::Form;
use super::{network_form, ports_form};

/// Only what differs from the present settings; `None` when nothing does.
pub(super) fn read(
    form: &Form,
    function: &FunctionView,
) -> Result<Option<FunctionPatch>, InvalidField> {
    let now = present(function);
    let mut fields = Fields::default();
    for (name, value) in [
        ("handler", now.handler),
        ("memory_mb", now.memory_mb),
        ("timeout_ms", now.timeout_ms),
        ("max_concurrency", now.max_concurrency),
        ("idle_timeout_s", now.idle_timeout_s),
        ("min_instances", now.min_instances),
        ("template_idle_timeout_s", now.template_idle_timeout_s),
        ("start", now.start),
        ("body", now.body),
    ] {
        let typed = form.trimmed(name);
        if typed != value {
            fields.add(name.to_owned(), Input::Text(typed))?;
        }
    }
    for (name, value) in [("public", now.public), ("keep_warm", now.keep_warm)] {
        let ticked = !form.text(name).is_empty();
        if ticked != value {
            fields.add(name.to_owned(), Input::Text(ticked.to_string()))?;
        }
    }
    let network = network_form::typed(form);
    if network != now.network {
        let value = network_form::value(&network, &function.network);
        fields.add("network".to_owned(), Input::Json(value))?;
    }
    let triggers = ports_form::typed(form);
    if triggers != now.triggers {
        let value = ports_form::value(&triggers)?;
        fields.add("triggers".to_owned(), Input::Json(value))?;
    }
    let limits = ports_form::typed_limits(form);
    if limits != now.port_limits {
        let value = ports_form::limits_value(&limits)?;
        fields.add("port_limits".to_owned(), Input::Json(value))?;
    }
    let cors = typed_cors(form);
    if cors != now.cors {
        fields.add("cors".to_owned(), Input::Json(cors_value(&cors)))?;
    }
    let mut variables = env(form)?;
    for (known, value) in form.all("env_known").zip(form.all("env_replace")) {
        if !value.is_empty() && function.env.contains_key(known) {
            variables.insert(known.to_owned(), value.into());
        }
    }
    for removed in form.all("env_remove") {
        // One that is given a new value in the same form is wanted.
        if !variables.contains_key(removed) && function.env.contains_key(removed) {
            variables.insert(removed.to_owned(), Value::Null);
        }
    }
    if !variables.is_empty() {
        fields.add("env".to_owned(), Input::Json(Value::Object(variables)))?;
    }
    if fields.is_empty() {
        return Ok(None);
    }
    let patch = spec::patch(fields, function.runtime, function.max_concurrency);
    patch.map(Some).map_err(ports_form::at_input)
}

/// The form of the present settings.
pub(super) fn present(function: &FunctionView) -> SettingsForm {
    SettingsForm {
        handler: function.handler.clone(),
        memory_mb: function.memory_mb.to_string(),
        timeout_ms: function.timeout_ms.to_string(),
        max_concurrency: function.max_concurrency.to_string(),
        idle_timeout_s: function.idle_timeout_s.to_string(),
        min_instances: function.min_instances.to_string(),
        keep_warm: function.keep_warm,
        template_idle_timeout_s: function.template_idle_timeout_s.to_string(),
        start: function.start.as_str().to_owned(),
        body: function.body.as_str().to_owned(),
        network: network_form::present(&function.network),
        public: function.public,
        triggers: ports_form::present(&function.triggers),
        port_limits: ports_form::present_limits(function.port_limits),
        cors: cors_form(function.cors.as_deref()),
        env: Vec::new(),
        env_names: function.env.keys().cloned().collect(),
        env_removed: Vec::new(),
    }
}

/// The setting as the form shows it.
fn cors_form(cors: Option<&Cors>) -> CorsForm {
    let Some(cors) = cors else {
        return CorsForm::default();
    };
    CorsForm {
        origins: cors.allow_origins.join(", "),
        methods: cors.allow_methods.join(", "),
        headers: cors.allow_headers.join(", "),
        exposed: cors.expose_headers.join(", "),
        credentials: cors.allow_credentials,
        max_age_s: cors.max_age_s.to_string(),
    }
}

fn typed_cors(form: &Form) -> CorsForm {
    CorsForm {
        origins: form.trimmed("cors_origins"),
        methods: form.trimmed("cors_methods"),
        headers: form.trimmed("cors_headers"),
        exposed: form.trimmed("cors_exposed"),
        credentials: !form.text("cors_credentials").is_empty(),
        max_age_s: form.trimmed("cors_max_age_s"),
    }
}

/// The setting as the API expects it; invalid input is passed on for its rules to reject.
fn cors_value(typed: &CorsForm) -> Value {
    if *typed == CorsForm::default() {
        return Value::Null;
    }
    let list = |text: &str| -> Vec<String> {
        text.split([',', ' ', '\t'])
            .filter(|item| !item.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let max_age = match typed.max_age_s.as_str() {
        "" => Value::from(0),
        text => text
            .parse::<u64>()
            .map_or_else(|_| text.into(), Value::from),
    };
    serde_json::json!({
        "allow_origins": list(&typed.origins),
        "allow_methods": list(&typed.methods),
        "allow_headers": list(&typed.headers),
        "expose_headers": list(&typed.exposed),
        "allow_credentials": typed.credentials,
        "max_age_s": max_age,
    })
}

/// The form as it was typed.
pub(super) fn typed(form: &Form, function: &FunctionView) -> SettingsForm {
    SettingsForm {
        handler: form.trimmed("handler"),
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
        triggers: ports_form::typed(form),
        port_limits: ports_form::typed_limits(form),
        cors: typed_cors(form),
        env: env_rows(form),
        env_names: function.env.keys().cloned().collect(),
        env_removed: form.all("env_remove").map(str::to_owned).collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use jiff::Timestamp;

    use super::*;
    use crate::http::console::form::{Settings, encoded};
    use crate::model::{DecisionCounts, FunctionState, InstanceCounts, Runtime};

    fn function() -> FunctionView {
        FunctionView {
            id: 1,
            name: "hello".into(),
            runtime: Runtime::Python3,
            handler: "main.handler".into(),
            active_version: 1,
            state: FunctionState::Ready,
            state_reason: None,
            instances: InstanceCounts::default(),
            queued: 0,
            template: true,
            image: crate::model::ImageView::default(),
            memory_mb: 128,
            timeout_ms: 30_000,
            max_concurrency: 8,
            idle_timeout_s: 300,
            min_instances: 0,
            keep_warm: false,
            template_idle_timeout_s: 3600,
            start: crate::model::Start::Auto,
            starts_by: crate::model::StartKind::Fork,
            start_reason: None,
            network: crate::model::Network::None,
            body: crate::model::BodyForm::Base64,
            public: false,
            triggers: Vec::new(),
            port_limits: crate::model::PortLimits::default(),
            cors: None,
            secrets: Vec::new(),
            env: BTreeMap::from([("KEEP".to_owned(), None), ("DROP".to_owned(), None)]),
            created_at: Timestamp::UNIX_EPOCH,
            updated_at: Timestamp::UNIX_EPOCH,
            url: "/fn/hello".into(),
            decisions: DecisionCounts::default(),
            notes: Vec::new(),
            copy_of: None,
        }
    }

    const PRESENT: &str = "handler=main.handler&memory_mb=128&timeout_ms=30000&max_concurrency=8&idle_timeout_s=300\
         &min_instances=0&template_idle_timeout_s=3600&start=auto&body=base64&network=none&env_name=&env_value=";

    async fn patch(body: &str) -> Result<Option<FunctionPatch>, InvalidField> {
        read(&encoded::<Settings>(body).await, &function())
    }

    #[tokio::test]
    async fn an_untouched_form_changes_nothing() {
        assert_eq!(patch(PRESENT).await, Ok(None));
    }

    #[tokio::test]
    async fn only_changes_are_sent() {
        let changed = PRESENT
            .replace("memory_mb=128", "memory_mb=256")
            .replace("body=base64", "body=bytes");
        let patch = patch(&format!(
            "{changed}&public=true&keep_warm=true&env_remove=DROP&env_remove=UNKNOWN&env_name=NEW&env_value=1\
             &env_known=KEEP&env_replace=2&env_known=DROP&env_replace=&env_known=UNKNOWN&env_replace=3"
        ))
        .await
        .expect("valid")
        .expect("a change");
        let env = BTreeMap::from([
            ("DROP".to_owned(), None),
            ("KEEP".to_owned(), Some("2".to_owned())),
            ("NEW".to_owned(), Some("1".to_owned())),
        ]);
        assert_eq!(
            patch,
            FunctionPatch {
                memory_mb: Some(256),
                public: Some(true),
                keep_warm: Some(true),
                body: Some(crate::model::BodyForm::Bytes),
                env: Some(env),
                ..FunctionPatch::default()
            }
        );
    }

    #[tokio::test]
    async fn destinations_are_lines() {
        let lines = "network=rules&network_allow=a.example%0D%0A%0D%0A+b.example:53/udp%0D%0A&network_dry_run=true";
        let changed = patch(&PRESENT.replace("network=none", lines)).await;
        let network = changed.expect("valid").expect("a change").network;
        let rules = crate::model::NetworkPolicy::parse(["a.example", "b.example:53/udp"]);
        let mut policy = rules.expect("rules");
        policy.dry_run = true;
        assert_eq!(network, Some(crate::model::Network::Policy(policy.into())));
        let wrong = PRESENT.replace(
            "network=none",
            "network=rules&network_allow=a.example%0Ab+c",
        );
        let error = patch(&wrong).await.expect_err("refused");
        assert_eq!(error.field, "network.allow[1]");
        // What is typed beside another choice waits for its own.
        let unused = PRESENT.replace("network=none", "network=none&network_allow=a.example");
        assert_eq!(patch(&unused).await, Ok(None));
    }

    #[tokio::test]
    async fn errors_of_limits_stand_at_their_inputs() {
        for (typed, input) in [
            ("limit_source_rate=0", "limit_source_rate"),
            (
                "limit_source_rate=1&limit_source_burst=x",
                "limit_source_burst",
            ),
            ("limit_total_rate=1.5", "limit_total_rate"),
            ("limit_total_burst=1", "limit_total_rate"),
            (
                "limit_total_rate=1&limit_total_burst=20000001",
                "limit_total_burst",
            ),
        ] {
            let error = patch(&format!("{PRESENT}&{typed}")).await;
            assert_eq!(error.expect_err(typed).field, input);
        }
    }

    #[tokio::test]
    async fn an_emptied_setting_is_refused() {
        let emptied = PRESENT.replace("memory_mb=128", "memory_mb=");
        let error = patch(&emptied).await.expect_err("refused");
        assert_eq!(error.field, "memory_mb");
    }
}
