//! Secrets: kept, listed, given to functions, and put into their requests outside the sandbox.

mod traces;
mod upstream;

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::network::world::{OTHER, WEB, World};
use crate::support::{Answer, Client, Server, eventually};
use upstream::{Upstream, header};

const VALUE: &str = "sk_live_Tq7vXw2mZr9pLk4s";
const NEXT: &str = "sk_live_Nf8bYc3jHd6gVe1a";
const PASSWORD: &str = "Kx81vQzM42tWnRb7";
/// As basic authentication sends it, for the user `ada`.
const BASIC: &str = "YWRhOkt4ODF2UXpNNDJ0V25SYjc=";

/// Sends what it is told to.
const PYTHON: &str = r#"
import hashlib, os, socket, ssl, urllib.error, urllib.request

def fetch(url, headers, body):
    data = None if body is None else body.encode()
    request = urllib.request.Request(url, headers=headers, data=data)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return [answer.status, answer.read().decode()]
    except urllib.error.HTTPError as error:
        return [error.code, error.read().decode()]
    except Exception as error:
        return [0, f"{type(error).__name__}: {error}"]

def certificate(host, named):
    context = ssl._create_unverified_context()
    with socket.create_connection((host, 443), timeout=20) as stream:
        with context.wrap_socket(stream, server_hostname=named) as tls:
            return hashlib.sha256(tls.getpeercert(binary_form=True)).hexdigest()

def handler(event, context):
    match event:
        case {"url": url}: return fetch(url, event.get("headers", {}), event.get("body"))
        case {"certificate": host}:
            try: return certificate(host, event.get("named", host))
            except Exception as error: return f"{type(error).__name__}: {error}"
        case {"env": name}: return os.environ.get(name)
        case {"abort": place}:
            if not (child := os.fork()):
                os.chdir(place)
                os.abort()
            status = os.waitpid(child, 0)[1]
            return [os.WTERMSIG(status), os.WCOREDUMP(status)]
        case {"flood": count}:
            kept = [socket.create_connection(("api.example.com", 443)) for _ in range(count)]
            return fetch("https://api.example.com/after", {}, None), kept.clear()
"#;

const NODE: &str = r#"
const https = require("node:https");
const get = (url, headers) => new Promise((resolve) => {
  https.get(url, { headers }, (answer) => {
    let text = "";
    answer.on("data", (piece) => (text += piece)).on("end", () => resolve([answer.statusCode, text]));
  }).on("error", (error) => resolve([0, String(error)]));
});
exports.handler = async ({ url, by, headers }) => {
  if (by === "https") return get(url, headers);
  try {
    const answer = await fetch(url, { headers });
    return [answer.status, await answer.text()];
  } catch (error) {
    return [0, `${error} ${error.cause}`];
  }
};
"#;

const PATH: &str = "/api/v1/functions/f";

async fn put(client: &Client, name: &str, value: &str) -> Answer {
    let request = client.request(Method::PUT, &format!("/api/v1/secrets/{name}"));
    client.send(request.json(&json!({"value": value}))).await
}

async fn delete(client: &Client, name: &str) -> Answer {
    let request = client.request(Method::DELETE, &format!("/api/v1/secrets/{name}"));
    client.send(request).await
}

async fn list(client: &Client) -> Vec<Value> {
    let all = client.get("/api/v1/secrets").await.expect(200).json();
    all["items"].as_array().expect("a list").clone()
}

async fn call(client: &Client, event: Value) -> Value {
    let path = format!("{PATH}/invoke");
    client.post(&path, &event).await.expect(200).json()
}

fn brokered() -> Value {
    json!([
        {"secret": "stripe", "host": "api.example.com"},
        {"secret": "stripe", "host": "api.example.com", "header": "X-Key", "format": "key={}"},
        {"secret": "login", "host": "basic.example.com:8443", "basic": "ada"},
    ])
}

fn settings(runtime: &str) -> Value {
    json!({
        "runtime": runtime, "timeout_ms": 60_000, "secrets": brokered(),
        "network": {"allow": ["api.example.com", "other.example.com", "basic.example.com:8443"]},
    })
}

/// A world with hosts, and a server with two secrets in it.
struct Setting {
    world: World,
    upstream: Upstream,
    server: Option<Server>,
    dir: tempfile::TempDir,
}

