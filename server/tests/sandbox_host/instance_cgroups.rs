//! Instances in their instance cgroups.

use hearth_testkit::cgroups::is_of_an_instance;

use crate::harness::{Harness, cgroups_named, host_pid, processes_of, until};

/// A template that forks on command, as the real one does, and instances that wait for a byte before they go on.
const FORKING: &str = "import ctypes, os, time
def instance(order, go):
    if order == b'stray' and os.fork() == 0:
        # A chain of four in a session of its own.
        os.setsid()
        for _ in range(3):
            if os.fork() != 0: break
        time.sleep(600)
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
    say(os.getpid())
    os.read(go, 1)
    eaten = []
    while order == b'eat': eaten.append(bytes(1 << 20) + b'x')
    time.sleep(600)
while True:
    order = control.recv(64)
    if order == b'go': os.write(start, b'g'); continue
    go, start = os.pipe()
    if os.fork() == 0: instance(order, go)
";

/// Waits until a process is in its instance cgroup.
async fn attached(pid: u32) {
    until("it is in its instance cgroup", || is_of_an_instance(pid)).await;
}

#[tokio::test]
async fn memory_beyond_an_instances_limit_kills_the_instance_alone() {
    let harness = Harness::new(FORKING);
    let sandbox = harness.create().await;
    let instance_cgroup = sandbox
        .live
        .instance_cgroup()
        .await
        .expect("an instance cgroup");
    sandbox.say(b"eat").await;
    let inner = sandbox.receive().await[0].as_i64().expect("pid");
    let pid = host_pid(harness.uid(), inner).expect("the instance");
    instance_cgroup.expect(pid);
    let _refused = instance_cgroup.attach();
    attached(pid).await;
    assert!(!instance_cgroup.oom_killed());
    sandbox.say(b"go").await;
    until("it is killed", || instance_cgroup.oom_killed()).await;
    assert!(!sandbox.live.template_oom_killed());
    // The template forks on.
    sandbox.say(b"wait").await;
    assert!(sandbox.receive().await[0].is_i64());
    drop(instance_cgroup);
    harness.end(sandbox).await;
}

#[tokio::test]
async fn killing_an_instance_kills_its_strays() {
    let harness = Harness::new(FORKING);
    let sandbox = harness.create().await;
    // Another instance, which has to stay.
    sandbox.say(b"wait").await;
    sandbox.receive().await;
    let before = processes_of(harness.uid()).len();
    let instance_cgroup = sandbox
        .live
        .instance_cgroup()
        .await
        .expect("an instance cgroup");
    sandbox.say(b"stray").await;
    let inner = sandbox.receive().await[0].as_i64().expect("pid");
    until("the strays are there", || {
        processes_of(harness.uid()).len() == before + 5
    })
    .await;
    let pid = host_pid(harness.uid(), inner).expect("the instance");
    // Moved after it has forked, so that its strays are in the template's leaf: the worst case.
    instance_cgroup.expect(pid);
    let _refused = instance_cgroup.attach();
    attached(pid).await;
    instance_cgroup.kill();
    // The dead instance waits for the template to reap it, which this one does not do.
    until("only the strays are gone", || {
        processes_of(harness.uid()).len() == before + 1
    })
    .await;
    drop(instance_cgroup);
    harness.end(sandbox).await;
}

#[tokio::test]
async fn more_instance_cgroups_than_are_prepared() {
    let harness = Harness::new(FORKING);
    let sandbox = harness.create().await;
    let mut instance_cgroups = Vec::new();
    for _ in 0..20 {
        instance_cgroups.push(
            sandbox
                .live
                .instance_cgroup()
                .await
                .expect("an instance cgroup"),
        );
    }
    let made = || cgroups_named(|name| name.starts_with("instance-")).len();
    assert!(made() >= 20);
    drop(instance_cgroups);
    sandbox.live.instance_cgroup().await.expect("one more");
    harness.end(sandbox).await;
}
