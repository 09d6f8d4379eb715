//! The three processes of a server: which rights each has, and that none outlives the others.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt, lchown};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use futures_util::future::join_all;
use hearth_testkit::figures::pss_kib;
use hearth_testkit::namespaces::Namespace;
use hearth_testkit::processes::{priorities, priority};
use hearth_testkit::program::Program;
use rustix::process::Signal;
use serde_json::json;

use crate::support::{
    Server, called_seldom, command, descendants, eventually, goes_first, is_alive, signal, stop,
};

/// Longest wait for something that takes milliseconds.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Most memory of a process with privileges.
const PRIVILEGED_KIB: u64 = 8 << 10;
const ECHO: &str = "def handler(event, context):\n    return event\n";

/// A field of a process's status.
fn field(pid: u32, name: &str) -> String {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_default().trim().to_owned()
}

#[tokio::test]
async fn the_server_has_no_privilege_and_the_host_process_no_more_than_it_needs() {
    let server = Server::start();
    let pid = server.serve_pid();
    let uid = field(pid, "Uid:");
    let first = uid.split_whitespace().next().expect("a uid");
    assert_ne!(first, "0");
    assert!(uid.split_whitespace().all(|other| other == first), "{uid}");
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"] {
        assert_eq!(field(pid, set), "0000000000000000", "{set}");
    }
    assert_eq!(field(pid, "Groups:"), "");
    // No request waits for the kernel to zero a huge page of the allocator's.
    assert_eq!(field(pid, "THP_enabled:"), "0");
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("its threads");
    let mut looked_at = 0;
    for task in tasks.flatten() {
        // Threads that block for somebody end when nobody needs them.
        let Ok(status) = std::fs::read_to_string(task.path().join("status")) else {
            continue;
        };
        for line in ["NoNewPrivs:\t1\n", "Seccomp:\t2\n"] {
            assert!(status.contains(line), "{line}: {status}");
        }
        looked_at += 1;
    }
    assert!(looked_at > 1, "{looked_at} threads");
    let node = server.client().get("/api/v1/node").await.expect(200).json();
    let capability = &node["capabilities"]["privilege_separation"];
    assert_eq!(capability["available"], true, "{capability}");
    assert_eq!(capability["version"], format!("uid {first}"));
    // What is root's of the data directory stays so, the rest is the server's.
    let owner = |name: &str| {
        let path = server.data_dir().join(name);
        std::fs::metadata(path).expect(name).uid().to_string()
    };
    for name in ["", "run", "images", "lock"] {
        assert_eq!(owner(name), "0", "{name}");
    }
    for name in ["hearth.db", "code", "manifests"] {
        assert_eq!(owner(name), first, "{name}");
    }
}

/// What a Hearth with a network has on its host: the interface and the table of this name.
fn networks() -> Vec<String> {
    let look = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).output();
        String::from_utf8_lossy(&output.expect(program).stdout).into_owned()
    };
    let all = look("ip", &["-o", "link"]) + &look("nft", &["list", "tables"]);
    let names = all.lines().filter(|line| line.contains("hearth"));
    names.map(str::to_owned).collect()
}

#[tokio::test]
async fn when_one_process_is_killed_everything_ends() {
    let namespace = Namespace::make("kill").expect("a network namespace");
    namespace.enter().expect("entered");
    let victims: [fn(&Server) -> u32; 3] =
        [|it| it.pid(), |it| it.serve_pid(), |it| it.gateway_pid()];
    for (number, victim) in victims.into_iter().enumerate() {
        let mut server = Server::start();
        let client = server.client();
        let settings = json!({"network": "internet"});
        client.deploy("echo", ECHO, settings).await;
        client.invoke("echo", &json!(1)).await.expect(200);
        let others = [server.serve_pid(), server.gateway_pid()];
        let sandboxes = descendants(server.pid());
        assert!(sandboxes.len() > 1, "{sandboxes:?}");
        assert_eq!(networks().len(), 2, "{:?}", networks());
        signal(victim(&server), Signal::KILL).expect("it runs");
        let status = server.wait();
        assert!(!status.success());
        eventually("everything ends", TIMEOUT, || async {
            let sandboxes = sandboxes.iter().map(|process| process.pid);
            let lives = sandboxes.chain(others).any(is_alive);
            (!lives && networks().is_empty()).then_some(())
        })
        .await;
        if number > 0 {
            // The host process had the time to tidy up.
            let left = std::fs::read_dir(server.data_dir().join("run")).expect("run");
            assert_eq!(left.count(), 0);
        }
    }
}

