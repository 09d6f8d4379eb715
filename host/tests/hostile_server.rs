//! What a compromised server can say to the host, and what comes of it.

mod conversation;

use std::fs;
use std::net::Ipv4Addr;
use std::os::fd::AsFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;

use hearth_host::peer::PeerError;
use hearth_host::protocol::request::{Order, Target};
use hearth_host::protocol::{Message as _, Papers, Purpose, Reply, Request};
use hearth_host::{Host, HostProcessError, Probed, SandboxError, UIDS};
use hearth_testkit::processes::priority;

use conversation::{Conversation, TIMEOUT, processes_of, settings, until};

#[test]
fn what_is_out_of_bounds_is_refused_and_the_rest_is_granted() {
    let talk = Conversation::begin();
    let refused = |change: &dyn Fn(&mut Order, &mut Papers)| {
        let (mut order, mut papers) = (talk.order(0), talk.papers());
        change(&mut order, &mut papers);
        talk.refusal(order, &papers)
    };
    for uid in [
        0,
        1,
        1000,
        UIDS.start - 2,
        UIDS.start + 1,
        UIDS.end - 1,
        UIDS.end,
        u32::MAX,
    ] {
        let (step, detail) = refused(&|order, _| order.uid_base = uid);
        assert_eq!(
            (step.as_str(), detail.contains("uid")),
            ("specification", true),
            "{uid}"
        );
    }
    for memory in [0, 1, u64::MAX] {
        let (step, _) = refused(&|order, _| order.memory_bytes = memory);
        assert_eq!(step, "specification", "{memory}");
    }
    for instances in [0, 1001, u32::MAX] {
        let (step, _) = refused(&|order, _| order.max_instances = instances);
        assert_eq!(step, "specification", "{instances}");
    }
    let (step, _) = refused(&|order, _| order.restore_limit = Some(TIMEOUT));
    assert_eq!(step, "specification", "a limit without an image");
    for code in ["code/..", "../secret", "/etc", "secret", "run", "images/x"] {
        let (step, _) = refused(&|_, papers| papers.code = code.into());
        assert_eq!(step, "specification", "{code}");
    }
    let (step, _) = refused(&|_, papers| papers.runtime = "ruby".into());
    assert_eq!(step, "specification", "no such runtime");
    talk.create(0);
    // The same pair of users, while the other one lives.
    let (step, detail) = talk.refusal(talk.order(0), &talk.papers());
    assert_eq!(
        (step.as_str(), detail.contains("another")),
        ("specification", true)
    );
    talk.create(1);
    talk.say(&Request::Shutdown(9));
    while talk.receive().0 != Reply::Done(9) {}
    talk.end().expect("a good end");
}

#[test]
fn no_link_leads_out_of_the_code() {
    let talk = Conversation::begin();
    let code = talk.dir.path().join("code");
    let secret = talk.dir.path().join("secret");
    let link = |target: &Path, name: &str| {
        std::os::unix::fs::symlink(target, code.join(name)).expect("a link");
    };
    link(&secret, "absolute");
    link(Path::new("../secret"), "relative");
    link(Path::new("/proc/self/root/etc"), "magic");
    fs::create_dir(code.join("deep")).expect("mkdir");
    link(Path::new("sleeper"), "inside");
    let names = [
        "absolute",
        "relative",
        "magic",
        "inside",
        "deep/../absolute",
    ];
    // A pair of users is another sandbox's until that is removed.
    for (pair, name) in (0..).zip(names) {
        let mut papers = talk.papers();
        papers.code = Path::new("code").join(name);
        let (step, _) = talk.refusal(talk.order(pair), &papers);
        assert!(
            ["mount", "specification"].contains(&step.as_str()),
            "{name}: {step}"
        );
    }
    // And the way to all code replaced: it is the server's to do.
    fs::rename(&code, talk.dir.path().join("aside")).expect("renamed");
    std::os::unix::fs::symlink(talk.dir.path(), &code).expect("a link");
    let mut papers = talk.papers();
    papers.code = "code/secret".into();
    let (step, _) = talk.refusal(talk.order(9), &papers);
    assert_eq!(step, "mount");
    talk.hang_up();
}

