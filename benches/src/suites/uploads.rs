//! Large uploads to a function's URL, beside a bare server in the same language that receives the same, in turns.

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Instant;

use serde_json::json;

use crate::baselines::{PYTHON, node, sources};
use crate::client::{Connection, request_of};
use crate::process::{Program, bound, free_address, wait_for};
use crate::results::{Document, Samples};
use crate::scale::Scale;
use crate::server::{Runtime, Server};

/// Bytes of an upload.
const BYTES: usize = 100 << 20;
/// Uploads to each.
const TURNS: usize = 20;

/// The category of these requests.
pub const CATEGORY: &str = "100 MB up, one connection";

/// What the report calls Hearth's.
pub fn hearth(runtime: Runtime) -> String {
    format!("Hearth, {}, body as bytes", runtime.name())
}

/// What it calls the bare server's.
pub fn bare(runtime: Runtime) -> &'static str {
    match runtime {
        Runtime::Python => "Python's http.server",
        Runtime::Node => "bare Node HTTP server",
    }
}

/// A function that takes the whole body and says how long it is.
fn code(runtime: Runtime) -> &'static str {
    match runtime {
        Runtime::Python => {
            "def handler(event, context):\n    return {'statusCode': 200, 'body': str(len(event['body']))}\n"
        }
        Runtime::Node => {
            "export const handler = async (event) => ({ statusCode: 200, body: String(event.body.length) });\n"
        }
    }
}

/// Somebody who receives it.
struct Target {
    name: String,
    connection: Connection,
    request: Vec<u8>,
    found: Samples,
    _program: Option<Program>,
}

/// Measures each runtime.
pub fn run(scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    let server = Server::start(&[])?;
    let body = vec![b'x'; scale.pick(BYTES, 1 << 20)];
    let upload = |path: &str| request_of("POST", path, "application/octet-stream", &body);
    let length = body.len().to_string();
    for runtime in Runtime::ALL {
        if let Err(reason) = server.runtime(runtime)? {
            document.skip(&hearth(runtime), reason);
            continue;
        }
        let name = format!("upload-{}", runtime.name());
        let settings = json!({ "body": "bytes", "memory_mb": 1024 });
        server.deploy(&name, runtime, code(runtime), &settings)?;
        let (program, address) = start(runtime)?;
        let target = |name: String, address, path: &str, program| -> anyhow::Result<Target> {
            Ok(Target {
                name,
                connection: Connection::open(address)?,
                request: upload(path),
                found: Samples::default(),
                _program: program,
            })
        };
        let path = format!("/fn/{name}");
        let mut targets = [
            target(hearth(runtime), server.address, &path, None)?,
            target(bare(runtime).to_owned(), address, "/", Some(program))?,
        ];
        for _ in 0..scale.pick(TURNS, 1) {
            for target in &mut targets {
                let begun = Instant::now();
                let answer = target.connection.exchange(&target.request)?;
                target.found.push(begun.elapsed());
                answer.good()?;
                anyhow::ensure!(answer.body == length.as_bytes(), "it received less");
            }
        }
        for target in targets {
            document.add(CATEGORY, &target.name, target.found);
        }
    }
    Ok(())
}

/// Starts the bare server and waits until it answers.
fn start(runtime: Runtime) -> anyhow::Result<(Program, SocketAddr)> {
    let address = free_address()?;
    let (interpreter, script) = match runtime {
        Runtime::Python => (PYTHON.into(), "upload.py"),
        Runtime::Node => (node(), "upload.mjs"),
    };
    let mut command = bound(interpreter)?;
    command
        .arg(sources().join(script))
        .arg(address.port().to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut program = Program::start(&mut command)?;
    wait_for(&mut program, address)?;
    Ok((program, address))
}