#[tokio::test]
async fn the_gateway_may_administer_networks_and_nothing_else() {
    let server = Server::start();
    let pid = server.gateway_pid();
    let uid = field(pid, "Uid:");
    let first = uid.split_whitespace().next().expect("a uid");
    assert_ne!(first, "0");
    assert!(!field(server.serve_pid(), "Uid:").contains(first));
    assert!(uid.split_whitespace().all(|other| other == first), "{uid}");
    assert_eq!(field(pid, "Groups:"), "");
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("its threads");
    for task in tasks.flatten() {
        let status = std::fs::read_to_string(task.path().join("status")).expect("a thread");
        for line in [
            "NoNewPrivs:\t1\n",
            "Seccomp:\t2\n",
            "CapInh:\t0000000000000000\n",
            "CapPrm:\t0000000000001000\n",
            "CapEff:\t0000000000001000\n",
            "CapBnd:\t0000000000000000\n",
            "CapAmb:\t0000000000000000\n",
        ] {
            assert!(status.contains(line), "{line}: {status}");
        }
    }
    for pid in [pid, server.pid()] {
        let pss = pss_kib(pid).expect("it runs");
        assert!(pss <= PRIVILEGED_KIB, "{pss} KiB");
    }
    // It sees no file, and has no network but its own.
    let root = std::fs::read_dir(format!("/proc/{pid}/root")).expect("its root");
    assert_eq!(root.count(), 0);
    let network = |pid: u32| std::fs::read_link(format!("/proc/{pid}/ns/net")).expect("it runs");
    assert_ne!(network(pid), network(server.pid()));
    let environment = std::fs::read_to_string(format!("/proc/{pid}/environ")).expect("it runs");
    assert!(!environment.contains("HEARTH_"), "{environment}");
}

#[test]
fn neither_is_started_by_hand() {
    for command in ["serve", "gateway"] {
        let output = Command::new(env!("CARGO_BIN_EXE_hearth"))
            .arg(command)
            .stdin(Stdio::null())
            .output()
            .expect("started");
        assert!(!output.status.success());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            said,
            format!("hearth: `hearth {command}` is started by `hearth`, not by hand\n")
        );
    }
}

#[tokio::test]
async fn the_server_gets_its_settings_and_nothing_else_of_the_environment() {
    let server = Server::start_with(&[("CLOUD_KEY", "hidden"), ("HEARTH_PREFORK", "off")]);
    let environment =
        |pid| std::fs::read_to_string(format!("/proc/{pid}/environ")).expect("it runs");
    assert!(environment(server.pid()).contains("CLOUD_KEY=hidden"));
    let its = environment(server.serve_pid());
    assert!(its.contains("HEARTH_PREFORK=off"), "{its}");
    assert!(!its.contains("hidden"), "{its}");
}

