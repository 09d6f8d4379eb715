//! What a compromised server can say to the host, and what comes of it: the real host with real sandboxes, on a thread of
//! this test, which is root.

use std::fs;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hearth_host::protocol::request::{Order, Target};
use hearth_host::protocol::{Papers, REPLY_BYTES, REQUEST_BYTES, Refusal, Reply, Request};
use hearth_host::{
    CriuChoice, Host, HostProcessError, NetworkSettings, Probed, Settings, UIDS, find_init,
};
use hearth_init::wire;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair, sockopt};

/// Longer than anything here takes; a test that waits this long has failed.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Pairs of users that one test has.
const PAIRS: u32 = 10;
static NEXT: AtomicU32 = AtomicU32::new(0);

/// A host and this test's end of its socket.
struct Conversation {
    dir: tempfile::TempDir,
    socket: OwnedFd,
    host: Option<JoinHandle<Result<(), HostProcessError>>>,
    uid_base: u32,
}

impl Conversation {
    fn begin() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        for name in ["code/sleeper", "runtimes/python", "secret"] {
            fs::create_dir_all(dir.path().join(name)).expect("mkdir");
        }
        fs::write(dir.path().join("secret/key"), "secret").expect("write");
        fs::write(dir.path().join("code/sleeper/main"), "").expect("write");
        let settings = Settings {
            data_dir: dir.path().to_owned(),
            init: find_init().expect("hearth-init, built"),
            runtimes: dir.path().join("runtimes"),
            uids: UIDS,
            criu: CriuChoice::Never("not used".into()),
            network: NetworkSettings::default(),
            server: None,
        };
        let (socket, theirs) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )
        .expect("a socket");
        let host = std::thread::spawn(move || {
            let probed = Probed::kernel(&settings.init).expect("a kernel that can");
            let host = match Host::open(settings, probed) {
                Ok(host) => host,
                Err(error) => panic!("{error}"),
            };
            host.serve(theirs)
        });
        let conversation = Self {
            dir,
            socket,
            host: Some(host),
            // Users nobody else has: not another test, and not another run of these.
            uid_base: UIDS.start
                + 100_000_000
                + (std::process::id() % 100_000) * 400
                + NEXT.fetch_add(1, Ordering::Relaxed) * PAIRS * 2,
        };
        while !matches!(conversation.hear().0, Reply::Up { .. }) {}
        conversation
    }

    fn send(&self, bytes: &[u8], fds: &[BorrowedFd<'_>]) {
        wire::send(&self.socket, bytes, fds).expect("sent");
    }

    fn say(&self, request: &Request) {
        self.send(&request.encode(), &[]);
    }

    fn hear(&self) -> (Reply, Vec<OwnedFd>) {
        self.try_hear().expect("the host answers")
    }

    /// None when it has hung up.
    fn try_hear(&self) -> Option<(Reply, Vec<OwnedFd>)> {
        let mut ready = [PollFd::new(&self.socket, PollFlags::IN)];
        let most = Timespec::try_from(TIMEOUT).expect("fits");
        assert_ne!(poll(&mut ready, Some(&most)).expect("poll"), 0, "no answer");
        let mut bytes = [0; REPLY_BYTES];
        match wire::receive(&self.socket, &mut bytes) {
            Ok((0, _)) => None,
            Ok((length, fds)) => Some((Reply::decode(&bytes[..length]).expect("a reply"), fds)),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => None,
            Err(error) => panic!("{error}"),
        }
    }

    fn order(&self, pair: u32) -> Order {
        Order {
            uid_base: self.uid_base + 2 * pair,
            memory_bytes: 64 << 20,
            max_instances: 1,
            forks: true,
            dumpable: false,
            restore_limit: None,
        }
    }

    fn papers(&self) -> Papers {
        Papers {
            id: "hostile".into(),
            hostname: "hostile".into(),
            code: "code/sleeper".into(),
            runtime: "python".into(),
            argv: ["/bin/sleep", "600"].map(String::from).to_vec(),
            env: Vec::new(),
            image: None,
            network: None,
        }
    }

    /// What a Create is answered; what else the host has to say is passed over.
    fn ask(&self, order: Order, papers: &Papers) -> (Reply, Vec<OwnedFd>) {
        let papers = papers.seal().expect("sealed");
        self.send(&Request::Create(1, order).encode(), &[papers.as_fd()]);
        loop {
            let (reply, fds) = self.hear();
            if matches!(reply, Reply::Created { .. } | Reply::Refused(1, _)) {
                return (reply, fds);
            }
        }
    }

    /// The sandbox that was made, and its user.
    fn create(&self, pair: u32) -> (u64, u32) {
        match self.ask(self.order(pair), &self.papers()) {
            (Reply::Created { key, uid, .. }, fds) => {
                assert_eq!(fds.len(), 3);
                (key, uid)
            }
            other => panic!("{other:?}"),
        }
    }

    /// The step and the detail with which it is refused.
    fn refusal(&self, order: Order, papers: &Papers) -> (String, String) {
        match self.ask(order, papers).0 {
            Reply::Refused(1, Refusal::Step(step, detail)) => (step, detail),
            other => panic!("{other:?}"),
        }
    }

    /// Waits for the next instance cgroup.
    fn prepared(&self, of: u64) -> u64 {
        loop {
            if let Reply::Prepared(key, leaf) = self.hear().0
                && key == of
            {
                return leaf;
            }
        }
    }

    /// The host has ended, with nothing left of any sandbox; how.
    fn end(mut self) -> Result<(), HostProcessError> {
        let host = self.host.take().expect("ended once");
        let ended = host.join().expect("it did not panic");
        assert_eq!(
            fs::read_dir(self.dir.path().join("run"))
                .expect("run")
                .count(),
            0
        );
        for uid in self.uid_base..self.uid_base + 2 * PAIRS {
            assert_eq!(processes_of(uid), [0; 0]);
        }
        ended
    }
}