impl Setting {
    async fn new() -> Self {
        let world = World::enter();
        let names = ["api.example.com", "other.example.com", "basic.example.com"];
        for (name, address) in names.iter().zip([WEB, OTHER, WEB]) {
            world.name(name, &[address]);
        }
        let dir = tempfile::tempdir().expect("a directory");
        let upstream = Upstream::start(&world, &names, dir.path());
        let mut setting = Self {
            world,
            upstream,
            server: None,
            dir,
        };
        setting.start();
        let client = setting.client();
        for (name, value) in [("stripe", VALUE), ("login", PASSWORD)] {
            put(&client, name, value).await.expect(201);
        }
        setting
    }

    fn start(&mut self) {
        self.server = None;
        let data = self.dir.path().join("data");
        std::fs::create_dir_all(&data).expect("a directory");
        let trust = self.upstream.trust.to_str().expect("a path");
        let settings = [("SSL_CERT_FILE", trust)];
        self.server = Some(self.world.server_with(&settings, &data));
    }

    fn server(&self) -> &Server {
        self.server.as_ref().expect("it runs")
    }

    fn client(&self) -> Client {
        self.server().client()
    }
}

#[tokio::test]
async fn a_secret_is_kept_listed_and_deleted() {
    let server = Server::start();
    let client = server.client();
    assert_eq!(list(&client).await, Vec::<Value>::new());
    let made = put(&client, "stripe", VALUE).await.expect(201).json();
    assert_eq!(made["functions"], json!([]));
    assert_eq!(made["last_used_at"], Value::Null);
    let again = put(&client, "stripe", NEXT).await.expect(200).json();
    assert_eq!(again["created_at"], made["created_at"]);
    put(&client, "a/b", VALUE).await.expect(404);
    let problem = put(&client, "_a", VALUE)
        .await
        .problem(422, "invalid_field");
    assert_eq!(problem["field"], "name");
    for body in [
        json!({"vaule": VALUE}),
        json!({}),
        json!({"value": [VALUE]}),
    ] {
        let request = client.request(Method::PUT, "/api/v1/secrets/b").json(&body);
        let problem = client.send(request).await.problem(422, "invalid_field");
        assert!(!problem.to_string().contains(VALUE), "{problem}");
    }
    let all = list(&client).await;
    assert_eq!(all.len(), 1);
    assert!(!format!("{all:?}").contains(NEXT));
    let server = server.restart();
    let client = server.client();
    assert_eq!(list(&client).await.len(), 1);
    delete(&client, "stripe").await.expect(204);
    delete(&client, "stripe").await.problem(404, "not_found");
    let audit = client.get("/api/v1/audit").await.expect(200).json();
    let actions: Vec<&str> = audit["items"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|record| record["action"].as_str())
        .collect();
    for action in ["secret.create", "secret.replace", "secret.delete"] {
        assert!(actions.contains(&action), "{actions:?}");
    }
    assert!(!audit.to_string().contains("sk_live"), "{audit}");
}

