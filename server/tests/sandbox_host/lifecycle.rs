//! How a sandbox ends, and what is reported.

use std::time::Duration;

use hearth::sandbox::SandboxError;
use hearth_testkit::processes::signal;
use rustix::process::Signal;

use crate::harness::{Harness, fresh_pair, processes_of, until};

#[tokio::test]
async fn the_end_of_a_template_is_told() {
    for (program, how) in [
        (
            "import sys; sys.exit(3)",
            "the template exited with status 3",
        ),
        (
            "import os; os.kill(os.getpid(), 9)",
            "the template was killed by signal 9",
        ),
        (
            "import os; os.abort()",
            "the template was killed by signal 6",
        ),
        (
            "x = []\nwhile True: x.append(bytes(1 << 20) + b'x')",
            "the template ran out of memory",
        ),
    ] {
        let harness = Harness::new(program);
        let sandbox = harness.create().await;
        assert_eq!(sandbox.live.exited().await, how);
        assert_eq!(sandbox.live.exited().await, how, "asked again");
        let out_of_memory = how.ends_with("out of memory");
        assert_eq!(sandbox.live.template_oom_killed(), out_of_memory);
        harness.end(sandbox).await;
    }
}

#[tokio::test]
async fn a_failed_step_is_named_and_leaves_nothing() {
    let harness = Harness::new("");
    let refuse = async |change: fn(&mut hearth::sandbox::SandboxSpec)| {
        let mut spec = harness.spec();
        // The users of one that failed are free again only when it is removed.
        spec.uid_base = fresh_pair();
        change(&mut spec);
        match harness.host.create(spec).await {
            Ok(_) => panic!("a sandbox"),
            Err(error) => error,
        }
    };
    let error = refuse(|spec| spec.argv = vec!["/usr/bin/no-such-program".into()]).await;
    let named = |detail: &str| detail.contains("/usr/bin/no-such-program");
    assert!(
        matches!(&error, SandboxError::Step { step, detail } if step == "exec" && named(detail)),
        "{error}"
    );
    let error = refuse(|spec| spec.code_dir.set_file_name("none")).await;
    let named = |detail: &str| detail.contains("code/none");
    assert!(
        matches!(&error, SandboxError::Step { step, detail } if step == "mount" && named(detail)),
        "{error}"
    );
    let error = refuse(|spec| spec.id = "../x".into()).await;
    assert!(
        matches!(&error, SandboxError::Step { step, .. } if step == "specification"),
        "{error}"
    );
    harness.finish().await;
}

#[tokio::test]
async fn dropping_is_destroying() {
    let harness = Harness::new("say('up')\nimport time; time.sleep(600)");
    let sandbox = harness.create().await;
    sandbox.receive().await;
    let instance_cgroup = sandbox
        .live
        .instance_cgroup()
        .await
        .expect("an instance cgroup");
    drop(sandbox);
    drop(instance_cgroup);
    until("no process is left", || {
        processes_of(harness.uid()).is_empty()
    })
    .await;
    // And creations that nobody waits for.
    for pause in [0, 1, 5, 20] {
        let mut spec = harness.spec();
        spec.uid_base = fresh_pair();
        let creating = harness.host.create(spec);
        let _ = tokio::time::timeout(Duration::from_millis(pause), creating).await;
    }
    harness.finish().await;
}

#[tokio::test]
async fn pid_1_can_be_killed_from_outside() {
    let harness = Harness::new("say('up')\nimport time; time.sleep(600)");
    let sandbox = harness.create().await;
    sandbox.receive().await;
    let init = processes_of(harness.uid() - 1);
    assert_eq!(init.len(), 1);
    signal(init[0], Signal::KILL).expect("kill");
    assert_eq!(
        sandbox.live.exited().await,
        "PID 1 of the sandbox was killed by signal 9"
    );
    assert_eq!(processes_of(harness.uid()), [0; 0]);
    harness.end(sandbox).await;
}

#[tokio::test]
async fn the_host_says_what_it_can() {
    let harness = Harness::new("");
    let find = |name: &str| {
        let mut all = harness.host.capabilities().into_iter();
        match all.find(|capability| capability.name == name) {
            Some(capability) => capability,
            None => panic!("no {name}"),
        }
    };
    for name in ["userns", "landlock", "seccomp", "cgroup"] {
        assert!(find(name).available, "{name}");
    }
    let version = find("cgroup").version.expect("a version");
    assert!(["v1", "v2"].contains(&version.as_str()), "{version}");
    assert!(find("landlock").version.is_some());
    assert!(find("network_outbound").available);
    let fast = find("cgroup_fast_attach");
    assert_ne!(fast.available, fast.reason.is_some());
    harness.finish().await;
}
