//! A real server for one test.

mod client;
mod processes;
mod proxy;
mod raw;
mod stream;
mod visitor;
mod zips;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub use client::{Answer, Client, deploy_form};
use processes::serve_pid;
pub use processes::{Process, descendants, is_alive, mentioning};
pub use proxy::Proxy;
pub use raw::{exchange, half_a_request};
pub use stream::Lines;
use tempfile::TempDir;
pub use visitor::{Browser, encoded, hidden, settings_form};
pub use zips::{Entry, archive, handmade};

/// The admin token of every test server.
pub const TOKEN: &str = "hth_test_token_for_integration_tests";

/// How long a server may take to start before a test fails: generous, it asserts nothing.
const START: Duration = Duration::from_secs(60);

/// Stands for a descriptor limit among a server's settings.
const OPEN_FILES: &str = "prlimit --nofile";

/// How long a killed server's sandboxes may take to end before its directory is removed all the same.
const GONE: Duration = Duration::from_secs(10);

/// A running server. Dropping it kills it.
pub struct Server {
    process: Child,
    /// What it printed so far.
    printed: Arc<Mutex<String>>,
    /// `http://127.0.0.1:PORT`
    pub url: String,
    data_dir: PathBuf,
    /// Kept while the server uses it; `None` when the test owns the directory.
    _owned: Option<TempDir>,
    env: Vec<(String, String)>,
}

impl Server {
    /// Starts a server on a free port with an empty data directory.
    pub fn start() -> Self {
        let dir = tempfile::Builder::new()
            .prefix("hearth-test-")
            .tempdir()
            .expect("a temporary directory");
        let path = dir.path().join("data");
        Self::launch(path, Some(dir), Vec::new())
    }

    /// Starts a server with further settings.
    pub fn start_with(env: &[(&str, &str)]) -> Self {
        let dir = tempfile::Builder::new()
            .prefix("hearth-test-")
            .tempdir()
            .expect("a temporary directory");
        let path = dir.path().join("data");
        let env = env
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        Self::launch(path, Some(dir), env)
    }

    /// Starts a server that may open only so many descriptors, and cannot raise that.
    pub fn start_with_open_files(most: u32) -> Self {
        let most = most.to_string();
        Self::start_with(&[(OPEN_FILES, most.as_str())])
    }

    /// Starts a server with further settings in a directory that outlives it.
    pub fn start_in_with(dir: &Path, env: &[(&str, &str)]) -> Self {
        let env = env
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        Self::launch(dir.to_owned(), None, env)
    }

    /// Starts a server in a directory that outlives it.
    pub fn start_in(dir: &Path) -> Self {
        Self::launch(dir.to_owned(), None, Vec::new())
    }

    /// Starts a server that makes its admin token itself, in a directory that outlives it.
    pub fn start_with_generated_token(dir: &Path) -> Self {
        let env = vec![("HEARTH_ADMIN_TOKEN".into(), String::new())];
        Self::launch(dir.to_owned(), None, env)
    }

