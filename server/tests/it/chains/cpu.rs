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

/// Cores that Hearth may use here.
async fn cores_of(client: &Client) -> Vec<u32> {
    let node = client.get("/api/v1/node").await.expect(200).json();
    let list = &node["capabilities"]["cpuset"]["version"];
    let list = list.as_str().expect("this host has cpusets");
    let cores = hearth_host::cores::parse(list).expect("a list of cores");
    cores.into_iter().collect()
}

/// What the kernel lets a function's processes use, those in leaves of instances and the others: each cpuset, and what
/// `/proc/PID/status` says.
fn kernels_cores(server: &Server, function: &str, of_instances: bool) -> Vec<(String, String)> {
    let processes = host::processes_of(server, function);
    let found = processes.iter().filter_map(|process| {
        if cgroups::is_of_an_instance(process.pid) != of_instances {
            return None;
        }
        let dir = cgroups::directory(process.pid, "cpuset").ok()?;
        // v2's, else v1's.
        let cpuset = ["cpuset.cpus.effective", "cpuset.effective_cpus"]
            .into_iter()
            .find_map(|file| fs::read_to_string(dir.join(file)).ok())?;
        let status = fs::read_to_string(format!("/proc/{}/status", process.pid)).ok()?;
        let allowed = status
            .lines()
            .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
        Some((cpuset.trim().to_owned(), allowed.trim().to_owned()))
    });
    found.collect()
}

/// Tries to use all cores, and says which ones it may.
const ASKS: &str = "\
import os

def handler(event, context):
    for cores in (range(os.cpu_count()), range(1), [event]):
        try:
            os.sched_setaffinity(0, cores)
        except OSError:
            pass
    return [os.getpid(), sorted(os.sched_getaffinity(0))]
";

const ENDS: &str = "\
import os

def handler(event, context):
    os._exit(1)
";

#[tokio::test]
async fn a_chain_has_cores_that_nobody_else_uses() {
    let server = Server::start();
    let client = server.client();
    let cores = cores_of(&client).await;
    assert!(
        cores.len() > 1,
        "one is dedicated and one is left: {cores:?}"
    );
    let (own, others) = (cores[cores.len() - 1], &cores[..cores.len() - 1]);
    let others_list = hearth_host::cores::list(&others.iter().copied().collect());
    client.deploy("works", ASKS, json!({})).await;
    client.deploy("ends", ENDS, json!({})).await;
    client.deploy("other", ASKS, json!({})).await;
    let mine = |list: String| (list.clone(), list);
    let only_own = [mine(own.to_string())];
    // Its sandbox is there before any core is dedicated.
    let all = client
        .post("/api/v1/functions/other/invoke", &json!(own))
        .await;
    assert_eq!(all.expect(200).json()[1], json!([own]));

    let mut dedicated = chain();
    dedicated["members"]["ends"] = json!({"function": "ends"});
    dedicated["routes"]["end"] = json!(["ends"]);
    dedicated["cpu"] = "dedicated".into();
    for (field, wrong) in [
        ("cpu_cores", json!([])),
        ("cpu_cores", json!(cores)),
        ("cpu_cores[1]", json!([own, own])),
        ("cpu_cores[0]", json!([127])),
        ("cpu_cores[0]", json!([128])),
    ] {
        dedicated["cpu_cores"] = wrong.clone();
        let refused = client.post(CHAINS, &dedicated).await;
        assert_eq!(super::field_of(refused), field, "{wrong}");
    }
    client.get("/api/v1/chains/c").await.expect(404);
    dedicated["cpu_cores"] = json!([own]);
    let made = client.post(CHAINS, &dedicated).await.expect(201).json();
    assert_eq!(
        (&made["cpu"], &made["cpu_cores"]),
        (&json!("dedicated"), &json!([own]))
    );

    // From its first request on, whatever it asks for.
    let may_use = async || {
        let answer = invoke(&client, "r", &json!(others[0])).await;
        let answer = answer.expect(200).json();
        assert_eq!(answer[1], json!([own]));
        answer[0].clone()
    };
    may_use().await;
    assert_eq!(kernels_cores(&server, "works", true), only_own);
    // Everything else is kept off: what ran before, what is started now, and its own function's template.
    let kept_off = async |function: &str| {
        let path = format!("/api/v1/functions/{function}/invoke");
        let answer = client.post(&path, &json!(own)).await.expect(200).json();
        assert!(
            answer[1]
                .as_array()
                .is_some_and(|may| may.iter().all(|core| *core != own)),
            "{answer}"
        );
    };
    kept_off("other").await;
    client.deploy("newer", ASKS, json!({})).await;
    kept_off("newer").await;
    for (function, of_instances) in [
        ("other", true),
        ("newer", true),
        ("works", false),
        ("newer", false),
    ] {
        // An instance is moved into its leaf beside its first request, which may be answered before.
        let there = async || {
            let found = kernels_cores(&server, function, of_instances);
            (!found.is_empty()).then_some(found)
        };
        let found = eventually(function, LIMIT, there).await;
        for (cpuset, allowed) in found {
            assert_eq!(cpuset, others_list, "{function}");
            let allowed = hearth_host::cores::parse(&allowed).expect("a list");
            assert!(!allowed.contains(&own), "{function}: {allowed:?}");
        }
    }

    // Another chain does not get them.
    let mut second = dedicated.clone();
    second["name"] = "second".into();
    let refused = client.post(CHAINS, &second).await;
    assert_eq!(super::field_of(refused), "cpu_cores[0]");

    // An instance that takes the place of one that ended has them, too.
    for _ in 0..2 {
        // The next one is there already, pre-forked, and in no leaf of an instance.
        let instances = || {
            let mut all = host::processes_of(&server, "ends");
            all.retain(|process| cgroups::is_of_an_instance(process.pid));
            all.into_iter().map(|process| process.pid)
        };
        let before: Vec<_> = instances().collect();
        assert!(!before.is_empty());
        let answer = invoke(&client, "end", &json!(1)).await;
        assert_ne!(answer.status, 200);
        let replaced = async || {
            let new = instances().any(|pid| !before.contains(&pid));
            (new && kernels_cores(&server, "ends", true) == only_own).then_some(())
        };
        eventually("the new instance has the core", LIMIT, replaced).await;
    }

    // A new version has them beside the former one; without the setting they are everybody's again.
    let slower = json!({"timeout_ms": 20_000});
    client.patch("/api/v1/chains/c", &slower).await.expect(200);
    may_use().await;
    let shared = json!({"cpu": "shared"});
    client.patch("/api/v1/chains/c", &shared).await.expect(200);
    let all_list = hearth_host::cores::list(&cores.iter().copied().collect());
    let given_back = async || {
        let found = kernels_cores(&server, "other", true);
        (!found.is_empty() && found.iter().all(|(cpuset, _)| *cpuset == all_list)).then_some(())
    };
    eventually("the core is everybody's again", LIMIT, given_back).await;
    client.post(CHAINS, &second).await.expect(201);
}
