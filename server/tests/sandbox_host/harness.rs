//! A sandbox host for one test, with a Python program as template.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use hearth::sandbox::{Host, Sandbox, SandboxSpec, find_init};
use hearth_host::{CriuChoice, PortSettings, Settings};
use hearth_init::fields::Fields as _;
use hearth_testkit::{cgroups, processes, wait};
use serde_json::Value;
use tokio::net::UnixDatagram;

/// What every program starts with: `control` is its socket, `say` sends its arguments as JSON.
const PRELUDE: &str = "import json, socket, sys
control = socket.socket(fileno=3)
def say(*args): control.send(json.dumps(args, default=str).encode())
";
/// Longer than anything here takes; a test that waits this long has failed.
pub const TIMEOUT: Duration = Duration::from_secs(60);
/// Memory of an instance.
const MEMORY: u64 = 64 << 20;

/// A host and what sandboxes are made from.
pub struct Harness {
    pub host: Host,
    dir: PathBuf,
    _owned: Option<tempfile::TempDir>,
    uid_base: u32,
}

/// A sandbox with the sockets a test uses.
pub struct Running {
    pub live: Sandbox,
    /// A SEQPACKET socket, which takes a datagram socket's calls.
    control: UnixDatagram,
    stdout: OwnedFd,
}

impl Harness {
    pub fn new(program: &str) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let mut harness = Self::in_directory(dir.path().to_owned(), program);
        harness._owned = Some(dir);
        harness
    }

    /// A harness with other settings.
    pub fn with_settings(program: &str, change: impl FnOnce(&mut Settings)) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let mut harness = Self::make(dir.path().to_owned(), program, change);
        harness._owned = Some(dir);
        harness
    }

    pub fn in_directory(dir: PathBuf, program: &str) -> Self {
        Self::make(dir, program, |_| {})
    }

    fn make(dir: PathBuf, program: &str, change: impl FnOnce(&mut Settings)) -> Self {
        for name in ["code/function", "runtimes/python"] {
            fs::create_dir_all(dir.join(name)).expect("mkdir");
        }
        let main = dir.join("code/function/main.py");
        fs::write(main, format!("{PRELUDE}{program}\n")).expect("write");
        fs::write(dir.join("runtimes/python/runtime.txt"), "runtime").expect("write");
        let mut settings = settings(&dir);
        change(&mut settings);
        let host = match Host::start(settings, env!("CARGO_BIN_EXE_hearth").into()) {
            Ok(host) => host,
            Err(error) => panic!("{error}"),
        };
        Self {
            host,
            dir,
            _owned: None,
            uid_base: fresh_pair(),
        }
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Host uid of template and instances.
    pub fn uid(&self) -> u32 {
        self.uid_base + 1
    }

    pub fn spec(&self) -> SandboxSpec {
        SandboxSpec {
            id: "under-test-1".into(),
            hostname: "under-test".into(),
            uid_base: self.uid_base,
            code_dir: self.dir.join("code/function"),
            runtime_name: "python",
            argv: ["/usr/bin/python3", "-I", "/var/task/main.py"]
                .map(String::from)
                .to_vec(),
            forks: true,
            env: vec![("HELLO".into(), "world".into())],
            memory_bytes: MEMORY,
            max_instances: 2,
            network: None,
            trust: None,
            processor: None,
            dumpable: false,
            restore: None,
        }
    }

    pub async fn create(&self) -> Running {
        self.create_from(self.spec()).await
    }

    pub async fn create_from(&self, spec: SandboxSpec) -> Running {
        let mut live = match self.host.create(spec).await {
            Ok(live) => live,
            Err(error) => panic!("{error}"),
        };
        let control = live.control.take().expect("control");
        Running {
            control: UnixDatagram::from_std(control.into()).expect("a socket"),
            stdout: live.stdout.take().expect("stdout"),
            live,
        }
    }

    /// Destroys the sandbox and looks that nothing is left.
    pub async fn end(self, sandbox: Running) {
        sandbox.live.destroy().await;
        assert_eq!(processes_of(self.uid()), [0; 0]);
        assert_eq!(processes_of(self.uid() - 1), [0; 0]);
        self.finish().await;
    }

    /// Ends the host and looks that nothing is left.
    pub async fn finish(self) {
        let run = self.dir.join("run");
        let tags: Vec<_> = names(&run);
        self.host.shutdown().await;
        assert_eq!(processes_of(self.uid()), [0; 0]);
        assert_eq!(processes_of(self.uid() - 1), [0; 0]);
        assert_eq!(names(&run), [""; 0]);
        assert_eq!(
            cgroups_named(|name| tags.iter().any(|tag| tag == name)),
            [] as [PathBuf; 0]
        );
    }
}

