//! A host that is short of something: nothing is wrong with functions, templates and images then, and all are there when it
//! is over.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use hearth_testkit::cgroups;
use rustix::process::{Pid, Resource, Rlimit, getrlimit};
use serde_json::{Value, json};

use crate::restore;
use crate::support::{Answer, Client, Server, descendants, eventually, kill};

/// Longest wait for anything.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Below the number of any descriptor that a server has free.
const NO_DESCRIPTORS: u64 = 3;

const CODE: &str = "
import time
def handler(event, context):
    time.sleep(event.get('sleep', 0))
    return event
";

/// Limits the descriptors of both processes: what they have open stays, and nothing can be opened.
struct WithoutDescriptors([Pid; 2]);

impl WithoutDescriptors {
    fn begin(server: &Server) -> Self {
        let pids = [server.pid(), server.serve_pid()];
        let pids = pids.map(|pid| Pid::from_raw(pid.cast_signed()).expect("a process"));
        for pid in pids {
            Self::set(pid, Some(NO_DESCRIPTORS));
        }
        Self(pids)
    }

    fn set(pid: Pid, current: Option<u64>) {
        // The server raises its own to the hard limit, which is the test's, too.
        let maximum = getrlimit(Resource::Nofile).maximum;
        let limit = Rlimit {
            current: current.or(maximum),
            maximum,
        };
        // Only a process's own user, or CAP_SYS_RESOURCE, which containers lack, may change its limits.
        let number = pid.as_raw_nonzero().get().to_string();
        let status = std::fs::read_to_string(format!("/proc/{number}/status")).expect("it runs");
        let id = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let id = line.and_then(|line| line.split_whitespace().next());
            id.expect("an id").to_owned()
        };
        let of = |limit: Option<u64>| limit.map_or("unlimited".to_owned(), |most| most.to_string());
        let limits = format!("--nofile={}:{}", of(limit.current), of(limit.maximum));
        let set = Command::new("setpriv")
            .args([
                "--reuid",
                &id("Uid:"),
                "--regid",
                &id("Gid:"),
                "--clear-groups",
            ])
            .args(["prlimit", "--pid", &number, &limits])
            .status();
        assert!(set.expect("setpriv").success());
    }
}

impl Drop for WithoutDescriptors {
    fn drop(&mut self) {
        for pid in self.0 {
            Self::set(pid, None);
        }
    }
}

fn templates(server: &Server, function: &str) -> Vec<u32> {
    let mut pids: Vec<u32> = descendants(server.pid())
        .into_iter()
        .filter(|process| process.is_template(function))
        .map(|process| process.pid)
        .collect();
    pids.sort_unstable();
    pids
}

async fn function(client: &Client, name: &str) -> Value {
    let path = format!("/api/v1/functions/{name}");
    client.get(&path).await.expect(200).json()
}

#[track_caller]
fn is_exhausted(answer: Answer) {
    assert_eq!(answer.header("retry-after"), "1", "{}", answer.text());
    answer.problem(503, "host_exhausted");
}

/// Invokes until it works: the host has just got better.
async fn works_again(client: &Client, name: &str) -> Answer {
    eventually("it works again", TIMEOUT, || async {
        let answer = client.invoke(name, &json!({})).await;
        (answer.status == 200).then_some(answer)
    })
    .await
}

#[tokio::test]
async fn without_descriptors_starts_are_put_off_and_nothing_is_lost() {
    let server = restore::server(false);
    let client = server.client();
    let with_images = restore::available(&client).await;
    for name in ["awake", "asleep"] {
        client.deploy(name, CODE, json!({})).await;
        if with_images {
            restore::image_of(&client, name).await;
        }
    }
    restore::kill_template(&server, &client, "asleep").await;
    eventually("one template each at most", TIMEOUT, || async {
        (templates(&server, "awake").len() == 1).then_some(())
    })
    .await;
    // What was forked ahead may answer before anybody misses a descriptor.
    for ahead in descendants(server.pid()) {
        if ahead.is_fork("awake") {
            kill(ahead.pid).expect("it runs");
        }
    }
    let (template, images) = (templates(&server, "awake"), restore::images(&server));
    let before = [
        function(&client, "awake").await["decisions"].clone(),
        function(&client, "asleep").await["decisions"].clone(),
    ];
    {
        let _short = WithoutDescriptors::begin(&server);
        for name in ["awake", "asleep", "awake", "asleep"] {
            is_exhausted(client.invoke(name, &json!({})).await);
        }
        let node = client.get("/api/v1/node").await.expect(200).json();
        assert!(node["host_errors"].as_u64() > Some(0), "{node}");
        assert!(node["host_error"].is_string(), "{node}");
        assert_eq!(templates(&server, "awake"), template);
        assert_eq!(restore::images(&server), images);
    }
    assert_eq!(
        works_again(&client, "awake").await.header("x-hearth-start"),
        "fork"
    );
    let start_kind = if with_images { "restore" } else { "boot" };
    assert_eq!(
        works_again(&client, "asleep")
            .await
            .header("x-hearth-start"),
        start_kind
    );
    assert_eq!(templates(&server, "awake"), template, "nothing was booted");
    assert_eq!(restore::images(&server), images);
    let awake = function(&client, "awake").await;
    assert_eq!(awake["decisions"]["booted"], before[0]["booted"], "{awake}");
    let asleep = function(&client, "asleep").await;
    assert_eq!(asleep["image"]["restore_failures"], 0, "{asleep}");
}

/// The cgroup of a template's sandbox in the hierarchy that limits memory.
fn sandbox_cgroup(template: u32) -> PathBuf {
    let leaf = cgroups::directory(template, "memory").expect("the template's leaf");
    leaf.parent().expect("the sandbox's").to_owned()
}

/// A mount over a cgroup by which nothing can be made or changed in it.
struct ReadOnly(PathBuf);

impl ReadOnly {
    fn begin(directory: PathBuf) -> Self {
        let path = directory.to_str().expect("UTF-8");
        mount(&["--bind", path, path]);
        mount(&["-o", "remount,bind,ro", path]);
        Self(directory)
    }
}

impl Drop for ReadOnly {
    fn drop(&mut self) {
        let done = Command::new("umount").arg("-l").arg(&self.0).status();
        assert!(done.is_ok_and(|status| status.success()));
    }
}

fn mount(arguments: &[&str]) {
    let done = Command::new("mount")
        .args(arguments)
        .status()
        .expect("mount");
    assert!(done.success(), "mount {arguments:?}");
}

#[tokio::test]
async fn a_cgroup_that_fails_ends_no_template() {
    let server = Server::start_with(&[("HEARTH_PREFORK", "off")]);
    let client = server.client();
    client
        .deploy("f", CODE, json!({"max_concurrency": 20}))
        .await;
    let template = templates(&server, "f");
    {
        let _broken = ReadOnly::begin(sandbox_cgroup(template[0]));
        // More than there are cgroups prepared. Those that find one cannot be moved into it, which is seen while they work.
        let calls = (0..12).map(|_| {
            let client = client.clone();
            async move { client.invoke("f", &json!({"sleep": 2})).await }
        });
        for answer in futures_util::future::join_all(calls).await {
            is_exhausted(answer);
        }
        assert_eq!(templates(&server, "f"), template);
    }
    let again = works_again(&client, "f").await;
    assert_eq!(again.header("x-hearth-start"), "fork");
    assert_eq!(templates(&server, "f"), template, "nothing was booted");
    let f = function(&client, "f").await;
    assert_eq!(f["decisions"]["booted"], 0, "{f}");
}
