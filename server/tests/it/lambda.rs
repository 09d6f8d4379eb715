//! What functions written for AWS Lambda rely on, through the real server.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Lines, Server, archive};

/// Names and contents.
type Files = &'static [(&'static str, &'static [u8])];

#[tokio::test]
async fn pythons_root_logger_writes_into_the_invocations_log() {
    let server = Server::start();
    let client = server.client();
    let code = "import logging\n\
        logging.getLogger().setLevel(logging.INFO)\n\
        def handler(event, context):\n    logging.info('seen %s', event)\n    logging.debug('unseen')\n";
    client.deploy("logs", code, json!({})).await;
    let answer = client.invoke("logs", &json!(7)).await.expect(200);
    let id = answer.header("x-hearth-invocation-id").to_owned();
    let record = client.invocation(&id).await;
    let lines = record["logs"].as_array().expect("a list");
    assert_eq!(lines.len(), 1, "{record}");
    let text = lines[0]["text"].as_str().expect("text");
    assert!(text.starts_with("[INFO]\t20"), "{text}");
    assert!(text.ends_with(&format!("Z\t{id}\tseen 7")), "{text}");
    assert_eq!(lines[0]["stream"], "stdout");
}

#[tokio::test]
async fn nodes_response_stream_reaches_the_client_as_it_is_written() {
    let server = Server::start();
    let client = server.client();
    // The last line is written once the client, which has the first, has asked for it through another instance.
    let code = r#"
import fs from "node:fs";
const pause = () => new Promise((resolve) => setTimeout(resolve, 10));
export const handler = awslambda.streamifyResponse(async (event, stream) => {
  if (event.rawPath === "/go") {
    fs.writeFileSync("/tmp/go", "");
    stream.end("gone");
    return;
  }
  const metadata = { statusCode: 203, headers: { "content-type": "text/plain", "x-one": "1" }, cookies: ["a=1"] };
  const lines = awslambda.HttpResponseStream.from(stream, metadata);
  lines.write("first\n");
  for (const until = Date.now() + 15000; !fs.existsSync("/tmp/go") && Date.now() < until; ) await pause();
  lines.write("last\n");
  lines.end();
});
"#;
    client
        .deploy("streams", code, json!({"runtime": "node"}))
        .await;
    let mut lines = Lines::open(client.request(Method::GET, "/fn/streams")).await;
    assert_eq!(lines.response.status(), 203);
    let header = |name: &str| {
        let value = lines.response.headers().get(name);
        value.map(|value| value.to_str().unwrap().to_owned())
    };
    assert_eq!(header("content-type").as_deref(), Some("text/plain"));
    let id = header("x-hearth-invocation-id").expect("an id");
    assert_eq!(lines.next().await.as_deref(), Some("first"));
    client.get("/fn/streams/go").await.expect(200);
    assert_eq!(lines.next().await.as_deref(), Some("last"));
    assert_eq!(lines.next().await, None);
    let record = client.invocation(&id).await;
    assert_eq!(record["status"], "succeeded");
    assert_eq!(record["response_bytes"], "first\nlast\n".len());
    // The answer to an event is one value.
    let event = json!({"rawPath": "/go"});
    let answer = client.invoke("streams", &event).await.expect(200);
    assert_eq!(answer.json(), "gone");
}

#[tokio::test]
async fn a_layer_that_is_part_of_the_code_is_on_the_path() {
    let server = Server::start();
    let client = server.client();
    let cases: [(&str, Files); 2] = [
        (
            "python3",
            &[
                (
                    "main.py",
                    b"import dep\ndef handler(event, context):\n    return dep.WHERE\n",
                ),
                ("python/dep.py", b"WHERE = 'layer'\n"),
            ],
        ),
        (
            "node",
            &[
                (
                    "main.js",
                    b"const dep = require('dep');\nexports.handler = async () => dep;\n",
                ),
                (
                    "nodejs/node_modules/dep/index.js",
                    b"module.exports = 'layer';\n",
                ),
            ],
        ),
    ];
    for (runtime, files) in cases {
        let zip = STANDARD.encode(archive(files));
        let sent = json!({"name": runtime, "runtime": runtime, "code": {"zip_base64": zip}});
        client.post("/api/v1/functions", &sent).await.expect(201);
        let answer = client.invoke(runtime, &Value::Null).await.expect(200);
        assert_eq!(answer.json(), "layer", "{runtime}");
    }
}

#[tokio::test]
async fn the_x_ray_sdks_mark_costs_no_image() {
    let server = Server::start();
    let client = server.client();
    let python = "import os\n\
        os.mkdir('/tmp/.aws-xray')\n\
        open('/tmp/.aws-xray/initialized', 'w').close()\n\
        def handler(event, context):\n    return os.listdir('/tmp')\n";
    let node = "const fs = require('node:fs');\n\
        fs.mkdirSync('/tmp/.aws-xray');\n\
        fs.writeFileSync('/tmp/.aws-xray/initialized', '');\n\
        exports.handler = async () => fs.readdirSync('/tmp');\n";
    for (name, runtime, code) in [("marks", "python3", python), ("marked", "node", node)] {
        client.deploy(name, code, json!({"runtime": runtime})).await;
        let answer = client.invoke(name, &Value::Null).await.expect(200);
        assert_eq!(answer.json(), json!([]), "{runtime}");
    }
}

#[tokio::test]
async fn a_body_may_come_as_the_bytes_it_is() {
    let server = Server::start();
    let client = server.client();
    let python = "def handler(event, context):\n    \
        body = event.get('body')\n    \
        return [type(body).__name__, event['isBase64Encoded'], None if body is None else bytes(body).hex()]\n";
    let node = "exports.handler = async ({ body, isBase64Encoded }) => [\n  \
        Buffer.isBuffer(body) ? 'bytes' : typeof body, isBase64Encoded, body?.toString('hex') ?? null];\n";
    for (name, runtime, code, none) in [
        ("python", "python3", python, "NoneType"),
        ("node", "node", node, "undefined"),
    ] {
        let settings = json!({"runtime": runtime, "body": "bytes"});
        let deployed = client.deploy(name, code, settings).await;
        assert_eq!(deployed["body"], "bytes");
        let send = async |kind: &str, body: &'static [u8]| {
            let request = client
                .request(Method::POST, &format!("/fn/{name}"))
                .header("content-type", kind);
            client.send(request.body(body)).await.expect(200).json()
        };
        let binary = send("image/png", b"\x89PNG\xff").await;
        assert_eq!(binary, json!(["bytes", false, "89504e47ff"]));
        // Text, too: a handler has one kind of body to deal with.
        let text = send("text/plain", b"text").await;
        assert_eq!(text, json!(["bytes", false, "74657874"]));
        let empty = send("text/plain", b"").await;
        assert_eq!(empty, json!([none, false, null]));
    }
    // A setting as any other: back to Lambda's form, and listed among a version's changes.
    let echo =
        "def handler(event, context):\n    return [event['body'], event['isBase64Encoded']]\n";
    client
        .deploy("turned", echo, json!({"body": "bytes"}))
        .await;
    let path = "/api/v1/functions/turned";
    let patched = client.patch(path, &json!({"body": "base64"})).await;
    assert_eq!(patched.expect(200).json()["body"], "base64");
    let request = client.request(Method::POST, "/fn/turned");
    let answer = client.send(request.body(&b"\xff"[..])).await.expect(200);
    assert_eq!(answer.json(), json!(["/w==", true]));
}
