//! A real server.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use tempfile::TempDir;

pub use crate::launch::{Launch, StartError, TOKEN};
use crate::processes::{descendants, gateways, is_alive, serving};
use crate::program::{END, Output, Program, after};
use crate::wait::{eventually, poll};

/// How long a killed server's sandboxes may take to end before its directory is removed all the same.
const GONE: Duration = Duration::from_secs(10);

/// Between two looks whether they have.
const LOOK: Duration = Duration::from_millis(5);

/// A running server: a host process with the server as its child. Dropping it kills both.
#[derive(Debug)]
pub struct Server {
    pub(crate) program: Program,
    pub(crate) printed: Output,
    pub(crate) logged: Option<Output>,
    /// `http://127.0.0.1:PORT`
    pub url: String,
    pub(crate) data_dir: PathBuf,
    /// Kept while the server uses it; `None` when somebody else owns the directory.
    pub(crate) owned: Option<TempDir>,
    pub(crate) launch: Launch,
}

impl Server {
    /// Where it listens.
    ///
    /// # Panics
    /// If what it announced is no address of this machine.
    pub fn address(&self) -> SocketAddr {
        let address = self.url.strip_prefix("http://").map(str::parse);
        address.expect("a URL").expect("an address")
    }

    /// The code it printed for the first set-up; none when there is a user.
    pub fn setup_code(&self) -> Option<String> {
        let printed = self.printed.text();
        let code = after(&printed, "the code is ")?;
        code.split_whitespace().next().map(str::to_owned)
    }

    /// Where its functions answer on a listener of their own.
    ///
    /// # Panics
    /// If it has none.
    pub fn functions_url(&self) -> String {
        let printed = self.printed.text();
        let line = printed
            .lines()
            .find_map(|line| line.strip_suffix("/fn/NAME"));
        let url = line.and_then(|line| line.split_whitespace().last());
        url.expect("HEARTH_FUNCTIONS_LISTEN").to_owned()
    }

    /// Waits until it has logged a text, and returns all that it has logged.
    ///
    /// # Panics
    /// If that takes longer than `limit`, or its log is not collected.
    pub async fn has_logged(&self, text: &str, limit: Duration) -> String {
        let logged = self.logged.as_ref().expect("a log that is collected");
        let what = format!("{text:?} in the log");
        eventually(&what, limit, || async {
            Some(logged.text()).filter(|all| all.contains(text))
        })
        .await
    }

    /// Where its state is.
    pub fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// Process id of what was started: the host process.
    pub fn pid(&self) -> u32 {
        self.program.pid()
    }

    /// Process id of the server itself, which the host process has started.
    ///
    /// # Panics
    /// If it has ended.
    pub fn serve_pid(&self) -> u32 {
        serving(self.pid()).expect("the server runs")
    }

    /// Process id of the gateway, which the host process has started.
    ///
    /// # Panics
    /// If it has ended.
    pub fn gateway_pid(&self) -> u32 {
        gateways(self.pid())[0]
    }

    /// Kills the host process without warning, which is the others' end, too, and waits until all are gone.
    pub fn kill_9(&mut self) {
        let gateways = gateways(self.pid()).into_iter();
        let others: Vec<u32> = gateways.chain(serving(self.pid())).collect();
        self.program.kill();
        let gone = || (!others.iter().any(|pid| is_alive(*pid))).then_some(());
        let _ = poll(GONE, LOOK, gone);
    }

    /// Asks it to drain and to end, as a service manager does.
    ///
    /// # Panics
    /// If it has ended.
    pub fn terminate(&self) {
        self.program.terminate().expect("the server runs");
    }

    /// Its exit status, if it has ended.
    pub fn try_wait(&mut self) -> Option<ExitStatus> {
        self.program.try_wait().expect("the server is a child")
    }

    /// Waits for its end and returns its exit status. Blocks the thread.
    ///
    /// # Panics
    /// If it does not end.
    pub fn wait(&mut self) -> ExitStatus {
        self.program.wait(END).expect("the server ends")
    }

    /// Waits for its end and returns its exit status.
    ///
    /// # Panics
    /// If it does not end within `limit`.
    pub async fn ended(&mut self, limit: Duration) -> ExitStatus {
        eventually("the server's end", limit, || {
            let status = self.try_wait();
            async move { status }
        })
        .await
    }

    /// Kills it and starts it again on the same data.
    ///
    /// # Errors
    /// If it is not ready within a minute.
    pub fn restart(mut self) -> Result<Self, StartError> {
        self.kill_9();
        let owned = self.owned.take();
        self.launch.clone().start_in(self.data_dir.clone(), owned)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let family = descendants(self.pid());
        self.program.kill();
        // The server, its sandboxes, and whoever was writing an image, end right after it. What they still write would keep the
        // directory from being removed.
        let gone = || {
            let all_gone = !family.iter().any(|process| is_alive(process.pid));
            all_gone.then_some(())
        };
        let _ = poll(GONE, LOOK, gone);
    }
}
