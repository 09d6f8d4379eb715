//! Forks and restored templates have the network of their sandbox, also of a pre-warmed one.

use std::path::Path;
use std::time::Duration;

use hearth::sandbox::{KernelPolicy, PrewarmedSpec, Protocol, RestoreSource, SandboxSpec};
use hearth_host::CriuChoice;
use hearth_testkit::skipped::skip;

use super::world::{PROGRAM, PUBLIC, TCP, World, to, with_policy};
use crate::harness::{Harness, fresh_pair, until};

const IMAGE: &str = "under-test-1-0123456789abcdef";
/// Longer than a restore takes.
const LIMIT: Duration = Duration::from_secs(60);

fn policy(address: &str) -> KernelPolicy {
    let length = if address.contains(':') { 128 } else { 32 };
    KernelPolicy {
        allow: vec![to(address, length, Protocol::Tcp, TCP)],
        ..KernelPolicy::default()
    }
}

#[tokio::test]
async fn a_fork_has_it() {
    let _world = World::enter();
    let harness = super::world::harness();
    let sandbox = with_policy(&harness, policy(PUBLIC[0])).await;
    let fork = format!(
        "
if os.fork() == 0:
    say([attempt('tcp', {:?}, {TCP}), attempt('tcp', {:?}, {TCP})])
    os._exit(0)
os.wait()",
        PUBLIC[0], PUBLIC[1]
    );
    let came = sandbox.run(&fork).await;
    assert_eq!(came, serde_json::json!(["ping", "ECONNREFUSED"]));
    harness.end(sandbox).await;
}

#[tokio::test]
async fn a_restored_template_has_it() {
    let _world = World::enter();
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.tools/criu");
    let harness = Harness::with_settings(PROGRAM, |settings| {
        settings.criu = match own.is_dir() {
            true => CriuChoice::Named(own),
            false => CriuChoice::Detect,
        };
    });
    let criu = harness.host.capability("criu").expect("it is probed");
    if !criu.available {
        return skip("CRIU is missing");
    }
    let mut spec = harness.spec();
    (spec.network, spec.dumpable) = (Some(policy(PUBLIC[0])), true);
    let template = harness.create_from(spec).await;
    // Its import has used the network: of that nothing is left.
    assert_eq!(template.attempt("tcp", PUBLIC[0], TCP).await, "ping");
    until("the connection is over", || {
        let pid = crate::harness::processes_of(harness.uid())[0];
        let table = std::fs::read_to_string(format!("/proc/{pid}/net/tcp")).unwrap_or_default();
        // None but the resolver's listener, and what is in TIME_WAIT.
        table
            .lines()
            .skip(1)
            .all(|line| line.contains(" 0A ") || line.contains(" 06 "))
    })
    .await;
    template
        .live
        .dumpable()
        .dump(IMAGE, 10_000)
        .await
        .expect("dumped");
    template.live.destroy().await;

    let restored = |network: Option<KernelPolicy>| SandboxSpec {
        uid_base: fresh_pair(),
        network,
        trust: None,
        restore: Some(RestoreSource {
            image: IMAGE.into(),
            limit: LIMIT,
        }),
        ..harness.spec()
    };
    let prewarm = || {
        let spec = PrewarmedSpec {
            uid_base: fresh_pair(),
            runtime_name: "python",
        };
        harness.host.keep_prewarmed(&spec);
    };
    for prewarmed in [false, true] {
        for network in [Some(policy(PUBLIC[0])), Some(policy(PUBLIC[2])), None] {
            let used = harness.host.prewarmed().used();
            if prewarmed {
                prewarm();
                until("one is ready", || harness.host.prewarmed().ready() == 1).await;
            }
            let sandbox = harness.create_from(restored(network.clone())).await;
            assert_eq!(harness.host.prewarmed().used() - used, u64::from(prewarmed));
            let mut came = Vec::new();
            for address in [PUBLIC[0], PUBLIC[2]] {
                came.push(sandbox.attempt("tcp", address, TCP).await);
            }
            let resolver = sandbox.run("say(os.path.exists('/etc/resolv.conf'))").await;
            assert_eq!(resolver, network.is_some());
            let expected = match &network {
                None => ["ENETUNREACH", "ENETUNREACH"],
                Some(network) if *network == policy(PUBLIC[0]) => ["ping", "ECONNREFUSED"],
                Some(_) => ["ECONNREFUSED", "ping"],
            };
            assert_eq!(came, expected);
            sandbox.live.destroy().await;
        }
    }
    harness.finish().await;
}