#[tokio::test]
async fn settings_name_secrets_that_are_there_and_hosts_that_are_allowed() {
    let server = Server::start();
    let client = server.client();
    put(&client, "stripe", VALUE).await.expect(201);
    put(&client, "lines", "two\nlines").await.expect(201);
    let open = json!({"allow": ["api.example.com"]});
    for (entry, network, env, field) in [
        (
            json!({"secret": "absent", "env": "A"}),
            json!("none"),
            json!({}),
            "secrets[0].secret",
        ),
        (
            json!({"secret": "stripe", "env": "A"}),
            json!("none"),
            json!({"A": "1"}),
            "secrets[0].env",
        ),
        (
            json!({"secret": "stripe", "host": "api.example.com"}),
            json!("none"),
            json!({}),
            "secrets[0].host",
        ),
        (
            json!({"secret": "stripe", "host": "b.example.com"}),
            open.clone(),
            json!({}),
            "secrets[0].host",
        ),
        (
            json!({"secret": "stripe", "host": "api.example.com:8443"}),
            open.clone(),
            json!({}),
            "secrets[0].host",
        ),
        (
            json!({"secret": "lines", "host": "api.example.com"}),
            open.clone(),
            json!({}),
            "secrets[0].secret",
        ),
        (
            json!({"secret": "stripe", "host": "api.example.com", "header": "Host"}),
            open.clone(),
            json!({}),
            "secrets[0].header",
        ),
    ] {
        let settings = json!({"secrets": [entry], "network": network, "env": env});
        let refused = client.try_deploy("f", PYTHON, settings).await;
        let problem = refused.problem(422, "invalid_field");
        assert_eq!(problem["field"], field, "{problem}");
        assert!(!problem.to_string().contains("sk_live"), "{problem}");
    }
    let given =
        json!({"secrets": [{"secret": "stripe", "host": "api.example.com"}], "network": open});
    client.deploy("f", PYTHON, given).await;
    let function = client.get(PATH).await.expect(200).json();
    assert_eq!(
        function["secrets"],
        json!([{"secret": "stripe", "host": "api.example.com", "header": "Authorization", "format": "Bearer {}"}])
    );
    let refused = client.patch(PATH, &json!({"network": "none"})).await;
    assert_eq!(
        refused.problem(422, "invalid_field")["field"],
        "secrets[0].host"
    );
    // A value that cannot stand where it is used, and the deletion of one that is used.
    let refused = put(&client, "stripe", "two\nlines").await;
    assert_eq!(refused.problem(422, "invalid_field")["field"], "value");
    let problem = delete(&client, "stripe")
        .await
        .problem(409, "secret_in_use");
    assert!(
        problem["detail"]
            .as_str()
            .is_some_and(|said| said.contains("used by f")),
        "{problem}"
    );
    assert_eq!(list(&client).await[1]["functions"], json!(["f"]));
    client
        .patch(PATH, &json!({"secrets": []}))
        .await
        .expect(200);
    delete(&client, "stripe").await.expect(204);
    // The former version cannot come back without it.
    let back = client
        .post(&format!("{PATH}/versions/1/activate"), &json!({}))
        .await;
    assert_eq!(
        back.problem(422, "invalid_field")["field"],
        "secrets[0].secret"
    );
    // A token that is limited to the function gives it no secrets.
    put(&client, "other", VALUE).await.expect(201);
    let limited = json!({"name": "ci", "rights": ["read", "write"], "scope": ["f"]});
    let made = client
        .post("/api/v1/tokens", &limited)
        .await
        .expect(201)
        .json();
    let limited = server.client_with(made["token"].as_str());
    let bind = json!({"secrets": [{"secret": "other", "env": "OTHER"}]});
    limited.patch(PATH, &bind).await.problem(403, "forbidden");
    limited
        .get("/api/v1/secrets")
        .await
        .problem(403, "forbidden");
    client.patch(PATH, &bind).await.expect(200);
    limited
        .patch(PATH, &json!({"memory_mb": 256}))
        .await
        .expect(200);
}

#[tokio::test]
async fn a_rotated_variable_restarts_its_functions_without_a_failed_request() {
    let server = Server::start();
    let client = server.client();
    put(&client, "stripe", VALUE).await.expect(201);
    let given = json!({"secrets": [{"secret": "stripe", "env": "KEY"}]});
    client.deploy("f", PYTHON, given).await;
    let event = json!({"env": "KEY"});
    assert_eq!(call(&client, event.clone()).await, VALUE);
    let calls = async {
        let mut values = Vec::new();
        for _ in 0..200 {
            values.push(call(&client, event.clone()).await);
        }
        values
    };
    let rotate = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let change = put(&client, "stripe", NEXT).await.expect(200).json();
        assert_eq!(change["restarted"], json!(["f"]), "{change}");
        assert_eq!(change["not_restarted"], json!([]), "{change}");
        // From here on it is the new one.
        assert_eq!(call(&client, event.clone()).await, NEXT);
    };
    let (values, ()) = tokio::join!(calls, rotate);
    assert!(values.iter().all(|value| *value == VALUE || *value == NEXT));
    let function = client.get(PATH).await.expect(200).json();
    assert_eq!(function["active_version"], 1);
    let used = &list(&client).await[0]["last_used_at"];
    assert!(used.is_string(), "{used}");
}

