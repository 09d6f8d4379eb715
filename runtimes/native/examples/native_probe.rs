//! A function that does what its event says, for tests.
#![allow(clippy::print_stdout, reason = "what a function prints is its log")]

use std::time::Duration;

use hearth_native::{Context, Error};
use serde_json::{Value, json};

fn main() {
    let boot = std::process::id();
    let (mut calls, mut hooks) = (0, 0);
    let (hook, hooked) = std::sync::mpsc::channel();
    hearth_native::on_start(move || {
        let _ = hook.send(());
    });
    println!("imported");
    hearth_native::serve(move |event: Value, context| {
        calls += 1;
        hooks += hooked.try_iter().count();
        println!("call {calls}");
        match event["do"].as_str() {
            Some("state") => Ok(json!({
                "calls": calls, "hooks": hooks, "is_template": std::process::id() == boot,
            })),
            _ => act(&event, context),
        }
    })
}

fn act(event: &Value, context: &mut Context<'_>) -> Result<Value, Error> {
    if event["rawPath"].is_string() {
        return Ok(json!({
            "statusCode": 201,
            "headers": {"x-path": event["rawPath"]},
            "body": event["body"],
            "isBase64Encoded": event["isBase64Encoded"],
        }));
    }
    match event["do"].as_str().unwrap_or_default() {
        "fail" => Err("no number".parse::<u32>().expect_err("none").into()),
        "panic" => panic!("as {} asked", context.function_name()),
        "exit" => std::process::exit(3),
        "sleep" => {
            std::thread::sleep(Duration::from_secs(60));
            Ok(Value::Null)
        }
        "context" => Ok(json!([
            context.request_id(),
            context.function_name(),
            context.function_version(),
            context.memory_limit_in_mb(),
            context.remaining_time() > Duration::ZERO,
            context.traceparent(),
        ])),
        "call" => Ok(context.chain()?.call("double", &event["value"])?),
        _ => Ok(event.clone()),
    }
}