#[tokio::test]
async fn a_server_that_ignores_signals_is_ended() {
    let mut server = Server::start_with(&[("HEARTH_DRAIN_S", "1")]);
    let client = server.client();
    client.deploy("echo", ECHO, json!({})).await;
    let (sandboxes, serve) = (descendants(server.pid()), server.serve_pid());
    // It takes no other.
    stop(serve).expect("it runs");
    server.terminate();
    assert!(!server.wait().success());
    eventually("everything ends", TIMEOUT, || async {
        let lives = sandboxes.iter().any(|process| is_alive(process.pid));
        (!lives && !is_alive(serve)).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_proc_that_hides_processes_hides_none_from_the_server() {
    let hide = "mount -t proc -o hidepid=invisible proc /proc && exec \"$@\"";
    let server = Server::start_through(&["unshare", "--mount", "sh", "-c", hide, "sh"]);
    let client = server.client();
    client.deploy("echo", ECHO, json!({})).await;
    for _ in 0..3 {
        client.invoke("echo", &json!(1)).await.expect(200);
    }
}

#[tokio::test]
async fn calls_that_come_seldom_have_the_servers_threads_prioritized() {
    let server = Server::start();
    let (serve, client) = (server.serve_pid(), server.client());
    client.deploy("echo", ECHO, json!({})).await;
    assert!(!goes_first(serve), "nobody has called");
    called_seldom(&client, "echo", serve, TIMEOUT).await;
    // Many at a time.
    let event = json!(1);
    let flood = async {
        loop {
            join_all((0..16).map(|_| client.invoke("echo", &event))).await;
        }
    };
    let lowered = eventually("they are ordinary again", TIMEOUT, || async {
        (!goes_first(serve)).then_some(())
    });
    tokio::select! {
        () = flood => {}
        () = lowered => {}
    }
}

#[tokio::test]
async fn on_a_busy_host_few_requests_have_the_servers_threads_prioritized_while_they_come() {
    let server = Server::start();
    let (serve, client) = (server.serve_pid(), server.client());
    let ordinary = priority(std::process::id()).expect("this process runs");
    client.deploy("echo", ECHO, json!({})).await;
    assert!(
        priorities(serve)
            .iter()
            .all(|priority| *priority == ordinary)
    );
    // More than there are processors: somebody always waits for one.
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let spinners: Vec<_> = (0..=cores)
        .map(|_| Program::start(Command::new("sh").args(["-c", "while :; do :; done"])))
        .map(|spinner| spinner.expect("a shell"))
        .collect();
    let raised = eventually("threads are prioritized", TIMEOUT, || async {
        client.invoke("echo", &json!(1)).await.expect(200);
        let raised = priorities(serve)
            .into_iter()
            .filter(|priority| *priority < ordinary);
        Some(raised.count()).filter(|raised| *raised > 0)
    })
    .await;
    assert!(raised <= cores, "{raised} threads");
    // Of the host process's, the one that waits for what they ask for.
    let mut host = priorities(server.pid()).into_iter();
    assert!(host.next().is_some_and(|priority| priority < ordinary));
    assert!(host.all(|priority| priority == ordinary));
    // Nobody calls any more, while the others still compute.
    eventually("they are ordinary again", TIMEOUT, || async {
        let all = priorities(serve);
        all.iter()
            .all(|priority| *priority == ordinary)
            .then_some(())
    })
    .await;
    drop(spinners);
}

fn give_to_root(path: &Path) {
    lchown(path, Some(0), Some(0)).expect("root may");
    if path.symlink_metadata().expect("it is there").is_dir() {
        for entry in std::fs::read_dir(path).expect("a directory").flatten() {
            give_to_root(&entry.path());
        }
    }
}

#[tokio::test]
async fn the_data_of_a_version_that_ran_as_root_is_taken_over() {
    let parent = tempfile::tempdir().expect("a directory");
    let dir = parent.path().join("data");
    let server = Server::start_in(&dir);
    server.client().deploy("echo", ECHO, json!({})).await;
    let token = std::fs::write(dir.join("admin-token"), "hth_of_the_former_version\n");
    token.expect("written");
    drop(server);
    give_to_root(&dir);
    std::fs::set_permissions(&dir, PermissionsExt::from_mode(0o700)).expect("closed");
    std::fs::set_permissions(dir.join("admin-token"), PermissionsExt::from_mode(0o600))
        .expect("closed");
    let server = Server::start_with_generated_token(&dir);
    let client = server.client_with(Some("hth_of_the_former_version"));
    let answer = client.invoke("echo", &json!("kept")).await.expect(200);
    assert_eq!(answer.json(), "kept");
    client.deploy("other", ECHO, json!({})).await;
    assert_ne!(
        dir.join("hearth.db").metadata().expect("it is there").uid(),
        0
    );
}

#[tokio::test]
async fn a_directory_of_something_else_is_left_as_it_is() {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("letters"), "").expect("written");
    let before = dir.path().metadata().expect("it is there");
    let output = command(dir.path()).stderr(Stdio::piped()).output();
    let output = output.expect("started");
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said.lines().count(), 1, "{said}");
    let place = format!("HEARTH_DATA_DIR={}", dir.path().display());
    assert!(
        said.contains(&place) && said.contains("neither empty"),
        "{said}"
    );
    let after = dir.path().metadata().expect("it is there");
    assert_eq!((after.gid(), after.mode()), (before.gid(), before.mode()));
}

#[tokio::test]
async fn what_is_missing_has_the_name_that_people_know() {
    let dir = tempfile::tempdir().expect("a directory");
    let runtimes = dir.path().to_str().expect("text");
    let server = Server::start_with(&[("HEARTH_RUNTIMES", runtimes)]);
    let node = server.client().get("/api/v1/node").await.expect(200).json();
    let reason = node["capabilities"]["runtimes"]["python3"]["reason"]
        .as_str()
        .expect("a reason");
    assert!(
        reason.starts_with(&format!("{runtimes}/python")),
        "{reason}"
    );
}
