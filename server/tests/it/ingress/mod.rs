//! Ports of functions as the kernel serves them: steered to one listener, counted and limited at an interface. Each test has a
//! network namespace of its own.

pub mod world;

mod datagrams;
mod interface;
mod limits;
mod lists;
mod steering;

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::Client;

const CODE: &str = r#"
def handler(event, context):
    return {"path": event["rawPath"], "by": context.function_name, "version": context.function_version,
            "cookies": event.get("cookies")}
"#;

/// Answers with what came, and from where.
pub const ECHO: &str = r#"
import base64, json
def handler(event, context):
    body = base64.b64decode(event["body"])
    if body == b"large":
        return {"body": "x" * 5000}
    return {"body": json.dumps({"got": len(body), "at": event["receivedAt"], "from": event["source"]["port"]})}
"#;

/// How long an answer may take before a test fails.
pub const PATIENCE: Duration = Duration::from_secs(20);

fn tcp(ports: &[u16]) -> Value {
    let triggers = ports
        .iter()
        .map(|port| json!({"protocol": "tcp", "port": port}));
    Value::Array(triggers.collect())
}

/// The head and the body that come of a request.
fn fetch(address: &str, head: &str) -> io::Result<(String, String)> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(
        stream,
        "{head}\r\nhost: any.example\r\nconnection: close\r\n\r\n"
    )?;
    let mut all = String::new();
    stream.read_to_string(&mut all)?;
    let (head, body) = all.split_once("\r\n\r\n").unwrap_or((&all, ""));
    Ok((head.to_owned(), body.to_owned()))
}

async fn deploy(client: &Client, name: &str, ports: &[u16]) -> Value {
    let settings = json!({"triggers": tcp(ports), "public": true});
    client.deploy(name, CODE, settings).await
}