impl Running {
    /// The template's next message.
    pub async fn receive(&self) -> Value {
        let bytes = self.hear_bytes().await;
        serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{error}: {bytes:?}"))
    }

    pub async fn hear_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; 1 << 17];
        match tokio::time::timeout(TIMEOUT, self.control.recv(&mut bytes)).await {
            Ok(length) => bytes.truncate(length.expect("recv")),
            Err(_) => panic!("the template says nothing: {}", self.printed()),
        };
        if bytes.is_empty() {
            let how = self.live.exited().await;
            let mut text = vec![0; 1 << 16];
            let stderr = self.live.stderr.as_ref().expect("stderr");
            let length = rustix::io::read(stderr, &mut text[..]).unwrap_or(0);
            panic!("{how}: {}", String::from_utf8_lossy(&text[..length]));
        }
        bytes
    }

    pub async fn say(&self, bytes: &[u8]) {
        self.control.send(bytes).await.expect("send");
    }

    /// What the template has printed so far.
    pub fn printed(&self) -> String {
        let mut text = vec![0; 1 << 16];
        let length = rustix::io::read(&self.stdout, &mut text[..]).unwrap_or(0);
        String::from_utf8_lossy(&text[..length]).into_owned()
    }
}

/// The first of two users nobody else has: not another test, and not another run of these.
pub fn fresh_pair() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    2_000_000_000 + (std::process::id() % 100_000) * 200 + number * 2
}

/// What a host process for this data directory is started with.
pub fn settings(dir: &Path) -> Settings {
    Settings {
        data_dir: dir.to_owned(),
        init: match find_init() {
            Ok(init) => init,
            Err(error) => panic!("{error}"),
        },
        runtimes: dir.join("runtimes"),
        criu: CriuChoice::Never("not used".into()),
        gateway: gateway_settings(|_| {}),
        ports: PortSettings::default(),
        server: None,
    }
}

/// Variable that switches the fast way of connections off: `off`.
const NETWORK_FAST: &str = "HEARTH_TEST_NETWORK_FAST";

/// What a gateway is started with.
pub fn gateway_settings(change: impl FnOnce(&mut hearth_gateway::Settings)) -> Vec<u8> {
    let mut settings = hearth_gateway::Settings {
        fast: std::env::var_os(NETWORK_FAST).is_none_or(|value| value != "off"),
        ..hearth_gateway::Settings::default()
    };
    change(&mut settings);
    settings.to_bytes()
}

/// Waits until something is so; fails with its description.
pub async fn until(what: &str, condition: impl Fn() -> bool) {
    wait::until(what, TIMEOUT, condition).await;
}

/// Host pids of the processes of a user, zombies included.
pub fn processes_of(uid: u32) -> Vec<u32> {
    let all = processes::all().into_iter();
    let own = all.filter(|process| process.uid == uid);
    own.map(|process| process.pid).collect()
}

/// Host pid of a user's process from its pid inside.
pub fn host_pid(uid: u32, inner: i64) -> Option<u32> {
    let all = processes::all();
    all.iter()
        .find(|process| process.uid == uid && i64::from(process.number_inside()) == inner)
        .map(|process| process.pid)
}

/// Names in a directory.
pub fn names(dir: &Path) -> Vec<String> {
    fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect()
}

/// Directories in any cgroup hierarchy with such a name.
pub fn cgroups_named(wanted: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    cgroups::directories(|path| {
        let name = path.file_name();
        name.is_some_and(|name| wanted(&name.to_string_lossy()))
    })
}
