//! A real host with real sandboxes on a thread of a test, which is root and talks to it as the server does.

// Each of the tests that have it uses a part.
#![allow(dead_code)]

use std::fs;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use hearth_host::process::{Gateway, ServerUser};
use hearth_host::protocol::request::Order;
use hearth_host::protocol::{Message as _, Papers, Reply, Request};
use hearth_host::{
    CriuChoice, Host, HostProcessError, PortSettings, Probed, SandboxError, Settings, UIDS,
    find_init,
};
use hearth_init::wire;
use hearth_testkit::{processes, wait};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

/// Longer than anything here takes; a test that waits this long has failed.
pub const TIMEOUT: Duration = Duration::from_secs(60);
/// Pairs of users that one test has.
const PAIRS: u32 = 10;
static NEXT: AtomicU32 = AtomicU32::new(0);

pub fn settings(data_dir: &Path) -> Settings {
    Settings {
        data_dir: data_dir.to_owned(),
        init: find_init().expect("hearth-init, built"),
        runtimes: data_dir.join("runtimes"),
        criu: CriuChoice::Never("not used".into()),
        gateway: Vec::new(),
        ports: PortSettings::default(),
        // Whose group it is does not matter here.
        server: Some(ServerUser {
            uid: UIDS.start - 1,
            gid: UIDS.start - 1,
        }),
    }
}

/// A host and this test's end of its socket.
pub struct Conversation {
    pub dir: tempfile::TempDir,
    pub socket: OwnedFd,
    host: Option<JoinHandle<Result<(), HostProcessError>>>,
    uid_base: u32,
}

impl Conversation {
    pub fn begin() -> Self {
        Self::begin_with(b"")
    }

    /// With this program as a gateway that gets these settings, if they are any.
    pub fn begin_with(gateway: &'static [u8]) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        for name in ["code/sleeper", "runtimes/python", "secret"] {
            fs::create_dir_all(dir.path().join(name)).expect("mkdir");
        }
        fs::write(dir.path().join("secret/key"), "secret").expect("write");
        fs::write(dir.path().join("code/sleeper/main"), "").expect("write");
        let settings = settings(dir.path());
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
            // The server's socket to it is not used.
            let started = (!gateway.is_empty()).then(|| {
                let program = std::env::current_exe().expect("this program");
                Gateway::start(&program, gateway).expect("started").0
            });
            host.serve(theirs, started)
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
        while !matches!(conversation.receive().0, Reply::Up { .. }) {}
        conversation
    }

    pub fn send(&self, bytes: &[u8], fds: &[BorrowedFd<'_>]) {
        wire::send(&self.socket, bytes, fds).expect("sent");
    }

    pub fn say(&self, request: &Request) {
        self.send(&request.encode(), &[]);
    }

    pub fn receive(&self) -> (Reply, Vec<OwnedFd>) {
        self.try_hear().expect("the host answers")
    }

    /// None when it has hung up.
    pub fn try_hear(&self) -> Option<(Reply, Vec<OwnedFd>)> {
        let mut ready = [PollFd::new(&self.socket, PollFlags::IN)];
        let most = Timespec::try_from(TIMEOUT).expect("fits");
        assert_ne!(poll(&mut ready, Some(&most)).expect("poll"), 0, "no answer");
        let mut bytes = [0; Reply::BYTES];
        match wire::receive(&self.socket, &mut bytes) {
            Ok((0, _)) => None,
            Ok((length, fds)) => Some((Reply::decode(&bytes[..length]).expect("a reply"), fds)),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => None,
            Err(error) => panic!("{error}"),
        }
    }

    pub fn order(&self, pair: u32) -> Order {
        Order {
            uid_base: self.uid_base + 2 * pair,
            memory_bytes: 64 << 20,
            max_instances: 1,
            processor: None,
            forks: true,
            dumpable: false,
            restore_limit: None,
            network: false,
        }
    }

    pub fn papers(&self) -> Papers {
        Papers {
            id: "hostile".into(),
            hostname: "hostile".into(),
            code: "code/sleeper".into(),
            runtime: "python".into(),
            argv: ["/bin/sleep", "600"].map(String::from).to_vec(),
            env: Vec::new(),
            image: None,
            trust: None,
        }
    }

    /// What a Create is answered; what else the host has to say is passed over.
    pub fn ask(&self, order: Order, papers: &Papers) -> (Reply, Vec<OwnedFd>) {
        let papers = papers.seal().expect("sealed");
        self.send(&Request::Create(1, order).encode(), &[papers.as_fd()]);
        loop {
            let (reply, fds) = self.receive();
            if matches!(reply, Reply::Created { .. } | Reply::Refused(1, _)) {
                return (reply, fds);
            }
        }
    }

    /// The sandbox that was made, and its user.
    pub fn create(&self, pair: u32) -> (u64, u32) {
        match self.ask(self.order(pair), &self.papers()) {
            (Reply::Created { key, uid, .. }, fds) => {
                assert_eq!(fds.len(), 3);
                (key, uid)
            }
            other => panic!("{other:?}"),
        }
    }

    /// The step and the detail with which it is refused.
    pub fn refusal(&self, order: Order, papers: &Papers) -> (String, String) {
        match self.ask(order, papers).0 {
            Reply::Refused(1, SandboxError::Step { step, detail }) => (step, detail),
            other => panic!("{other:?}"),
        }
    }

    /// Waits for the next instance cgroup.
    pub fn prepared(&self, of: u64) -> u64 {
        loop {
            if let Reply::Prepared(key, leaf) = self.receive().0
                && key == of
            {
                return leaf;
            }
        }
    }

    /// The host has ended, with nothing left of any sandbox; how.
    pub fn end(mut self) -> Result<(), HostProcessError> {
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

    /// The server dies, and the host ends as it should.
    pub fn hang_up(self) {
        rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both).expect("shut down");
        self.end().expect("a good end");
    }
}

/// Host pids of the processes of a user.
pub fn processes_of(uid: u32) -> Vec<u32> {
    let all = processes::all().into_iter();
    all.filter(|process| process.uid == uid)
        .map(|process| process.pid)
        .collect()
}

/// Looks until something is so.
pub fn until(what: &str, condition: impl Fn() -> bool) {
    let found = wait::poll(TIMEOUT, Duration::from_millis(2), || {
        condition().then_some(())
    });
    assert!(found.is_some(), "not so: {what}");
}
