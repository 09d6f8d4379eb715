//! Storage transfers of STeLLAR's experiments: functions in real sandboxes, an object store that the lab starts, and the way between.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use crate::network::world::{WEB, World};
use crate::support::{Client, Server, TOKEN, eventually, signal};

/// An S3 server for tests, which scripts/setup.sh fetches.
const MOTO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../.tools/moto");

const STORES: &str = "198.18.104.0/24";
const WITHIN: Duration = Duration::from_secs(60);

/// A host whose administrator has opened the stores' addresses to functions.
fn open() -> (World, Server, TempDir) {
    let (world, directory) = (World::enter(), tempfile::tempdir().expect("a directory"));
    let data = directory.path().join("data");
    let server = world.server_with(&[("HEARTH_NETWORK_ALLOW_PRIVATE", STORES)], &data);
    (world, server, directory)
}

fn lab(server: &Server, directory: &Path, experiment: &Value) -> Command {
    let file = directory.join("experiment.json");
    std::fs::write(&file, experiment.to_string()).expect("written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_hearth"));
    command.args(["lab", "run"]).arg(file).arg("--out");
    command
        .arg(directory.join("out"))
        .env("HEARTH_URL", &server.url)
        .env("HEARTH_TOKEN", TOKEN)
        .kill_on_drop(true);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn sub_experiment(title: &str, function: &str, length: usize, payload: usize) -> Value {
    json!({
        "Title": title, "Function": function, "Bursts": 4, "BurstSizes": [1, 5], "IATSeconds": 0, "Parallelism": 2,
        "DataTransferChainLength": length, "PayloadLengthBytes": payload, "ConcurrencyLimit": 2, "StorageTransfer": true,
    })
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn run_directory(output: &Output) -> PathBuf {
    assert!(output.status.success(), "{}", said(output));
    PathBuf::from(String::from_utf8_lossy(&output.stdout).trim())
}

async fn functions(client: &Client) -> usize {
    let list = client.get("/api/v1/functions").await.expect(200).json();
    list["items"].as_array().expect("a list").len()
}

/// The interfaces that lead to stores, in the network namespace of this thread.
fn links() -> Vec<String> {
    let text = std::fs::read_to_string("/proc/thread-self/net/dev").expect("interfaces");
    let names = text.lines().filter_map(|line| line.split_once(':'));
    let names = names.map(|(name, _)| name.trim().to_owned());
    names
        .filter(|name| name.starts_with("hearth-lab"))
        .collect()
}

#[tokio::test]
async fn functions_hand_payloads_on_through_an_object_store() {
    let (_world, server, directory) = open();
    let client = server.client();
    // Without a Provider, and with fields as STeLLAR's own files have them.
    let experiment = json!({
        "Sequential": true,
        "SubExperiments": [
            sub_experiment("python", "hellopy", 3, 300_000),
            sub_experiment("node", "hellonode", 2, 2_000_000),
            sub_experiment("alone", "hellopy", 1, 5_000),
        ],
    });
    let output = lab(&server, directory.path(), &experiment).output().await;
    let run = run_directory(&output.expect("it runs"));
    assert_eq!((functions(&client).await, links()), (0, Vec::new()));
    for (name, length) in [
        (
            "python-memory128MB-img0MB-IAT0s-burst1-st0ms-payload292KB",
            3,
        ),
        (
            "node-memory128MB-img0MB-IAT0s-burst1-st0ms-payload1953KB",
            2,
        ),
    ] {
        let path = run.join(name).join("data-transfers.csv");
        let transfers = std::fs::read_to_string(path).expect("it is there");
        let mut rows = transfers
            .lines()
            .map(|line| line.split(',').collect::<Vec<_>>());
        let head = rows.next().expect("a head");
        assert_eq!(head[..3], ["Request ID", "Host", "Burst ID"]);
        assert_eq!(head.len(), 3 + length, "{transfers}");
        let rows: Vec<_> = rows.collect();
        assert_eq!(rows.len(), 2 + 10, "{transfers}");
        for row in rows {
            let stamps = row[3..].iter().map(|stamp| stamp.parse::<u64>());
            let stamps: Vec<u64> = stamps.map(|stamp| stamp.expect("a number")).collect();
            assert!(stamps.len() == length && stamps.is_sorted(), "{row:?}");
        }
    }
    let alone = run.join("alone-memory128MB-img0MB-IAT0s-burst1-st0ms-payload4KB");
    assert!(!alone.join("data-transfers.csv").exists());
    let latencies = std::fs::read_to_string(alone.join("latencies.csv")).expect("it is there");
    assert_eq!(latencies.lines().count(), 1 + 2 + 10);
}

#[tokio::test]
async fn a_payload_of_100_mb_goes_through_storage() {
    let (_world, server, directory) = open();
    let experiment = json!({"SubExperiments": [{
        "Title": "large", "Bursts": 2, "BurstSizes": [1], "IATSeconds": 0, "DataTransferChainLength": 2,
        "PayloadLengthBytes": 100 << 20, "FunctionMemoryMB": 512, "StorageTransfer": true,
    }]});
    let output = lab(&server, directory.path(), &experiment).output().await;
    let run = run_directory(&output.expect("it runs"));
    let name = "large-memory512MB-img0MB-IAT0s-burst1-st0ms-payload102400KB";
    let result = std::fs::read_to_string(run.join(name).join("result.json"));
    let result: Value = serde_json::from_str(&result.expect("it is there")).expect("JSON");
    assert_eq!(result["report"]["good"], 2);
    // The store's token is nowhere.
    assert!(!result.to_string().contains("Bearer"));
}

#[tokio::test]
async fn a_store_that_is_not_opened_is_told_with_what_opens_it() {
    let world = World::enter();
    let server = world.server();
    let directory = tempfile::tempdir().expect("a directory");
    let experiment = json!({"SubExperiments": [sub_experiment("t", "hellopy", 2, 1_000)]});
    let output = lab(&server, directory.path(), &experiment).output().await;
    let output = output.expect("it runs");
    assert_eq!(output.status.code(), Some(2));
    let said = said(&output);
    assert!(
        said.contains("HEARTH_NETWORK_ALLOW_PRIVATE=198.18.104.0/24"),
        "{said}"
    );
    assert_eq!(
        (functions(&server.client()).await, links()),
        (0, Vec::new())
    );
}

/// Says what comes of connecting, and of a request without a token.
const REACHES: &str = r#"
import http.client, socket
def handler(event, context):
    try:
        socket.create_connection((event["host"], event["port"]), timeout=8).close()
    except OSError as error:
        return type(error).__name__
    connection = http.client.HTTPConnection(event["host"], event["port"], timeout=8)
    connection.request("GET", "/stellar/a")
    return connection.getresponse().status
"#;

#[tokio::test]
async fn the_way_to_the_store_leads_nowhere_else_and_ends_with_the_lab() {
    let (_world, server, directory) = open();
    let client = server.client();
    let mut one = sub_experiment("long", "hellopy", 2, 1_000);
    one["Bursts"] = 1_000.into();
    one["IATSeconds"] = 60.into();
    let experiment = json!({ "SubExperiments": [one] });
    let start = || {
        let child = lab(&server, directory.path(), &experiment).spawn();
        child.expect("it starts")
    };
    let are_there = |count: usize| {
        let client = &client;
        let check = move || async move { (functions(client).await == count).then_some(()) };
        eventually("functions", WITHIN, check)
    };
    let child = start();
    are_there(2).await;
    assert_eq!(links(), ["hearth-lab0"]);

    // Someone else's function, allowed all that the administrator has opened: the host's end of the way is closed, a listener there
    // notwithstanding, and the store wants its token.
    let listener = TcpListener::bind("198.18.104.1:0").expect("a port of the host's");
    let port = listener.local_addr().expect("its address").port();
    let allow = json!({"network": {"allow": ["198.18.104.0/24:*"]}});
    client.deploy("other", REACHES, allow).await;
    let reach = async |host: &str, port: u16| {
        let event = json!({"host": host, "port": port});
        let path = "/api/v1/functions/other/invoke";
        client.post(path, &event).await.expect(200).json()
    };
    assert_eq!(reach("198.18.104.1", port).await, "ConnectionRefusedError");
    assert_eq!(reach("198.18.104.2", 9000).await, 403);
    let removed = client.delete("/api/v1/functions/other").await;
    removed.expect(204);

    signal(child.id().expect("it runs"), Signal::INT).expect("it runs");
    let output = child.wait_with_output().await.expect("it ends");
    assert!(said(&output).contains("cancelled"), "{}", said(&output));
    assert_eq!((functions(&client).await, links()), (0, Vec::new()));

    // Killed, it removes nothing itself.
    let child = start();
    are_there(2).await;
    signal(child.id().expect("it runs"), Signal::KILL).expect("it runs");
    let gone = || async { links().is_empty().then_some(()) };
    eventually("the store and its interface are gone", WITHIN, gone).await;
}

#[tokio::test]
async fn a_store_of_another_host_is_used_with_its_token_only() {
    let world = World::enter();
    let server = world.server();
    let directory = tempfile::tempdir().expect("a directory");
    let mut run = std::process::Command::new(env!("CARGO_BIN_EXE_hearth"));
    run.args(["lab", "store", "--listen", &format!("{WEB}:9000")])
        .env_remove("HEARTH_STORE_TOKEN")
        .stdout(Stdio::piped());
    let mut store = world.outside.within(|| run.spawn()).expect("it starts");
    let mut lines = BufReader::new(store.stdout.take().expect("its output")).lines();
    let mut line = || lines.next().expect("a line").expect("text");
    let token = line();
    let token = token.strip_prefix("HEARTH_STORE_TOKEN=").expect("a token");
    assert_eq!(line(), format!("http://{WEB}:9000/stellar"));
    let experiment = json!({"SubExperiments": [sub_experiment("t", "hellonode", 2, 1_000)]});
    let with = async |token: &str| {
        let mut command = lab(&server, directory.path(), &experiment);
        let url = format!("http://{WEB}:9000");
        command
            .args(["--store", &url])
            .env("HEARTH_STORE_TOKEN", token);
        command.output().await.expect("it runs")
    };
    run_directory(&with(token).await);
    let output = with("another-token-than-its").await;
    assert_eq!(output.status.code(), Some(2));
    let said = said(&output);
    assert!(said.contains("could not put an object"), "{said}");
    assert_eq!(functions(&server.client()).await, 0);
    let _ = store.kill();
    let _ = store.wait();
}

/// Asks the S3 server in this world something, unsigned, which it allows.
fn ask(world: &World, request: &str) -> std::io::Result<String> {
    world.outside.within(|| {
        let mut stream = TcpStream::connect((WEB, 9000))?;
        stream.set_read_timeout(Some(WITHIN))?;
        let rest = format!("host: {WEB}:9000\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        stream.write_all(format!("{request} HTTP/1.1\r\n{rest}").as_bytes())?;
        let mut said = String::new();
        stream.read_to_string(&mut said).map(|_| said)
    })
}

#[tokio::test]
async fn a_bucket_of_s3_is_used_by_signed_addresses_and_left_empty() {
    let world = World::enter();
    let server = world.server();
    let directory = tempfile::tempdir().expect("a directory");
    let mut run = std::process::Command::new("/usr/bin/python3");
    run.args(["-m", "moto.server", "-H", WEB, "-p", "9000"])
        .env("PYTHONPATH", MOTO)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut s3 = world.outside.within(|| run.spawn()).expect("it starts");
    let made = || async { ask(&world, "PUT /transfers").ok() };
    let made = eventually("S3 answers", WITHIN, made).await;
    assert!(made.starts_with("HTTP/1.1 200"), "{made}");

    let one_at_a_time = |title: &str, function: &str, length: usize| {
        // This server fails now and then where an object is replaced by two requests at once.
        let mut one = sub_experiment(title, function, length, 100_000);
        one["BurstSizes"] = json!([1]);
        one
    };
    let experiment = json!({"Sequential": true, "SubExperiments": [
        one_at_a_time("python", "hellopy", 3), one_at_a_time("node", "hellonode", 2),
    ]});
    let mut command = lab(&server, directory.path(), &experiment);
    let url = format!("http://{WEB}:9000/transfers");
    command
        .args(["--store", &url])
        .env("AWS_ACCESS_KEY_ID", "somebody")
        .env("AWS_SECRET_ACCESS_KEY", "secret")
        .env_remove("HEARTH_STORE_TOKEN");
    let run = run_directory(&command.output().await.expect("it runs"));
    let name = "python-memory128MB-img0MB-IAT0s-burst1-st0ms-payload97KB";
    let transfers = std::fs::read_to_string(run.join(name).join("data-transfers.csv"));
    assert_eq!(transfers.expect("it is there").lines().count(), 1 + 4);
    let left = ask(&world, "GET /transfers").expect("it answers");
    assert!(
        left.contains("<ListBucketResult") && !left.contains("<Key>"),
        "{left}"
    );
    let _ = s3.kill();
    let _ = s3.wait();
}
