//! Results, starts, context, environment, hooks, randomness.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{Language, Subject, for_every_language};

for_every_language!(
    a_result_is_json_and_recorded,
    large_events_and_results_pass,
    the_context_has_lambdas_fields,
    the_environment_is_the_functions_own,
    variables_of_the_functions_own_replace_those_of_the_platform,
    hooks_run_around_the_start,
    siblings_share_no_randomness,
    a_new_version_replaces_the_old_one,
    import_errors_surface_at_deploy,
);

async fn a_result_is_json_and_recorded(language: Language) {
    let subject = Subject::new(language, json!({})).await;
    let value = json!({"a": [1, "ü", null, true, {"b": 1.5}]});
    let first = subject.send("echo", value.clone()).await.expect(200);
    assert_eq!(first.json(), value);
    assert_eq!(first.header("x-hearth-start"), language.first_kind());
    let record = subject.record(&first).await;
    assert_eq!(record["status"], "succeeded");
    assert_eq!(record["start"], language.first_kind());
    let second = subject.send("nothing", json!(null)).await.expect(200);
    assert_eq!(second.header("x-hearth-start"), "warm");
    assert_eq!(second.json(), json!(null));
    assert_eq!(subject.run("later", json!(5)).await, "later");
}

async fn large_events_and_results_pass(language: Language) {
    let subject = Subject::new(language, json!({})).await;
    let large = "0123456789abcdef".repeat(300_000);
    assert_eq!(subject.run("echo", json!(large)).await, json!(large));
    let over = subject.send("large", json!(6 << 20)).await;
    over.problem(502, "result_too_large");
    assert_eq!(subject.run("echo", json!(1)).await, 1);
}

async fn the_context_has_lambdas_fields(language: Language) {
    let subject = Subject::new(language, json!({"memory_mb": 96, "timeout_ms": 20000})).await;
    let answer = subject.send("context", json!(null)).await.expect(200);
    let context = answer.json();
    assert_eq!(context["name"], "all");
    assert_eq!(context["version"], "1");
    assert_eq!(context["memory"], "96");
    assert_eq!(context["id"], answer.header("x-hearth-invocation-id"));
    assert_eq!(context["group"], "/hearth/all");
    let text = |name: &str| context[name].as_str().unwrap_or_default().to_owned();
    assert!(text("arn").ends_with(":function:all:1"), "{context}");
    assert!(text("stream").starts_with("1/"), "{context}");
    let left = context["left"].as_u64().expect("a number");
    assert!((1..=20_000).contains(&left), "{context}");
}

