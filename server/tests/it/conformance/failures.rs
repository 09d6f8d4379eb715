//! Every way in which an invocation can fail, and that the function serves again afterwards.

use serde_json::json;

use super::{Language, Subject, for_every_language};

for_every_language!(
    an_error_is_shaped_as_lambda_does_and_costs_no_instance,
    what_json_cannot_say_is_a_marshal_error,
    a_handler_past_its_deadline_is_killed,
    a_crash_is_told_apart,
    memory_is_limited,
);

async fn an_error_is_shaped_as_lambda_does_and_costs_no_instance(language: Language) {
    let subject = Subject::new(language, json!({})).await;
    for _ in 0..2 {
        let answer = subject.send("raise", json!("no luck ü")).await;
        let record = subject.record(&answer).await;
        let problem = answer.problem(502, "function_error");
        assert_eq!(
            problem["errorType"],
            language.choose("ValueError", "RangeError")
        );
        assert_eq!(problem["errorMessage"], "no luck ü");
        let trace = problem["stackTrace"].to_string();
        let file = language.choose("main.py", "main.js");
        assert!(
            trace.contains(file) && !trace.contains("/opt/hearth"),
            "{trace}"
        );
        assert_eq!(
            (&record["status"], &record["error"]["errorMessage"]),
            (&json!("failed"), &json!("no luck ü"))
        );
    }
    let after = subject.send("echo", json!(1)).await.expect(200);
    assert_eq!(after.header("x-hearth-start"), "warm");
}

async fn what_json_cannot_say_is_a_marshal_error(language: Language) {
    let subject = Subject::new(language, json!({})).await;
    let problem = subject
        .send("cycle", json!(null))
        .await
        .problem(502, "function_error");
    assert_eq!(problem["errorType"], "Runtime.MarshalError");
    assert_eq!(subject.run("echo", json!(1)).await, 1);
}

async fn a_handler_past_its_deadline_is_killed(language: Language) {
    let subject = Subject::new(language, json!({"timeout_ms": 1500, "max_concurrency": 1})).await;
    for way in ["spin", "sleep", "later"] {
        let answer = subject.send(way, json!(60_000)).await;
        let record = subject.record(&answer).await;
        answer.problem(504, "function_timeout");
        assert_eq!(record["status"], "timed_out", "{way}");
        assert_eq!(subject.run("echo", json!(way)).await, way);
    }
}

async fn a_crash_is_told_apart(language: Language) {
    let subject = Subject::new(language, json!({})).await;
    for (way, with, said) in [
        ("exit", 3, "status 3"),
        ("signal", 9, "SIGKILL"),
        ("signal", 11, "SIGSEGV"),
    ] {
        let problem = subject
            .send(way, json!(with))
            .await
            .problem(502, "function_crashed");
        assert!(
            problem["detail"]
                .as_str()
                .is_some_and(|text| text.contains(said)),
            "{way}: {problem}"
        );
        assert_eq!(subject.run("echo", json!(way)).await, way);
    }
}

async fn memory_is_limited(language: Language) {
    let subject = Subject::new(language, json!({"memory_mb": 64, "max_concurrency": 1})).await;
    for _ in 0..2 {
        let answer = subject.send("hog", json!(null)).await;
        let record = subject.record(&answer).await;
        answer.problem(502, "function_out_of_memory");
        assert_eq!(record["status"], "out_of_memory");
        assert_eq!(subject.run("echo", json!(1)).await, 1);
    }
}
