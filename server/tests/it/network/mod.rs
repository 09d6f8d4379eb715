//! What functions reach over the network: real sandboxes in a small internet of the test's own.

mod clients;
mod servers;
pub mod world;

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::support::{Client, Server, eventually};
use world::{METADATA, OTHER, PRIVATE, WEB, WEB6, World};

/// Fetches the URL in the event, and says how long that took.
const PYTHON: &str = r#"
import os, socket, struct, time, urllib.request

def attempt(url):
    try:
        with urllib.request.urlopen(url, timeout=8) as answer:
            return answer.read().decode()
    except Exception as error:
        return f"{type(error).__name__}: {error}"

def half_a_question():
    s = socket.create_connection(("127.0.0.1", 53))
    s.sendall(struct.pack(">H", 100) + b"half")
    return s

kept = []

def handler(event, context):
    match event:
        case {"url": url}: return [attempt(url), os.getpid()]
        case {"urls": urls}: return [attempt(url) for url in urls]
        case {"resolve": names}:
            found = 0
            for name in names:
                try:
                    socket.getaddrinfo(name, 80)
                    found += 1
                except OSError: pass
            return found
        case {"stall": count}:
            kept.extend(half_a_question() for _ in range(count))
            return count
        case {"connect": [address, port]}:
            try:
                socket.create_connection((address, port), timeout=8).close()
                return "connected"
            except OSError as error: return type(error).__name__ + ": " + str(error)
        case {"keep": [host, port]}:
            s = socket.create_connection((host, port), timeout=8)
            kept.append(s)
            return "kept"
        case {"use": _}:
            if not kept:
                # So that another instance is asked meanwhile.
                time.sleep(0.3)
                return "none"
            s = kept.pop()
            s.settimeout(8)
            try:
                s.sendall(b"GET / HTTP/1.1\r\n\r\n")
                return s.recv(1000).decode().split()[1]
            except OSError as error: return type(error).__name__
"#;

const NODE: &str = r#"
exports.handler = async ({ url }) => {
  try {
    return await (await fetch(url)).text();
  } catch (error) {
    return `${error.name}: ${error.cause?.code ?? error.message}`;
  }
};
"#;

const PATH: &str = "/api/v1/functions/f";

async fn deploy(client: &Client, network: Value) {
    let settings = json!({"network": network, "timeout_ms": 60_000});
    client.deploy("f", PYTHON, settings).await;
}

async fn call(client: &Client, event: Value) -> Value {
    let path = format!("{PATH}/invoke");
    client.post(&path, &event).await.expect(200).json()
}

/// What comes of a request.
async fn fetch(client: &Client, url: &str) -> String {
    let answer = call(client, json!({"url": url})).await;
    answer[0].as_str().expect("text").to_owned()
}

fn is_refused(said: &str) -> bool {
    said.contains("URLError") || said.contains("OSError")
}

async fn network(client: &Client) -> Value {
    client
        .get(&format!("{PATH}/network"))
        .await
        .expect(200)
        .json()
}

/// Waits for a destination that was not simply allowed.
async fn seen(client: &Client, rule: &str, outcome: &str) -> Value {
    eventually("a destination is seen", Duration::from_secs(10), || async {
        let view = network(client).await;
        let all = view["destinations"].as_array()?;
        all.iter()
            .find(|seen| seen["rule"] == rule && seen["outcome"] == outcome)
            .cloned()
    })
    .await
}

async fn allow(client: &Client, rules: Value) -> Value {
    let change = json!({"network": {"allow": rules}});
    client.patch(PATH, &change).await.expect(200).json()
}

fn world() -> (World, Server) {
    let world = World::enter();
    world.name("api.example.com", &[WEB, WEB6]);
    world.name("other.example.com", &[OTHER]);
    let server = world.server();
    (world, server)
}

#[tokio::test]
async fn an_allowed_name_is_reached_and_another_is_not() {
    let (world, server) = world();
    let client = server.client();
    deploy(&client, json!({"allow": ["api.example.com"]})).await;
    let reached = fetch(&client, "http://api.example.com/").await;
    assert!(reached.starts_with("reached "), "{reached}");
    let refused = fetch(&client, "http://other.example.com/").await;
    assert!(is_refused(&refused), "{refused}");
    let refusal = seen(&client, "other.example.com", "refused").await;
    assert_eq!(refusal["name"], "other.example.com");
    // It was not even asked for.
    assert!(
        !world
            .zone
            .lock()
            .asked
            .contains(&"other.example.com".to_owned())
    );
    // Neither is its address reached without a name, nor the allowed one at another port.
    for url in [
        format!("http://{OTHER}/"),
        "http://api.example.com:8080/".into(),
    ] {
        let refused = fetch(&client, &url).await;
        assert!(is_refused(&refused), "{url}: {refused}");
    }
    seen(&client, &format!("{OTHER}:80"), "refused").await;
    seen(&client, "api.example.com:8080", "refused").await;
    let view = network(&client).await;
    assert!(
        view["totals"]["bytes_in"].as_u64().expect("a number") > 100,
        "{view}"
    );
    let metrics = client.get("/metrics").await.expect(200).text();
    assert!(
        metrics.contains("hearth_network_refused_names_total{function=\"f\"}"),
        "{metrics}"
    );
}