async fn the_environment_is_the_functions_own(language: Language) {
    let settings = json!({"env": {"GREETING": "grüß", "NODE_OPTIONS": "--no-such-flag", "PYTHONPATH": "/nowhere"}});
    let subject = Subject::bare(language);
    // What would change the interpreter itself is either without effect or refused at deploy, never a crash later.
    let answer = subject.deploy("odd", language.everything(), settings).await;
    assert!(
        [201, 422].contains(&answer.status.as_u16()),
        "{}",
        answer.text()
    );
    subject
        .deploy(
            "all",
            language.everything(),
            json!({"env": {"GREETING": "grüß"}}),
        )
        .await
        .expect(201);
    let env = subject.run("env", json!(null)).await;
    let variables = env.as_object().expect("an object");
    let expected = [
        ("GREETING", "grüß"),
        ("HEARTH_FUNCTION", "all"),
        ("HEARTH_VERSION", "1"),
        ("HOME", "/tmp"),
        ("LANG", "C.UTF-8"),
        ("PATH", "/usr/local/bin:/usr/bin:/bin"),
        ("TZ", ":UTC"),
        ("AWS_DEFAULT_REGION", "us-east-1"),
        ("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "128"),
        ("AWS_LAMBDA_FUNCTION_NAME", "all"),
        ("AWS_LAMBDA_FUNCTION_VERSION", "1"),
        ("AWS_LAMBDA_INITIALIZATION_TYPE", language.initialization()),
        ("AWS_LAMBDA_LOG_GROUP_NAME", "/hearth/all"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_XRAY_CONTEXT_MISSING", "IGNORE_ERROR"),
        ("AWS_XRAY_SDK_ENABLED", "false"),
        (
            "LAMBDA_RUNTIME_DIR",
            language.choose("/opt/hearth/python", "/opt/hearth/node"),
        ),
        ("LAMBDA_TASK_ROOT", "/var/task"),
        ("_HANDLER", "main.handler"),
    ];
    for (name, value) in expected {
        assert_eq!(env[name], value, "{name}");
    }
    let kind = language.choose("AWS_Lambda_python3.", "AWS_Lambda_nodejs");
    let found = env["AWS_EXECUTION_ENV"].as_str().expect("text");
    assert!(found.starts_with(kind), "{found}");
    let context = subject.run("context", json!(null)).await;
    assert_eq!(env["AWS_LAMBDA_LOG_STREAM_NAME"], context["stream"]);
    assert_eq!(env["AWS_LAMBDA_LOG_GROUP_NAME"], context["group"]);
    let known = |name: &&String| expected.iter().any(|(known, _)| known == name);
    let mut others: Vec<&String> = variables.keys().filter(|name| !known(name)).collect();
    others.sort();
    assert_eq!(others, ["AWS_EXECUTION_ENV", "AWS_LAMBDA_LOG_STREAM_NAME"]);
}

async fn variables_of_the_functions_own_replace_those_of_the_platform(language: Language) {
    let subject = Subject::bare(language);
    let own = json!({
        "AWS_REGION": "eu-central-1", "AWS_LAMBDA_FUNCTION_NAME": "other", "AWS_LAMBDA_LOG_STREAM_NAME": "mine", "TZ": "Asia/Tokyo",
    });
    subject
        .deploy("all", language.everything(), json!({"env": own.clone()}))
        .await
        .expect(201);
    let env = subject.run("env", json!(null)).await;
    for (name, value) in own.as_object().expect("an object") {
        assert_eq!(env[name], *value, "{name}");
    }
}

async fn hooks_run_around_the_start(language: Language) {
    let subject = Subject::new(language, json!({})).await;
    assert_eq!(
        subject.run("hooks", json!(null)).await,
        json!(["before", "after"])
    );
}

async fn siblings_share_no_randomness(language: Language) {
    const SIBLINGS: usize = 20;
    let subject = Subject::new(language, json!({"max_concurrency": 1, "memory_mb": 64})).await;
    // Each is let go when it has answered, so that the next is another one.
    let mut seen: [HashSet<String>; 4] = Default::default();
    for _ in 0..SIBLINGS {
        let values = subject.run("random", json!(null)).await;
        for (set, value) in seen.iter_mut().zip(values.as_array().expect("a list")) {
            set.insert(value.to_string());
        }
        subject
            .send("exit", json!(0))
            .await
            .problem(502, "function_crashed");
    }
    for (set, name) in seen.iter().zip(["random", "UUID", "bytes", "pid"]) {
        assert_eq!(set.len(), SIBLINGS, "{name}: {set:?}");
    }
}

async fn a_new_version_replaces_the_old_one(language: Language) {
    let subject = Subject::new(language, json!({})).await;
    assert_eq!(subject.run("echo", json!(1)).await, 1);
    let two = language.choose(
        "def handler(event, context):\n    return context.function_version\n",
        "exports.handler = (event, context) => context.functionVersion;\n",
    );
    subject
        .client
        .put(
            "/api/v1/functions/all/code",
            &json!({"code": {"inline": two}}),
        )
        .await
        .expect(200);
    assert_eq!(subject.run("echo", json!(1)).await, "2");
}

async fn import_errors_surface_at_deploy(language: Language) {
    let subject = Subject::bare(language);
    let cases = [
        (
            language.choose("def handler(:\n", "export const handler = (;\n"),
            "SyntaxError",
        ),
        (
            language.choose("raise ValueError('no')\n", "throw new RangeError('no');\n"),
            language.choose("ValueError", "RangeError"),
        ),
        (
            language.choose("x = 1\n", "exports.x = 1;\n"),
            "Runtime.HandlerNotFound",
        ),
        (
            language.choose("handler = 1\n", "exports.handler = 1;\n"),
            "Runtime.HandlerNotCallable",
        ),
    ];
    for (code, expected) in cases {
        let answer = subject.deploy("broken", code, json!({})).await;
        assert_eq!(answer.status, 422, "{code}: {}", answer.text());
        let problem: Value = answer.json();
        assert!(problem.to_string().contains(expected), "{code}: {problem}");
    }
    subject
        .client
        .get("/api/v1/functions/broken")
        .await
        .expect(404);
}