/// Host pids of the processes of a user.
fn processes_of(uid: u32) -> Vec<u32> {
    let status = |pid: &u32| fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    fs::read_dir("/proc")
        .expect("/proc")
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| status(pid).contains(&format!("\nUid:\t{uid}\t")))
        .collect()
}

fn until(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < TIMEOUT, "not so: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

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
    while talk.hear().0 != Reply::Done(9) {}
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
    drop_socket_and_end(talk);
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
        talk.say(&Request::Kill(target));
    }
    // Cgroups and sandboxes that there are not.
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
        talk.say(&Request::Kill(target));
        talk.say(&Request::Release(target));
    }
    talk.say(&Request::FreezeTemplate(77));
    talk.say(&Request::FillPool(77, u32::MAX));
    talk.say(&Request::InstanceCgroup(5, 77));
    while talk.hear().0 != Reply::Refused(5, Refusal::Gone) {}
    assert_eq!(cgroups(bystander.id()), before);
    assert_eq!(cgroups(template), template_before);
    assert!(bystander.try_wait().expect("a child").is_none(), "it runs");
    let state = fs::read_to_string(format!("/proc/{}/stat", bystander.id())).expect("it lives");
    assert!(!state.contains(") T "), "it is not stopped: {state}");
    bystander.kill().expect("killed");
    bystander.wait().expect("gone");
    drop_socket_and_end(talk);
}

#[test]
fn more_and_more_cgroups_are_refused() {
    let talk = Conversation::begin();
    let (key, _) = talk.create(0);
    let mut made = 0;
    for sequence in 10..1000 {
        talk.say(&Request::InstanceCgroup(sequence, key));
        let granted = loop {
            match talk.hear().0 {
                Reply::InstanceCgroup(of, ..) if of == sequence => break true,
                Reply::Refused(of, _) if of == sequence => break false,
                _ => {}
            }
        };
        if !granted {
            break;
        }
        made += 1;
    }
    assert!((50..100).contains(&made), "{made}");
    drop_socket_and_end(talk);
}

#[test]
fn a_message_that_is_none_ends_everything() {
    let good = Request::Destroy(1).encode();
    let mut unknown = good;
    unknown[0] = 99;
    let mut padded = good;
    padded[REQUEST_BYTES - 1] = 1;
    let longer = [&good[..], &[0]].concat();
    for bytes in [
        &good[..1],
        &good[..REQUEST_BYTES - 1],
        &longer,
        &unknown,
        &padded,
    ] {
        let talk = Conversation::begin();
        talk.create(0);
        talk.send(bytes, &[]);
        let ended = talk.end();
        assert!(
            matches!(ended, Err(HostProcessError::Malformed(_))),
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
    assert!(matches!(talk.end(), Err(HostProcessError::Malformed(_))));
    for count in [0, 2, 3, 8] {
        let talk = Conversation::begin();
        let create = Request::Create(1, talk.order(0)).encode();
        talk.send(&create, &vec![null.as_fd(); count]);
        let ended = talk.end();
        assert!(
            matches!(ended, Err(HostProcessError::Malformed(_))),
            "{count}: {ended:?}"
        );
    }
    // One descriptor, but not papers: that is only refused.
    let talk = Conversation::begin();
    let create = Request::Create(1, talk.order(0)).encode();
    talk.send(&create, &[null.as_fd()]);
    let (answer, _) = talk.hear();
    assert!(
        matches!(answer, Reply::Refused(1, Refusal::Step(..))),
        "{answer:?}"
    );
    drop_socket_and_end(talk);
}

#[test]
fn a_server_that_does_not_read_is_given_up() {
    let talk = Conversation::begin();
    talk.create(0);
    sockopt::set_socket_send_buffer_size(&talk.socket, 1 << 20).expect("a larger buffer");
    // Each is answered.
    let begun = Instant::now();
    loop {
        match wire::send(&talk.socket, &Request::InstanceCgroup(1, 77).encode(), &[]) {
            Ok(()) => assert!(begun.elapsed() < TIMEOUT, "it is not given up"),
            Err(error) => {
                let gone = [io::ErrorKind::BrokenPipe, io::ErrorKind::ConnectionReset];
                assert!(gone.contains(&error.kind()), "{error}");
                break;
            }
        }
    }
    let ended = talk.end();
    assert!(matches!(ended, Err(HostProcessError::Deaf)), "{ended:?}");
}

#[test]
fn the_servers_end_is_everybodys() {
    let talk = Conversation::begin();
    let (_, uid) = talk.create(0);
    let papers = talk.papers().seal().expect("sealed");
    // In the middle of another.
    let create = Request::Create(2, talk.order(1)).encode();
    talk.send(&create, &[papers.as_fd()]);
    drop_socket_and_end(talk);
    until("no process is left", || processes_of(uid).is_empty());
}

/// The server dies.
fn drop_socket_and_end(talk: Conversation) {
    rustix::net::shutdown(&talk.socket, rustix::net::Shutdown::Both).expect("shut down");
    talk.end().expect("a good end");
}