/// The request with this path, as the hosts have seen it.
fn sent(all: &[String], path: &str) -> String {
    let found = all.iter().find(|head| head.contains(&format!(" {path} ")));
    found
        .unwrap_or_else(|| panic!("no {path} in {all:?}"))
        .clone()
}

#[tokio::test]
async fn requests_to_a_bound_host_carry_the_secret() {
    let setting = Setting::new().await;
    let (client, upstream) = (setting.client(), &setting.upstream);
    client.deploy("f", PYTHON, settings("python3")).await;
    // What the function sends under that name is replaced.
    let headers = json!({"authorization": "Bearer mine", "X-Mine": "1"});
    let event =
        json!({"url": "https://api.example.com/v1?a=b", "headers": headers, "body": "hello"});
    let answer = call(&client, event).await;
    assert_eq!(answer, json!([200, "api.example.com /v1?a=b hello"]));
    let head = sent(&upstream.take(), "/v1?a=b");
    assert_eq!(
        header(&head, "authorization"),
        Some(&*format!("Bearer {VALUE}"))
    );
    assert_eq!(header(&head, "x-key"), Some(&*format!("key={VALUE}")));
    assert_eq!(header(&head, "x-mine"), Some("1"));
    assert_eq!(header(&head, "host"), Some("api.example.com"));
    assert_eq!(head.matches("uthorization").count(), 1, "{head}");
    let answer = call(&client, json!({"url": "https://basic.example.com:8443/b"})).await;
    assert_eq!(answer[0], 200, "{answer}");
    let head = sent(&upstream.take(), "/b");
    assert_eq!(
        header(&head, "authorization"),
        Some(&*format!("Basic {BASIC}"))
    );
    // Another host sees no secret, and is seen itself; a bound one is seen by the function's own authority.
    let other = json!({"certificate": "other.example.com"});
    assert_eq!(call(&client, other).await, upstream.certificate);
    let bound = call(&client, json!({"certificate": "api.example.com"})).await;
    assert!(
        bound
            .as_str()
            .is_some_and(|hash| hash.len() == 64 && hash != upstream.certificate),
        "{bound}"
    );
    // A redirect to another host is the function's to follow, without the secret.
    upstream.take();
    call(
        &client,
        json!({"url": "https://api.example.com/to/other.example.com"}),
    )
    .await;
    let all = upstream.take();
    assert!(sent(&all, "/to/other.example.com").contains(VALUE));
    assert!(
        !all.iter()
            .any(|head| head.starts_with("other") && head.contains(VALUE)),
        "{all:?}"
    );
    // The name of the connection decides, and the request has to agree.
    let headers = json!({"Host": "other.example.com"});
    let answer = call(
        &client,
        json!({"url": "https://api.example.com/x", "headers": headers}),
    )
    .await;
    assert_eq!(answer[0], 421, "{answer}");
    let unbound = json!({"certificate": "api.example.com", "named": "evil.example.com"});
    let refused = call(&client, unbound).await;
    assert!(
        refused.as_str().is_some_and(|said| said.contains("SSL")),
        "{refused}"
    );
    assert!(upstream.take().iter().all(|head| !head.contains(" /x ")));
    // It counts and is limited as the function's own traffic.
    let view = client
        .get(&format!("{PATH}/network"))
        .await
        .expect(200)
        .json();
    assert!(
        view["totals"]["connections"]
            .as_u64()
            .is_some_and(|count| count >= 2),
        "{view}"
    );
    assert!(
        view["totals"]["bytes_out"]
            .as_u64()
            .is_some_and(|bytes| bytes > 500),
        "{view}"
    );
    let used = list(&client).await;
    assert!(
        used.iter().all(|secret| secret["last_used_at"].is_string()),
        "{used:?}"
    );
}

