//! Functions that make sockets, or serve and ask beside their handler: an ordinary loopback, in each way to start.

use std::time::Duration;

use serde_json::{Value, json};

use crate::restore;
use crate::support::{Client, Server, eventually};

/// As statsd, tracers and pools of connections do: sockets at import, that send when there is something to say.
const AT_IMPORT: &str = r#"
import errno
import http.server
import os
import socket
import threading
import urllib.request

metrics = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
metrics.connect(("127.0.0.1", 8125))
tracing = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
tracing.setblocking(False)
unconnected = socket.socket()
unconnected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
six = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
listener = socket.create_server(("127.0.0.1", 9000))

class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"page " + self.path.encode())

    def log_message(self, *_):
        pass

def attempt(act, *arguments):
    try:
        return act(*arguments)
    except OSError as error:
        return errno.errorcode[error.errno]

def twice():
    """The first datagram to nobody comes back as an error to the second one."""
    return [attempt(metrics.send, b"calls:1|c"), attempt(metrics.send, b"calls:1|c")]

def inherited():
    """A listener of the import's answers."""
    with socket.create_connection(("127.0.0.1", 9000), 5) as client:
        listener.accept()[0].sendall(b"from the import")
        return client.recv(64).decode()

def served(host, url):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    class Server(http.server.ThreadingHTTPServer):
        address_family = family
    server = Server((host, 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        return urllib.request.urlopen(url % server.server_address[1], timeout=5).read().decode()
    finally:
        server.shutdown()
        server.server_close()

def handler(event, context):
    return {
        "metrics": twice(), "tracing": attempt(tracing.sendto, b"x", ("127.0.0.1", 2000)),
        "elsewhere": attempt(tracing.sendto, b"x", ("192.0.2.1", 2000)), "inherited": inherited(),
        "unconnected": attempt(unconnected.connect, ("192.0.2.1", 80)), "six": attempt(six.sendto, b"x", ("::1", 9)),
        "four": served("127.0.0.1", "http://localhost:%d/4"), "served six": served("::1", "http://[::1]:%d/6"),
        "all": served("", "http://127.0.0.1:%d/any"), "interfaces": socket.if_nameindex(),
    }
"#;

fn by_python() -> Value {
    json!({
        "metrics": [9, "ECONNREFUSED"], "tracing": 1, "elsewhere": "ENETUNREACH", "inherited": "from the import",
        "unconnected": "ENETUNREACH", "six": 1, "four": "page /4", "served six": "page /6", "all": "page /any",
        "interfaces": [[1, "lo"]],
    })
}

/// The same with what Node.js offers, and an application that listens within the handler.
const IN_NODE: &str = r#"
import dgram from "node:dgram";
import dns from "node:dns";
import { once } from "node:events";
import http from "node:http";
import net from "node:net";
import os from "node:os";

const metrics = dgram.createSocket("udp4");
metrics.unref();
const agent = new http.Agent({ keepAlive: true });

const served = async (host, where) => {
  const server = http.createServer((request, response) => response.end(`page ${request.url}`));
  server.listen(0, host);
  await once(server, "listening");
  try {
    return await (await fetch(`http://${where}:${server.address().port}/x`)).text();
  } finally {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  }
};
const failed = (to) => new Promise((resolve) => {
  net.connect(to).on("connect", () => resolve("connected")).on("error", (error) => resolve(error.code));
});
const name = (ask) => ask.then(() => "found", (error) => error.code);

export const handler = async () => {
  const sent = await new Promise((resolve) => {
    metrics.send("calls:1|c", 8125, "127.0.0.1", (error, bytes) => resolve(error?.code ?? bytes));
  });
  return {
    sent,
    four: await served("127.0.0.1", "127.0.0.1"),
    six: await served("::1", "[::1]"),
    all: await served(undefined, "localhost"),
    elsewhere: await failed({ host: "192.0.2.1", port: 80 }),
    nobody: await failed({ host: "127.0.0.1", port: 81 }),
    lookup: await name(dns.promises.lookup("example.com")),
    resolve: await name(dns.promises.resolve4("example.com")),
    own: (await dns.promises.lookup("localhost", { family: 4 })).address,
    interfaces: Object.keys(os.networkInterfaces()),
    agent: Object.keys(agent.sockets).length,
  };
};
"#;

fn by_node() -> Value {
    json!({
        "sent": 9, "four": "page /x", "six": "page /x", "all": "page /x", "elsewhere": "ENETUNREACH",
        "nobody": "ECONNREFUSED", "lookup": "EAI_AGAIN", "resolve": "ECONNREFUSED", "own": "127.0.0.1",
        "interfaces": ["lo"], "agent": 0,
    })
}

/// Invokes it twice, and looks which way to start it was and that both answers are as they should be.
async fn expect(client: &Client, name: &str, start: &str, expected: &Value) {
    for start in [start, "warm"] {
        let answer = client.invoke(name, &json!({})).await.expect(200);
        assert_eq!(answer.json(), *expected, "{name}, {start}");
        assert_eq!(answer.header("x-hearth-start"), start, "{name}");
    }
}

#[tokio::test]
async fn sockets_made_at_import_work_in_forks() {
    let server = Server::start();
    let client = server.client();
    client.deploy("sockets", AT_IMPORT, one()).await;
    expect(&client, "sockets", "fork", &by_python()).await;
    client.deploy("node", IN_NODE, node()).await;
    expect(&client, "node", "fork", &by_node()).await;
}

/// Sockets that a restored instance makes; those of an import are in the next tests.
#[tokio::test]
async fn a_restored_sandbox_has_a_loopback() {
    for ahead in [false, true] {
        let server = restore::server(ahead);
        let client = server.client();
        // Node.js opens the socket when it is first used.
        client.deploy("node", IN_NODE, node()).await;
        if !restore::available(&client).await {
            return;
        }
        restore::image_of(&client, "node").await;
        restore::kill_template(&server, &client, "node").await;
        if ahead {
            restore::prewarmed(&client).await;
        }
        expect(&client, "node", "restore", &by_node()).await;
    }
}

/// Waits until an image was attempted; returns why there is none.
async fn image_or_reason(client: &Client, name: &str) -> Option<String> {
    eventually("an image or a reason", Duration::from_secs(60), || async {
        let function = client.get(&format!("/api/v1/functions/{name}")).await;
        let image = function.expect(200).json()["image"].clone();
        match (image["bytes"].as_u64(), image["note"].as_str()) {
            (Some(_), _) => Some(None),
            (None, Some(note)) => Some(Some(note.to_owned())),
            (None, None) => None,
        }
    })
    .await
}

/// CRIU up to 4.1 cannot keep TCP and UDP sockets of kernels from 6.16 on: then the version is booted, and says why.
#[tokio::test]
async fn sockets_made_at_import_are_restored_or_booted() {
    let server = restore::server(false);
    let client = server.client();
    client.deploy("sockets", AT_IMPORT, one()).await;
    if !restore::available(&client).await {
        return;
    }
    let start = match image_or_reason(&client, "sockets").await {
        None => "restore",
        Some(note) => {
            let reason = "the import leaves TCP or UDP sockets open";
            assert!(note.contains(reason), "{note}");
            "boot"
        }
    };
    restore::kill_template(&server, &client, "sockets").await;
    expect(&client, "sockets", start, &by_python()).await;
}

fn one() -> Value {
    json!({"max_concurrency": 1, "timeout_ms": 20_000})
}

fn node() -> Value {
    json!({"max_concurrency": 1, "timeout_ms": 20_000, "runtime": "node"})
}

/// A connection of the import's to itself is no part of an image: the version is booted instead, and says why.
#[tokio::test]
async fn a_connection_made_at_import_is_booted() {
    const CONNECTED: &str = r#"
import socket
listener = socket.create_server(("127.0.0.1", 9000))
client = socket.create_connection(("127.0.0.1", 9000))
served = listener.accept()[0]

def handler(event, context):
    served.sendall(b"across the import")
    return client.recv(64).decode()
"#;
    let server = restore::server(false);
    let client = server.client();
    client.deploy("connected", CONNECTED, one()).await;
    if !restore::available(&client).await {
        return;
    }
    let note = image_or_reason(&client, "connected").await;
    let reason = "the import leaves a TCP connection open";
    assert!(
        note.as_ref().is_some_and(|note| note.contains(reason)),
        "{note:?}"
    );
    let answer = client.invoke("connected", &json!({})).await.expect(200);
    assert_eq!(answer.json(), "across the import");
    restore::kill_template(&server, &client, "connected").await;
    let answer = client.invoke("connected", &json!({})).await.expect(200);
    assert_eq!(answer.json(), "across the import");
    assert_eq!(answer.header("x-hearth-start"), "boot");
}
