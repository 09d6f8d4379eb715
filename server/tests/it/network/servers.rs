//! Servers that functions speak with as they do elsewhere: PostgreSQL and Redis, as Debian packages them, S3 by moto, HTTP over
//! TLS. In a world's outside, at public addresses, and gone with the test.

use std::fs;
use std::io;
use std::net::TcpStream;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use hearth_testkit::program::{END, Output, Program, START};
use hearth_testkit::wait::poll;
use rustix::process::Signal;
use tempfile::TempDir;

use super::world::{CACHE, DATABASE, SECURE, World};
use crate::support::signal;

/// Where set-up puts moto.
const MOTO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../.tools/moto");
/// Where Debian has one directory for each version of PostgreSQL.
const POSTGRESQL: &str = "/usr/lib/postgresql";
const PYTHON: &str = "/usr/bin/python3";
/// Whom PostgreSQL runs as, which refuses to be root.
const NOBODY: u32 = 65534;
/// How a function reaches the database.
pub const CONNECTION: &str = "postgresql://app:pass-word@db.example.com/postgres";
const PASSWORD: &str = "pass-word";
/// For which names there is a certificate.
const NAMES: &str = "subjectAltName=DNS:api.example.com,DNS:*.s3.eu-west-1.amazonaws.com";
/// Answers every request with one line.
const HTTPS: &str = "
import http.server, ssl, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header('content-length', '6')
        self.end_headers()
        self.wfile.write(b'secure')
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer((sys.argv[1], 443), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[2], sys.argv[3])
server.socket = context.wrap_socket(server.socket, server_side=True)
print('listens', flush=True)
server.serve_forever()
";

/// A PostgreSQL that runs.
pub struct Database {
    program: Program,
    _dir: TempDir,
}

impl Drop for Database {
    fn drop(&mut self) {
        // Killed, it would leave its shared memory behind.
        let _ = signal(self.program.pid(), Signal::INT);
        let _ = self.program.wait(END);
    }
}

impl Database {
    /// Starts it, with a user of its own.
    pub fn start(world: &World) -> Self {
        Self::started(world).expect("PostgreSQL; scripts/setup.sh test installs it")
    }

    fn started(world: &World) -> io::Result<Self> {
        let programs = newest(Path::new(POSTGRESQL))?.join("bin");
        let dir = tempfile::tempdir()?;
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o711))?;
        let (data, password) = (dir.path().join("data"), dir.path().join("password"));
        fs::create_dir(&data)?;
        fs::write(&password, PASSWORD)?;
        for path in [&data, &password] {
            chown(path, Some(NOBODY), Some(NOBODY))?;
        }
        let mut make = as_nobody(&programs.join("initdb"));
        make.arg("-D").arg(&data);
        make.arg(format!("--pwfile={}", password.display()));
        make.args([
            "-U",
            "app",
            "-A",
            "scram-sha-256",
            "-E",
            "UTF8",
            "--no-locale",
            "--no-sync",
        ]);
        let made = make.output()?;
        if !made.status.success() {
            return Err(io::Error::other(String::from_utf8_lossy(&made.stderr)));
        }
        let access = "host all all 0.0.0.0/0 scram-sha-256\n";
        fs::write(data.join("pg_hba.conf"), access)?;
        let mut run = as_nobody(&programs.join("postgres"));
        run.arg("-D").arg(&data);
        let listen = format!("listen_addresses={DATABASE}");
        let settings = [
            &listen,
            "unix_socket_directories=",
            "fsync=off",
            "shared_buffers=16MB",
            "jit=off",
        ];
        for setting in settings {
            run.args(["-c", setting]);
        }
        run.stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut program = world.outside.within(|| Program::start_with(&mut run))?;
        let log = program.collect_stderr();
        is_said(log.as_ref(), "ready to accept connections")?;
        world.name("db.example.com", &[DATABASE]);
        Ok(Self { program, _dir: dir })
    }
}

/// A Redis that runs.
pub struct Cache {
    _program: Program,
}

