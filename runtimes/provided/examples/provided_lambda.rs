//! A Lambda function in Rust, as for AWS: it knows nothing of Hearth.
#![allow(clippy::print_stdout, reason = "what a function prints is its log")]

use lambda_runtime::streaming::{Body, Response as Stream, channel};
use lambda_runtime::{Error, FunctionResponse, LambdaEvent, run, service_fn};
use serde_json::{Value, json};

#[tokio::main]
async fn main() -> Result<(), Error> {
    run(service_fn(handler)).await
}

async fn handler(event: LambdaEvent<Value>) -> Result<FunctionResponse<Value, Body>, Error> {
    let (event, context) = event.into_parts();
    let query = event["queryStringParameters"]["do"].as_str();
    let what = query
        .or(event["do"].as_str())
        .unwrap_or_default()
        .to_owned();
    let answer = match what.as_str() {
        "fail" => json!("x".parse::<u8>()?),
        "sleep" => {
            tokio::time::sleep(std::time::Duration::from_mins(1)).await;
            Value::Null
        }
        "panic" => panic!("as asked"),
        "context" => json!({
            "request_id": context.request_id,
            "arn": context.invoked_function_arn,
            "trace": context.xray_trace_id,
            "deadline": context.deadline,
            "function": context.env_config.function_name,
            "version": context.env_config.version,
            "memory": context.env_config.memory,
        }),
        "stream" => return Ok(FunctionResponse::StreamingResponse(pieces())),
        "cpus" => {
            let task =
                tokio::spawn(async { std::thread::available_parallelism().map(|n| n.get()) });
            json!(task.await??)
        }
        _ => event,
    };
    println!("did {what}");
    Ok(FunctionResponse::BufferedResponse(answer))
}

fn pieces() -> Stream<Body> {
    let (mut sender, body) = channel();
    tokio::spawn(async move {
        for number in 0..3 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            let _ = sender.send_data(format!("piece {number}\n").into()).await;
        }
    });
    Stream::from(body)
}