#[tokio::test]
async fn what_was_reached_is_seen_by_destination() {
    let (world, server) = world();
    world.name("other.example.com", &[OTHER, WEB6]);
    let client = server.client();
    deploy(
        &client,
        json!({"allow": ["api.example.com", format!("{OTHER}:8080")]}),
    )
    .await;
    let urls = [
        "http://api.example.com/".to_owned(),
        "http://api.example.com/".to_owned(),
        format!("http://{OTHER}:8080/"),
        format!("http://{OTHER}/"),
    ];
    call(&client, json!({ "urls": urls })).await;
    let seen = async |name: Value, port: u16| {
        let view = network(&client).await;
        let all = view["reached"].as_array().expect("a list").clone();
        all.into_iter()
            .find(|one| one["name"] == name && one["port"] == port)
    };
    let api = eventually("what was reached", Duration::from_secs(10), || async {
        let api = seen(json!("api.example.com"), 80).await?;
        (api["connections"] == 2).then_some(api)
    });
    assert_eq!(api.await["protocol"], "tcp");
    let by_address = seen(Value::Null, 8080)
        .await
        .expect("what no name has led to");
    assert_eq!(
        (&by_address["address"], &by_address["connections"]),
        (&json!(OTHER), &json!(1))
    );
    assert_eq!(seen(Value::Null, 80).await, None, "it was refused");
    // Its bytes are known when it is over, which it is at once for one that is cut.
    allow(&client, json!(["nothing.example.com"])).await;
    let api = eventually("its bytes", Duration::from_secs(10), || async {
        let api = seen(json!("api.example.com"), 80).await?;
        (api["bytes_in"].as_u64()? > 0).then_some(api)
    })
    .await;
    let number = |key: &str| api[key].as_u64().expect("a number");
    assert!(
        (200..5000).contains(&number("bytes_out")) && number("bytes_in") < 5000,
        "{api}"
    );
    let metrics = client.get("/metrics").await.expect(200).text();
    for line in [
        "hearth_network_destination_connections_total{function=\"f\",destination=\"api.example.com:80\"} 2".to_owned(),
        format!("hearth_network_destination_connections_total{{function=\"f\",destination=\"{OTHER}:8080\"}} 1"),
        format!("hearth_network_destination_refused_total{{function=\"f\",destination=\"{OTHER}:80\"}} 1"),
        format!("hearth_network_destination_bytes_total{{function=\"f\",destination=\"api.example.com:80\",direction=\"in\"}} {}", number("bytes_in")),
    ] {
        assert!(metrics.lines().any(|one| one == line), "{line}\n{metrics}");
    }
}

#[tokio::test]
async fn node_is_treated_alike() {
    let (_world, server) = world();
    let client = server.client();
    let settings = json!({"runtime": "node", "network": {"allow": ["api.example.com"]}});
    client.deploy("f", NODE, settings).await;
    let answer = call(&client, json!({"url": "http://api.example.com/"})).await;
    assert!(
        answer
            .as_str()
            .is_some_and(|said| said.starts_with("reached")),
        "{answer}"
    );
    let answer = call(&client, json!({"url": "http://other.example.com/"})).await;
    assert!(
        answer
            .as_str()
            .is_some_and(|said| said.starts_with("TypeError")),
        "{answer}"
    );
}

#[tokio::test]
async fn a_changed_policy_holds_for_the_running_instance() {
    let (_world, server) = world();
    let client = server.client();
    deploy(&client, json!({"allow": ["api.example.com"]})).await;
    let other = json!({"url": "http://other.example.com/"});
    let before = call(&client, other.clone()).await;
    assert!(is_refused(before[0].as_str().expect("text")), "{before}");
    let changed = allow(&client, json!(["api.example.com", "other.example.com"])).await;
    assert_eq!(changed["active_version"], 2);
    let after = eventually("the policy holds", Duration::from_secs(5), || async {
        let after = call(&client, other.clone()).await;
        after[0].as_str()?.starts_with("reached").then_some(after)
    })
    .await;
    assert_eq!(after[1], before[1], "another process");
    // And back, by the former version. A connection that it does not allow is cut.
    assert_eq!(
        call(&client, json!({"keep": ["other.example.com", 80]})).await,
        "kept"
    );
    let back = client
        .post(&format!("{PATH}/versions/1/activate"), &json!({}))
        .await;
    assert_eq!(
        back.expect(200).json()["network"]["allow"],
        json!(["api.example.com"])
    );
    eventually(
        "the former policy holds",
        Duration::from_secs(5),
        || async { is_refused(&fetch(&client, &format!("http://{OTHER}/")).await).then_some(()) },
    )
    .await;
    assert_ne!(call(&client, json!({"use": null})).await, "200");
    let same = call(&client, json!({"url": "http://api.example.com/"})).await;
    assert!(
        same[0]
            .as_str()
            .is_some_and(|said| said.starts_with("reached")),
        "{same}"
    );
    assert_eq!(same[1], before[1], "another process");
}