    fn launch(data_dir: PathBuf, owned: Option<TempDir>, env: Vec<(String, String)>) -> Self {
        let mut command = command(&data_dir);
        for (name, value) in &env {
            // An empty value takes the test's own setting away.
            match value.as_str() {
                "" => command.env_remove(name),
                // Not a variable of the server's: a limit that it is started with.
                most if name == OPEN_FILES => {
                    let mut limited = Command::new("prlimit");
                    limited
                        .arg(format!("--nofile={most}:{most}"))
                        .arg(command.get_program())
                        .envs(command.get_envs().filter_map(|(k, v)| Some((k, v?))))
                        .stdin(Stdio::null());
                    command = limited;
                    continue;
                }
                value => command.env(name, value),
            };
        }
        let mut process = command
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server's binary");
        let mut lines = BufReader::new(process.stdout.take().expect("its stdout"));
        let started = Instant::now();
        let mut seen = String::new();
        let url = loop {
            let mut line = String::new();
            let read = lines.read_line(&mut line).expect("its stdout is text");
            seen.push_str(&line);
            assert!(
                read > 0 && started.elapsed() < START,
                "the server did not start; it said:\n{seen}"
            );
            if let Some(rest) = line.trim().strip_prefix("console") {
                break rest.trim().trim_end_matches('/').to_owned();
            }
        };
        // Whatever else it prints must not fill the pipe.
        let printed = Arc::new(Mutex::new(seen));
        let rest = Arc::clone(&printed);
        std::thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                let mut printed = rest.lock().expect("no test panics with it");
                printed.push_str(&line);
                printed.push('\n');
            }
        });
        Self {
            process,
            printed,
            url,
            data_dir,
            _owned: owned,
            env,
        }
    }

    /// A client with the admin token.
    pub fn client(&self) -> Client {
        Client::new(&self.url, Some(TOKEN))
    }

    /// A client with this token, or none.
    pub fn client_with(&self, token: Option<&str>) -> Client {
        Client::new(&self.url, token)
    }

    /// The code it printed for the first set-up, once it has; none when it says that it is ready without one.
    pub async fn setup_code(&self) -> Option<String> {
        // The token's line is printed after it.
        eventually("what the server prints", START, || async {
            let printed = self.printed.lock().expect("no test panics with it");
            printed.contains("  token ").then(|| {
                let (_, rest) = printed.split_once("the code is ")?;
                rest.split_whitespace().next().map(str::to_owned)
            })
        })
        .await
    }

    /// Where its functions answer on a listener of their own, as it prints.
    pub async fn functions_url(&self) -> String {
        eventually("what the server prints", START, || async {
            let printed = self.printed.lock().expect("no test panics with it");
            let line = printed.lines().find(|line| line.ends_with("/fn/NAME"))?;
            let url = line.split_whitespace().last()?;
            Some(url.trim_end_matches("/fn/NAME").to_owned())
        })
        .await
    }

    /// Where its state is.
    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// How many packages and half-unpacked uploads its code directory holds.
    pub fn packages(&self) -> usize {
        std::fs::read_dir(self.data_dir.join("code"))
            .expect("the code directory")
            .count()
    }

    /// Process id of what was started: the host process.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Process id of the server itself, which the process that was started has started.
    pub fn serve_pid(&self) -> u32 {
        serve_pid(self.pid()).expect("the server runs")
    }

    /// A figure of its `/proc/PID/status`: `VmHWM`, the most memory it had so far, in KiB.
    pub fn status(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.serve_pid()));
        status
            .expect("the server runs")
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
            .and_then(|rest| rest.split_whitespace().next()?.parse().ok())
            .unwrap_or_else(|| panic!("no {name}"))
    }

    /// Kills it without warning and waits until it is gone.
    pub fn kill_9(&mut self) {
        self.process.kill().expect("the server runs");
        self.process.wait().expect("the server is a child");
    }

    /// Sends SIGTERM without waiting.
    pub fn terminate(&self) {
        let pid = rustix::process::Pid::from_raw(self.pid().cast_signed()).expect("a pid");
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("the server runs");
    }

    /// Its exit status, if it has ended.
    pub fn try_wait(&mut self) -> Option<std::process::ExitStatus> {
        self.process.try_wait().expect("the server is a child")
    }

    /// Waits for its end and returns its exit status.
    pub fn wait(&mut self) -> std::process::ExitStatus {
        self.process.wait().expect("the server is a child")
    }

    /// Starts it again on the same data.
    pub fn restart(mut self) -> Self {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let (dir, owned, env) = (self.data_dir.clone(), self._owned.take(), self.env.clone());
        Self::launch(dir, owned, env)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let mut family: Vec<_> = descendants(self.pid())
            .iter()
            .map(|process| process.pid)
            .collect();
        family.extend(serve_pid(self.pid()));
        let _ = self.process.kill();
        let _ = self.process.wait();
        // Its sandboxes, and whoever was writing an image, end right after it. What they still write would keep the
        // directory from being removed.
        let killed = Instant::now();
        while family.iter().any(|pid| is_alive(*pid)) && killed.elapsed() < GONE {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// The server's command line with test settings.
pub fn command(data_dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hearth"));
    command
        .env("HEARTH_LISTEN", "127.0.0.1:0")
        .env("HEARTH_DATA_DIR", data_dir)
        .env("HEARTH_ADMIN_TOKEN", TOKEN)
        // The tests keep the machine busier than a server should be.
        .env("HEARTH_RESTORE_TIMEOUT_MS", RESTORE_TIMEOUT_MS)
        .env(
            "HEARTH_LOG",
            std::env::var("HEARTH_TEST_LOG").unwrap_or_else(|_| "warn".into()),
        )
        .stdin(Stdio::null());
    command
}

/// For restores that a test waits for: they fall to a boot otherwise.
const RESTORE_TIMEOUT_MS: &str = "10000";

/// Counts the test that calls it as skipped: `make test` reads the file that `HEARTH_TEST_SKIPPED` names, a line each.
///
/// # Panics
/// Where nothing may be skipped (`HEARTH_TEST_COMPLETE`), as in CI.
pub fn skip(reason: &str) {
    use std::io::Write;
    assert!(
        std::env::var_os("HEARTH_TEST_COMPLETE").is_none(),
        "nothing may be skipped here: {reason}"
    );
    let Some(path) = std::env::var_os("HEARTH_TEST_SKIPPED") else {
        return;
    };
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let file = std::fs::File::options()
        .create(true)
        .append(true)
        .open(path);
    writeln!(file.expect("the list of skipped tests"), "{test}\t{reason}").expect("written");
}

/// Polls until `probe` answers, up to `limit`: for what the server does in its own time.
pub async fn eventually<T, F: Future<Output = Option<T>>>(
    what: &str,
    limit: Duration,
    mut probe: impl FnMut() -> F,
) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = probe().await {
            return found;
        }
        assert!(started.elapsed() < limit, "{what}: not within {limit:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