#[test]
fn another_process_or_cgroup_is_left_alone() {
    let talk = Conversation::begin();
    let (first, _) = talk.create(0);
    let first_leaf = talk.prepared(first);
    let (second, uid) = talk.create(1);
    let template = processes_of(uid)[0];
    let mut bystander = std::process::Command::new("/bin/sleep")
        .arg("600")
        .spawn()
        .expect("sleep");
    let cgroups = |pid: u32| fs::read_to_string(format!("/proc/{pid}/cgroup")).expect("it lives");
    let (before, template_before) = (cgroups(bystander.id()), cgroups(template));
    // This process, PID 1 of the host, a process of root's, the other sandbox's template, and no process at all.
    for pid in [std::process::id(), 1, bystander.id(), template, 0, u32::MAX] {
        let target = Target {
            key: first,
            leaf: first_leaf,
            pid,
        };
        talk.say(&Request::Attach(target));
        talk.say(&Request::Freeze(target, true));
        talk.say(&Request::Thaw(target, false));
        talk.say(&Request::LimitCpu(target, 0));
        // All cores, and none.
        talk.say(&Request::Dedicate(0, target, u128::MAX));
        talk.say(&Request::Dedicate(0, target, 0));
        talk.say(&Request::Dedicate(0, target, 1));
        talk.say(&Request::Kill(target));
    }
    // Cgroups and sandboxes that do not exist.
    for (key, leaf) in [
        (first, 1 << 40),
        (second, u64::MAX),
        (77, 1),
        (u64::MAX, first_leaf),
    ] {
        let target = Target {
            key,
            leaf,
            pid: template,
        };
        talk.say(&Request::Attach(target));
        talk.say(&Request::LimitCpu(target, u32::MAX));
        talk.say(&Request::Dedicate(0, target, 1));
        talk.say(&Request::Kill(target));
        talk.say(&Request::Release(target));
    }
    talk.say(&Request::FreezeTemplate(77));
    talk.say(&Request::FillPool(77, u32::MAX));
    talk.say(&Request::InstanceCgroup(5, 77));
    while talk.receive().0 != Reply::Refused(5, SandboxError::Gone) {}
    assert_eq!(cgroups(bystander.id()), before);
    assert_eq!(cgroups(template), template_before);
    assert!(bystander.try_wait().expect("a child").is_none(), "it runs");
    let state = fs::read_to_string(format!("/proc/{}/stat", bystander.id())).expect("it lives");
    assert!(!state.contains(") T "), "it is not stopped: {state}");
    bystander.kill().expect("killed");
    bystander.wait().expect("gone");
    talk.hang_up();
}

#[test]
fn only_the_servers_own_threads_are_prioritized() {
    let talk = Conversation::begin();
    let (key, _) = talk.create(0);
    let sleep = |uid| {
        let mut command = std::process::Command::new("/bin/sleep");
        command.arg("600").uid(uid).spawn().expect("sleep")
    };
    let (mut own, mut other) = (sleep(UIDS.start - 1), sleep(UIDS.start - 2));
    let priority = |pid| priority(pid).expect("it runs");
    let ordinary = priority(own.id());
    let others = [std::process::id(), 1, other.id()];
    let before = others.map(priority);
    for pid in others.into_iter().chain([0, u32::MAX, own.id()]) {
        talk.say(&Request::Prioritize(pid, true));
    }
    until("the server's thread is prioritized", || {
        priority(own.id()) < ordinary
    });
    // Once more is not higher.
    let raised = priority(own.id());
    talk.say(&Request::Prioritize(own.id(), true));
    talk.say(&Request::InstanceCgroup(1, key));
    while !matches!(talk.receive().0, Reply::InstanceCgroup(1, ..)) {}
    assert_eq!(priority(own.id()), raised);
    assert_eq!(others.map(priority), before);
    talk.say(&Request::Prioritize(own.id(), false));
    until("it is ordinary again", || priority(own.id()) == ordinary);
    for child in [&mut own, &mut other] {
        child.kill().expect("killed");
        child.wait().expect("gone");
    }
    talk.hang_up();
}