impl Cache {
    /// Starts it, without a disk.
    pub fn start(world: &World) -> Self {
        let mut run = Command::new("redis-server");
        run.args([
            "--bind",
            CACHE,
            "--save",
            "",
            "--appendonly",
            "no",
            "--protected-mode",
            "no",
        ]);
        let started = world
            .outside
            .within(|| Program::start_and_collect(&mut run));
        let (program, log) = started.expect("Redis; scripts/setup.sh test installs it");
        is_said(Some(&log), "Ready to accept connections").expect("Redis");
        world.name("cache.example.com", &[CACHE]);
        Self { _program: program }
    }

    /// Closes the connections of all clients.
    pub fn disconnect_all(world: &World) {
        use std::io::{Read as _, Write as _};
        let said = world.outside.within(|| {
            let mut stream = TcpStream::connect((CACHE, 6379))?;
            stream.set_read_timeout(Some(START))?;
            stream.write_all(b"CLIENT KILL TYPE normal SKIPME yes\r\nQUIT\r\n")?;
            let mut said = String::new();
            stream.read_to_string(&mut said).map(|_| said)
        });
        let said = said.expect("Redis answers");
        assert!(said.starts_with(':'), "{said}");
    }
}

/// Servers that speak TLS, and what to trust for it.
pub struct Secure {
    /// The certificate, which is its own authority.
    pub certificate: String,
    _program: Program,
    _dir: TempDir,
}

impl Secure {
    /// Serves HTTPS at `api.example.com`.
    pub fn web(world: &World) -> Self {
        Self::start(world, |certificate, key| {
            let mut run = Command::new(PYTHON);
            run.args(["-c", HTTPS, SECURE]).args([certificate, key]);
            run
        })
    }

    /// Serves S3, with one bucket's name.
    pub fn s3(world: &World) -> Self {
        world.name("photos.s3.eu-west-1.amazonaws.com", &[SECURE]);
        Self::start(world, |certificate, key| {
            let mut run = Command::new(PYTHON);
            run.env("PYTHONPATH", MOTO);
            run.args(["-m", "moto.server", "-H", SECURE, "-p", "443"]);
            run.arg("-c").arg(certificate).arg("-k").arg(key);
            run
        })
    }

    fn start(world: &World, command: impl Fn(&Path, &Path) -> Command) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let (certificate, key) = (dir.path().join("certificate"), dir.path().join("key"));
        let made = Command::new("openssl")
            .args([
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
                "-nodes",
            ])
            .args(["-days", "2", "-subj", "/CN=the test's", "-addext", NAMES])
            .args(["-addext", "keyUsage=critical,digitalSignature,keyCertSign"])
            .arg("-keyout")
            .arg(&key)
            .arg("-out")
            .arg(&certificate)
            .output()
            .expect("openssl");
        assert!(
            made.status.success(),
            "{}",
            String::from_utf8_lossy(&made.stderr)
        );
        let mut run = command(&certificate, &key);
        run.stdout(Stdio::null());
        let program = world.outside.within(|| Program::start(&mut run));
        let mut program = program.expect("a server");
        let listens = || match program.try_wait() {
            Ok(Some(status)) => {
                panic!("the server ended: {status}; scripts/setup.sh test fetches it")
            }
            _ => world
                .outside
                .within(|| TcpStream::connect((SECURE, 443)))
                .ok(),
        };
        poll(START, Duration::from_millis(50), listens).expect("the server listens");
        Self {
            certificate: fs::read_to_string(&certificate).expect("a certificate"),
            _program: program,
            _dir: dir,
        }
    }
}

/// The directory of the highest version.
fn newest(path: &Path) -> io::Result<PathBuf> {
    let versions = fs::read_dir(path)?.flatten();
    let number = |path: &Path| path.file_name()?.to_str()?.parse::<u32>().ok();
    let numbered = versions.filter_map(|entry| Some((number(&entry.path())?, entry.path())));
    let newest = numbered.max().map(|(_, path)| path);
    newest.ok_or_else(|| io::ErrorKind::NotFound.into())
}

fn as_nobody(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.uid(NOBODY).gid(NOBODY).current_dir("/");
    command
}

fn is_said(log: Option<&Output>, text: &str) -> io::Result<()> {
    let said = log.and_then(|log| log.wait_for(START, |all| all.contains(text).then_some(())));
    said.ok_or_else(|| io::Error::other(format!("it does not say {text:?}")))
}