#[tokio::test]
async fn no_name_leads_to_a_private_address() {
    let (world, server) = world();
    let client = server.client();
    world.name("rebound.example.com", &[PRIVATE, METADATA]);
    world.name("mixed.example.com", &[PRIVATE, WEB]);
    deploy(&client, json!({"allow": ["*.example.com:*"]})).await;
    let refused = fetch(&client, "http://rebound.example.com/").await;
    assert!(is_refused(&refused), "{refused}");
    let reached = fetch(&client, "http://mixed.example.com/").await;
    assert_eq!(reached, format!("reached {WEB}"));
    // A redirect, and an address that is asked for by itself.
    for url in [
        format!("http://api.example.com/to/{PRIVATE}"),
        format!("http://api.example.com/to/{METADATA}"),
        format!("http://{METADATA}/latest/meta-data/"),
    ] {
        let refused = fetch(&client, &url).await;
        assert!(is_refused(&refused), "{url}: {refused}");
    }
    // One that was public first: what it resolved to then may be reached, what it resolves to now may not.
    world.ttl(1);
    world.name("turning.example.com", &[WEB]);
    assert!(
        fetch(&client, "http://turning.example.com/")
            .await
            .starts_with("reached")
    );
    world.name("turning.example.com", &[PRIVATE]);
    eventually("the name has turned", Duration::from_secs(10), || async {
        is_refused(&fetch(&client, "http://turning.example.com/").await).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_dry_run_allows_and_writes_the_policy() {
    let (_world, server) = world();
    let client = server.client();
    deploy(&client, json!({"allow": [], "dry_run": true})).await;
    for url in ["http://api.example.com/", "http://other.example.com:8080/"] {
        let reached = fetch(&client, url).await;
        assert!(reached.starts_with("reached"), "{url}: {reached}");
    }
    let refused = fetch(&client, &format!("http://{PRIVATE}/")).await;
    assert!(is_refused(&refused), "{refused}");
    seen(&client, "api.example.com:80", "dry_run").await;
    seen(&client, "other.example.com:8080", "dry_run").await;
    let suggested = network(&client).await["suggested_allow"].clone();
    assert_eq!(
        suggested,
        json!(["api.example.com:80", "other.example.com:8080"])
    );
    allow(&client, suggested).await;
    let both = json!({"urls": ["http://api.example.com/", "http://other.example.com/"]});
    eventually("the policy holds", Duration::from_secs(5), || async {
        let said = call(&client, both.clone()).await;
        let is = |at: usize| {
            said[at]
                .as_str()
                .is_some_and(|said| said.starts_with("reached"))
        };
        (is(0) && !is(1)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn the_internet_is_public() {
    let (_world, server) = world();
    let client = server.client();
    deploy(&client, json!("outbound")).await;
    let function = client.get(PATH).await.expect(200).json();
    assert_eq!(function["network"], "internet");
    let urls = [
        "http://other.example.com:8080/".to_owned(),
        format!("http://{WEB}/"),
        format!("http://[{WEB6}]/"),
    ];
    for url in urls {
        let reached = fetch(&client, &url).await;
        assert!(reached.starts_with("reached"), "{url}: {reached}");
    }
    let refused = call(&client, json!({"connect": [PRIVATE, 80]})).await;
    assert!(
        refused
            .as_str()
            .is_some_and(|said| said.contains("ConnectionRefusedError")),
        "{refused}"
    );
}

#[tokio::test]
async fn a_wildcard_is_a_narrow_tunnel() {
    let (world, server) = world();
    let client = server.client();
    deploy(&client, json!({"allow": ["*.tunnel.example"]})).await;
    let names: Vec<String> = (0..400)
        .map(|n| format!("chunk{n}.tunnel.example"))
        .collect();
    let begun = std::time::Instant::now();
    call(&client, json!({"resolve": names})).await;
    let most = 100 + 20 * (begun.elapsed().as_secs() + 1) as usize;
    let asked = world.zone.lock().asked.len();
    assert!(asked > 50 && asked <= most, "{asked} of at most {most}");
    let limited = network(&client).await;
    let limited = limited["destinations"].as_array().expect("a list").iter();
    assert!(limited.filter(|seen| seen["outcome"] == "limited").count() > 0);
}

#[tokio::test]
async fn half_a_question_holds_up_no_other() {
    let (_world, server) = world();
    let client = server.client();
    deploy(&client, json!({"allow": ["api.example.com"]})).await;
    assert_eq!(call(&client, json!({"stall": 40})).await, 40);
    let reached = fetch(&client, "http://api.example.com/").await;
    assert!(reached.starts_with("reached"), "{reached}");
}

#[tokio::test]
async fn policies_change_under_load() {
    let (_world, server) = world();
    let client = server.client();
    deploy(
        &client,
        json!({"allow": ["api.example.com", "other.example.com"]}),
    )
    .await;
    let kept = call(&client, json!({"keep": ["other.example.com", 80]})).await;
    assert_eq!(kept, "kept");
    let calls = async {
        for _ in 0..40 {
            // Allowed by every policy meanwhile, and so is each of several at a time.
            let each = (0..4).map(|_| fetch(&client, "http://api.example.com/"));
            for reached in join_all(each).await {
                assert!(reached.starts_with("reached"), "{reached}");
            }
        }
    };
    let changes = async {
        for round in 0..20 {
            let more = format!("n{round}.example.com");
            allow(&client, json!(["api.example.com", more])).await;
        }
    };
    tokio::join!(calls, changes);
    let function = client.get(PATH).await.expect(200).json();
    assert_eq!(function["active_version"], 21);
    // The connection that was begun before has been cut.
    let instance = "the instance that has it";
    eventually(instance, Duration::from_secs(20), || async {
        let event = json!({ "use": null });
        let said = join_all((0..8).map(|_| call(&client, event.clone()))).await;
        assert!(!said.contains(&json!("200")), "{said:?}");
        said.iter().any(|said| said != "none").then_some(())
    })
    .await;
}

#[tokio::test]
async fn what_no_policy_may_name_is_refused() {
    let (_world, server) = world();
    let client = server.client();
    let private = json!({"network": {"allow": ["api.example.com", "10.0.0.0/8:5432"]}});
    let refused = client.try_deploy("f", PYTHON, private.clone()).await;
    let problem = refused.problem(422, "invalid_field");
    assert_eq!(problem["field"], "network.allow[1]", "{problem}");
    drop(server);
    let open = Server::start_with(&[("HEARTH_NETWORK_ALLOW_PRIVATE", "10.9.0.0/16")]);
    let client = open.client();
    client
        .try_deploy("f", PYTHON, private)
        .await
        .problem(422, "invalid_field");
    deploy(&client, json!({"allow": [format!("{PRIVATE}:80")]})).await;
    let reached = fetch(&client, &format!("http://{PRIVATE}/")).await;
    assert_eq!(reached, format!("reached {PRIVATE}"));
}

/// Its instances are restored, or booted, in sandboxes of their own.
const UNFORKABLE: &str = r#"
import socket, threading, time
threading.Thread(target=threading.Event().wait, daemon=True).start()

def handler(event, context):
    begun, made = time.time(), []
    for _ in range(3):
        try: made.append(socket.create_connection(("other.example.com", 80), timeout=8))
        except OSError: pass
    time.sleep(2)
    return {"begun": begun, "made": len(made), "ended": time.time()}
"#;

#[tokio::test]
async fn instances_in_sandboxes_of_their_own_share_the_limits() {
    let (_world, server) = world();
    let client = server.client();
    let limits = json!({"connections": 4});
    let policy = json!({"allow": ["other.example.com"], "limits": limits});
    let settings = json!({"network": policy, "timeout_ms": 60_000});
    let deployed = client.deploy("f", UNFORKABLE, settings).await;
    assert!(deployed["start_reason"].is_string(), "{deployed}");
    let calls = join_all((0..2).map(|_| call(&client, json!({})))).await;
    let number = |at: usize, key: &str| calls[at][key].as_f64().expect("a number");
    for (one, other) in [(0, 1), (1, 0)] {
        assert!(number(one, "begun") < number(other, "ended"), "{calls:?}");
    }
    let made = number(0, "made") + number(1, "made");
    assert!((made - 4.0).abs() < 0.1, "{calls:?}");
    // No entry would allow more.
    let view = network(&client).await;
    let limited = &view["destinations"][0];
    assert_eq!(
        (&limited["name"], &limited["rule"], &limited["outcome"]),
        (&json!("other.example.com"), &Value::Null, &json!("limited"))
    );
}