#[test]
fn a_sandbox_without_a_network_gets_no_socket() {
    let talk = Conversation::begin();
    let (key, _) = talk.create(0);
    for (sequence, key, purpose) in [
        (1, key, Purpose::Listen(443)),
        (2, key, Purpose::Dial(Ipv4Addr::LOCALHOST.into(), 22)),
        (3, key + 1, Purpose::Listen(443)),
    ] {
        talk.say(&Request::Socket(sequence, key, purpose));
        let refused = Reply::Refused(sequence, SandboxError::Gone);
        // Until then there is only news.
        while talk.receive().0 != refused {}
    }
    talk.hang_up();
}

#[test]
fn a_message_that_is_none_ends_everything() {
    let good = Request::Destroy(1).encode();
    let mut unknown = good.clone();
    unknown[0] = 99;
    let mut padded = good.clone();
    padded[Request::BYTES - 1] = 1;
    let longer = [&good[..], &[0]].concat();
    for bytes in [
        &good[..1],
        &good[..Request::BYTES - 1],
        &longer,
        &unknown,
        &padded,
    ] {
        let talk = Conversation::begin();
        talk.create(0);
        talk.send(bytes, &[]);
        let ended = talk.end();
        assert!(
            matches!(
                ended,
                Err(HostProcessError::Server(PeerError::Malformed(_)))
            ),
            "{ended:?}"
        );
    }
}

#[test]
fn descriptors_that_do_not_belong_there_end_everything() {
    let null = fs::File::open("/dev/null").expect("a device");
    let destroy = Request::Destroy(1).encode();
    let talk = Conversation::begin();
    talk.send(&destroy, &[null.as_fd()]);
    assert!(matches!(
        talk.end(),
        Err(HostProcessError::Server(PeerError::Malformed(_)))
    ));
    for count in [0, 2, 3, 8] {
        let talk = Conversation::begin();
        let create = Request::Create(1, talk.order(0)).encode();
        talk.send(&create, &vec![null.as_fd(); count]);
        let ended = talk.end();
        assert!(
            matches!(
                ended,
                Err(HostProcessError::Server(PeerError::Malformed(_)))
            ),
            "{count}: {ended:?}"
        );
    }
    // One descriptor, but not papers: that is only refused.
    let talk = Conversation::begin();
    let create = Request::Create(1, talk.order(0)).encode();
    talk.send(&create, &[null.as_fd()]);
    let (answer, _) = talk.receive();
    assert!(
        matches!(answer, Reply::Refused(1, SandboxError::Step { .. })),
        "{answer:?}"
    );
    talk.hang_up();
}

#[test]
fn directories_that_a_server_has_made_are_not_taken_for_the_hosts() {
    for name in ["run", "images"] {
        for is_link in [true, false] {
            let dir = tempfile::tempdir().expect("a directory");
            let elsewhere = dir.path().join("elsewhere");
            fs::create_dir(&elsewhere).expect("mkdir");
            let before = fs::metadata(&elsewhere).expect("it is there");
            let forged = dir.path().join(name);
            if is_link {
                std::os::unix::fs::symlink(&elsewhere, &forged).expect("a link");
            } else {
                fs::create_dir(&forged).expect("mkdir");
                std::os::unix::fs::chown(&forged, Some(UIDS.start - 1), None).expect("chown");
            }
            let settings = settings(dir.path());
            let probed = Probed::kernel(&settings.init).expect("a kernel that can");
            let error = Host::open(settings, probed)
                .err()
                .expect("refused")
                .to_string();
            assert!(error.contains(&*forged.to_string_lossy()), "{error}");
            let after = fs::metadata(&elsewhere).expect("it is there");
            assert_eq!((after.gid(), after.mode()), (before.gid(), before.mode()));
        }
    }
}

#[test]
fn the_servers_end_is_everybodys() {
    let talk = Conversation::begin();
    let (_, uid) = talk.create(0);
    let papers = talk.papers().seal().expect("sealed");
    // In the middle of another.
    let create = Request::Create(2, talk.order(1)).encode();
    talk.send(&create, &[papers.as_fd()]);
    talk.hang_up();
    until("no process is left", || processes_of(uid).is_empty());
}
