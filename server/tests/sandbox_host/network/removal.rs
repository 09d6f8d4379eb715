//! What is left of sandboxes and of hosts: nothing.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use hearth::sandbox::{KernelPolicy, Prefix};

use super::world::{PROGRAM, PUBLIC, TCP, World, gateway_of, harness, look_in, with_policy};
use crate::harness::{Harness, Running, fresh_pair, gateway_settings, until};

/// Sandboxes that come and go in a run of the test suite, and variable with another number.
const SANDBOXES: u32 = 40;
const NUMBER: &str = "HEARTH_TEST_SANDBOXES";
/// Variable with the directory in which [`a_host_to_be_killed`] works.
const HOST_DIR: &str = "HEARTH_TEST_NETWORK_DIR";

fn internet() -> KernelPolicy {
    KernelPolicy {
        internet: true,
        ..KernelPolicy::default()
    }
}

#[tokio::test]
async fn nothing_is_left_of_sandboxes() {
    let world = World::enter();
    let block = Prefix::new("10.78.0.0".parse().expect("an address"), 20);
    let harness = Harness::with_settings(PROGRAM, |settings| {
        settings.gateway = gateway_settings(|gateway| gateway.block = block.expect("a prefix"));
    });
    // The first one joins the gateway to the host.
    with_policy(&harness, internet()).await.live.destroy().await;
    let namespace = gateway_of("10.78.0.1");
    let gateway = |program: &[&str]| look_in(&namespace, program);
    let look = || {
        let inside = gateway(&["nft", "list", "ruleset"]) + &gateway(&["ip", "-o", "link"]);
        let host = world.look("nft", &["list", "ruleset"]) + &world.look("ip", &["-o", "link"]);
        let count = |text: &str| text.lines().count();
        (
            count(&inside),
            count(&host),
            gateway(&["cat", "/proc/sys/net/netfilter/nf_conntrack_count"]),
        )
    };
    let before = look();
    assert!(before.0 > 50, "the gateway is seen: {before:?}");
    let number = std::env::var(NUMBER)
        .ok()
        .and_then(|text| text.parse().ok());
    let mut former: Option<Running> = None;
    for number in 0..number.unwrap_or(SANDBOXES) {
        let mut spec = harness.spec();
        // Two by two in a group, which outlives the first.
        let policy = KernelPolicy {
            group: u64::from(number / 2),
            ..internet()
        };
        (spec.uid_base, spec.network) = (fresh_pair(), Some(policy));
        let sandbox = harness.create_from(spec).await;
        assert_eq!(sandbox.attempt("tcp", PUBLIC[0], TCP).await, "ping");
        let open = format!("kept[0] = connect('tcp', {:?}, {TCP}); say(1)", PUBLIC[2]);
        assert_eq!(sandbox.run(&open).await, 1);
        assert!(look().0 > before.0, "while it lives there is more");
        if let Some(former) = former.replace(sandbox) {
            former.live.destroy().await;
        }
    }
    if let Some(last) = former {
        last.live.destroy().await;
    }
    assert_eq!(look(), before);
    let connections = world.look("cat", &["/proc/sys/net/netfilter/nf_conntrack_count"]);
    assert_eq!(connections.trim(), "0", "in the host's own namespace");
    harness.finish().await;
    let tables = world.look("nft", &["list", "tables"]);
    let links = world.look("ip", &["-o", "link"]);
    assert!(
        !tables.contains("hearth") && !links.contains("hearth"),
        "{tables} {links}"
    );
}

/// Also where the server has the sockets of a sandbox's resolver, which hold its namespace.
#[tokio::test]
async fn a_connection_of_a_former_sandbox_is_nobodys() {
    let _world = World::enter();
    let block = Prefix::new("10.77.0.0".parse().expect("an address"), 28);
    let harness = Harness::with_settings(PROGRAM, |settings| {
        settings.gateway = gateway_settings(|gateway| gateway.block = block.expect("a prefix"));
    });
    let mut kept = Vec::new();
    // More than there are addresses: they are used again.
    for _ in 0..30 {
        let mut spec = harness.spec();
        (spec.uid_base, spec.network) = (fresh_pair(), Some(internet()));
        let mut sandbox = harness.create_from(spec).await;
        kept.extend(
            sandbox
                .live
                .outbound
                .as_mut()
                .and_then(|outbound| outbound.take_resolver()),
        );
        // From the same port each time.
        let open = format!(
            "
s = socket.socket()
s.bind(('0.0.0.0', 40000))
s.settimeout(10)
s.connect(({:?}, {TCP}))
say(echo(s))",
            PUBLIC[0]
        );
        assert_eq!(sandbox.run(&open).await, "ping");
        let outbound = sandbox.live.outbound.as_ref().expect("a way out");
        // Not as a part of the former one. (The server, which still has that, may have it asked for twice.)
        assert!(outbound.counters().await.expect("counters").connections >= 1);
        sandbox.live.destroy().await;
    }
    harness.finish().await;
}

/// Not a test: the process that the next one kills.
#[tokio::test]
#[ignore = "started by the test that kills it"]
async fn a_host_to_be_killed() {
    let Some(dir) = std::env::var_os(HOST_DIR) else {
        return;
    };
    let harness = Harness::in_directory(dir.into(), PROGRAM);
    let _sandbox = with_policy(&harness, internet()).await;
    std::fs::write(harness.dir().join("up"), "").expect("write");
    tokio::time::sleep(Duration::from_secs(600)).await;
}

struct Killed(Child);

impl Killed {
    fn kill(&mut self) {
        // It may have been before.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        self.kill();
    }
}

#[tokio::test]
async fn nothing_is_left_of_a_killed_host() {
    let world = World::enter();
    let dir = tempfile::tempdir().expect("a directory");
    let host = Command::new(std::env::current_exe().expect("this program"))
        .args([
            "--exact",
            "network::removal::a_host_to_be_killed",
            "--ignored",
        ])
        .env(HOST_DIR, dir.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the host");
    let mut host = Killed(host);
    until("its sandbox is up", || dir.path().join("up").exists()).await;
    let left = || {
        let tables = world.look("nft", &["list", "tables"]);
        let links = world.look("ip", &["-o", "link"]);
        (tables + &links).matches("hearth").count()
    };
    assert!(left() >= 2);
    // Another one beside it has a table and an interface of its own.
    let second = harness();
    let sandbox = with_policy(&second, internet()).await;
    assert!(left() >= 4);
    host.kill();
    until("its table and interface are gone", || left() == 2).await;
    assert_eq!(sandbox.attempt("tcp", PUBLIC[0], TCP).await, "ping");
    second.end(sandbox).await;
    assert_eq!(left(), 0);
}