#[tokio::test]
async fn a_new_value_holds_for_the_next_request() {
    let mut setting = Setting::new().await;
    let client = setting.client();
    client.deploy("f", PYTHON, settings("python3")).await;
    let event = json!({"url": "https://api.example.com/r"});
    for value in [VALUE, NEXT] {
        let change = put(&client, "stripe", value).await.expect(200).json();
        assert_eq!(change["restarted"], json!([]));
        assert_eq!(call(&client, event.clone()).await[0], 200);
        assert!(sent(&setting.upstream.take(), "/r").contains(value));
    }
    // And after a restart of the server.
    setting.start();
    let client = setting.client();
    assert_eq!(call(&client, event).await[0], 200);
    assert!(sent(&setting.upstream.take(), "/r").contains(NEXT));
    let server = setting.server.take().expect("it runs");
    drop(server);
    // Without its key it does not start, and says why.
    let data = setting.dir.path().join("data");
    let key = std::fs::metadata(data.join("secrets.key")).expect("a key");
    assert_eq!(key.permissions().mode() & 0o777, 0o600);
    std::fs::remove_file(data.join("secrets.key")).expect("removed");
    let output = crate::support::command(&data).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && said.contains("secrets.key"),
        "{said}"
    );
}

#[tokio::test]
async fn a_host_with_a_wrong_certificate_gets_no_secret() {
    let setting = Setting::new().await;
    let (client, upstream) = (setting.client(), &setting.upstream);
    setting.world.name("wrong.example.com", &[WEB]);
    let bound = json!({
        "secrets": [{"secret": "stripe", "host": "wrong.example.com"}, {"secret": "stripe", "host": "absent.example.com"}],
        "network": {"allow": ["*.example.com"]},
    });
    client.deploy("f", PYTHON, bound).await;
    let answer = call(&client, json!({"url": "https://wrong.example.com/"})).await;
    assert_eq!(answer[0], 502, "{answer}");
    assert!(
        answer[1]
            .as_str()
            .is_some_and(|said| said.contains("TLS") && !said.contains(VALUE)),
        "{answer}"
    );
    let answer = call(&client, json!({"url": "https://absent.example.com/"})).await;
    assert_eq!(answer[0], 502, "{answer}");
    assert_eq!(upstream.take(), Vec::<String>::new());
}

#[tokio::test]
async fn half_open_connections_hold_up_no_request_of_others() {
    let setting = Setting::new().await;
    let client = setting.client();
    client.deploy("f", PYTHON, settings("python3")).await;
    let answer = call(&client, json!({"flood": 200})).await;
    assert_eq!(answer[0][0], 200, "{answer}");
}

#[tokio::test]
async fn node_needs_to_know_nothing_of_it() {
    let setting = Setting::new().await;
    let client = setting.client();
    client.deploy("f", NODE, settings("node")).await;
    for by in ["fetch", "https"] {
        let event = json!({"url": "https://api.example.com/n", "by": by, "headers": {"authorization": "mine"}});
        let answer = call(&client, event).await;
        assert_eq!(answer, json!([200, "api.example.com /n "]), "{by}");
        let head = sent(&setting.upstream.take(), "/n");
        assert_eq!(
            header(&head, "authorization"),
            Some(&*format!("Bearer {VALUE}")),
            "{by}"
        );
    }
}

/// What an import has read of the trust store stays good when the template comes out of an image.
const EARLY: &str = r#"
import ssl, threading, urllib.request
context = ssl.create_default_context()

def handler(event, context_):
    with urllib.request.urlopen("https://api.example.com/early", timeout=20, context=context) as answer:
        return answer.read().decode()
"#;

#[tokio::test]
async fn it_works_after_each_kind_of_start() {
    let mut setting = Setting::new().await;
    for start in ["boot", "restore", "fork"] {
        let mut given = settings("python3");
        given["start"] = start.into();
        setting.client().deploy(start, EARLY, given).await;
    }
    eventually("an image", Duration::from_secs(60), || async {
        let view = setting.client().get("/api/v1/functions/restore").await;
        view.expect(200).json()["image"]["bytes"].as_u64()
    })
    .await;
    for round in 0..2 {
        let client = setting.client();
        for start in ["boot", "restore", "fork"] {
            let path = format!("/api/v1/functions/{start}/invoke");
            let answer = client.post(&path, &json!({})).await.expect(200);
            let kind = answer.header("x-hearth-start").to_owned();
            assert_eq!(answer.json(), "api.example.com /early ", "{start}, {kind}");
            if start == "restore" && round == 1 {
                assert_eq!(kind, "restore");
            }
            assert!(sent(&setting.upstream.take(), "/early").contains(VALUE));
        }
        setting.start();
    }
}
