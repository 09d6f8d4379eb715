//! Processor time in proportion to requests, and the command that measures what a request takes.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hearth_testkit::cgroups;
use serde_json::{Value, json};
use tokio::process::Command;

use super::CHAINS;
use super::path::invoke;
use crate::hostile::host;
use crate::support::{Client, Server, TOKEN, eventually};

/// Far more than the limits need to follow.
const LIMIT: Duration = Duration::from_secs(60);
/// What an instance may take at least, in thousandths of a processor.
const LEAST: u64 = 50;

/// Takes a few hundred µs.
const WORKS: &str = "\
def handler(event, context):
    return sum(range(20_000)) and event
";

async fn member(client: &Client) -> Value {
    let chain = client.get("/api/v1/chains/c").await.expect(200).json();
    chain["live"]["members"]["works"].clone()
}

/// None before there is one.
async fn limit(client: &Client) -> Option<u64> {
    member(client).await["cpu_limit_milli"].as_u64()
}

/// What the kernel lets the member's instance take, in thousandths of a processor; none if it is not limited by itself.
fn kernels_limit(server: &Server) -> Option<u64> {
    let processes = host::processes_of(server, "works");
    let instances = processes
        .iter()
        .filter_map(|process| cgroups::directory(process.pid, "cpu").ok())
        .filter(|dir| dir.to_string_lossy().contains("/instance-"));
    let quotas = instances.filter_map(|dir| {
        let text = fs::read_to_string(dir.join("cpu.max")).or_else(|_| {
            let file = |name| fs::read_to_string(dir.join(name));
            Ok::<_, std::io::Error>(format!(
                "{} {}",
                file("cpu.cfs_quota_us")?.trim(),
                file("cpu.cfs_period_us")?
            ))
        });
        let text = text.ok()?;
        let (quota, period) = text.trim().split_once(' ')?;
        let (quota, period): (u64, u64) = (quota.parse().ok()?, period.parse().ok()?);
        Some(quota * 1_000 / period)
    });
    quotas.min()
}

fn chain() -> Value {
    json!({"name": "c", "members": {"works": {"function": "works"}}, "routes": {"r": ["works"]}})
}

#[tokio::test]
async fn a_members_share_follows_the_chains_requests() {
    let server = Server::start();
    let client = server.client();
    client.deploy("works", WORKS, json!({})).await;
    let mut proportional = chain();
    proportional["cpu"] = "proportional".into();
    let refused = client.post(CHAINS, &proportional).await;
    assert_eq!(super::field_of(refused), "cpu_us.works");
    // As if each request took far more than it does: a few are enough to be seen.
    proportional["cpu_us"] = json!({"works": 20_000});
    client.post(CHAINS, &proportional).await.expect(201);
    let is_least = async || (limit(&client).await == Some(LEAST)).then_some(());
    eventually("an idle chain has little", LIMIT, is_least).await;
    let kernel = async || (kernels_limit(&server) == Some(LEAST)).then_some(());
    eventually("the kernel knows", LIMIT, kernel).await;

    let ends = AtomicBool::new(false);
    let load = async {
        while !ends.load(Ordering::Relaxed) {
            invoke(&client, "r", &json!(1)).await.expect(200);
        }
    };
    let more = async {
        let has_more = async || {
            let limit = limit(&client).await;
            (limit > Some(4 * LEAST)).then_some(())
        };
        eventually("one with requests has more", LIMIT, has_more).await;
        let kernel = async || (kernels_limit(&server) > Some(LEAST)).then_some(());
        eventually("the kernel knows", LIMIT, kernel).await;
        ends.store(true, Ordering::Relaxed);
    };
    tokio::join!(load, more);
    eventually("without, it has little again", LIMIT, is_least).await;

    // Without the setting, its instances may take what the function may.
    let shared = json!({"cpu": "shared"});
    client.patch("/api/v1/chains/c", &shared).await.expect(200);
    assert_eq!(member(&client).await["cpu_limit_milli"], json!(null));
    invoke(&client, "r", &json!(1)).await.expect(200);
    let none = async || kernels_limit(&server).is_none().then_some(());
    eventually("the limited instance is gone", LIMIT, none).await;
}

#[tokio::test]
async fn what_a_request_takes_is_measured_and_set() {
    let server = Server::start();
    let client = server.client();
    client.deploy("works", WORKS, json!({})).await;
    client.post(CHAINS, &chain()).await.expect(201);
    let fit = async |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_hearth"))
            .args(["lab", "fit"])
            .args(arguments)
            .env("HEARTH_URL", &server.url)
            .env("HEARTH_TOKEN", TOKEN)
            .kill_on_drop(true)
            .output();
        let output = output.await.expect("it ran");
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        (output.status.code(), text)
    };
    for (arguments, says) in [
        (&["c", "--rates", "5"][..], "rates: two at least"),
        (&["c", "--event", "{"], "event: JSON"),
        (&["none"], "404"),
        (&["c", "--route", "x"], "given up"),
    ] {
        let (status, text) = fit(arguments).await;
        assert!(
            status == Some(2) && text.contains(says),
            "{arguments:?}: {text}"
        );
    }
    // On a busy host a rate may not be reached, or the figures be scattered: it says so, and is asked again.
    let rates = ["c", "--rates", "10,20,40", "--seconds", "2"];
    let measured = async || {
        let (status, text) = fit(&rates).await;
        match status {
            Some(0) => Some(text),
            _ => {
                assert!(
                    text.contains("rates: ") || text.contains("not set"),
                    "{text}"
                );
                None
            }
        }
    };
    let text = eventually("constants", 3 * LIMIT, measured).await;
    assert!(text.contains("works") && text.contains("set: "), "{text}");
    let set = client.get("/api/v1/chains/c").await.expect(200).json();
    assert_eq!(set["cpu"], "proportional");
    let us = set["cpu_us"]["works"].as_u64().expect("a constant");
    assert!((50..100_000).contains(&us), "{us}");
}
