//! A real server for one test.

mod client;
mod priority;
mod proxy;
mod raw;
mod stream;
mod visitor;
mod zips;

use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::process::Command;

pub use client::{Answer, Client, deploy_form};
pub use hearth_testkit::figures;
pub use hearth_testkit::processes::{
    Process, is_alive, kill, mentioning, sandboxed as descendants, serving, signal,
};
use hearth_testkit::server::Launch;
pub use hearth_testkit::server::TOKEN;
pub use hearth_testkit::skipped::skip;
pub use hearth_testkit::threads::{stop, were_asleep};
pub use hearth_testkit::wait::eventually;
pub use priority::{called_seldom, goes_first};
pub use proxy::Proxy;
pub use raw::{exchange, half_a_request};
pub use stream::Lines;
pub use visitor::{Browser, encoded, hidden, settings_form};
pub use zips::{Entry, archive, handmade};

/// For restores that a test waits for: they fall to a boot otherwise. The tests keep the machine busier than a server
/// should be.
const RESTORE_TIMEOUT_MS: &str = "10000";

/// A running server. Dropping it kills it.
pub struct Server(hearth_testkit::server::Server);

impl Deref for Server {
    type Target = hearth_testkit::server::Server;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Server {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl Server {
    /// Starts a server on a free port with an empty data directory.
    pub fn start() -> Self {
        Self::launch(launch())
    }

    /// Starts a server with further settings.
    pub fn start_with(settings: &[(&str, &str)]) -> Self {
        Self::launch(launch().settings(settings))
    }

    /// Starts a server with a hard limit of this many descriptors.
    pub fn start_with_open_files(most: u32) -> Self {
        let limit = format!("--nofile={most}:{most}");
        Self::launch(launch().through(["prlimit".to_owned(), limit]))
    }

    /// Starts a server by a program that executes what its last arguments name.
    pub fn start_through(words: &[&str]) -> Self {
        Self::launch(launch().through(words.iter().copied()))
    }

    /// Starts a server with further settings in a directory that outlives it.
    pub fn start_in_with(dir: &Path, settings: &[(&str, &str)]) -> Self {
        Self::launch(launch().in_directory(dir).settings(settings))
    }

    /// Starts a server in a directory that outlives it.
    pub fn start_in(dir: &Path) -> Self {
        Self::launch(launch().in_directory(dir))
    }

    /// Starts a server that makes its admin token itself, in a directory that outlives it.
    pub fn start_with_generated_token(dir: &Path) -> Self {
        Self::start_in_with(dir, &[("HEARTH_ADMIN_TOKEN", "")])
    }

    fn launch(launch: Launch) -> Self {
        Self(launch.start().unwrap_or_else(|error| panic!("{error}")))
    }

    /// A client with the admin token.
    pub fn client(&self) -> Client {
        Client::new(&self.url, Some(TOKEN))
    }

    /// A client with this token, or none.
    pub fn client_with(&self, token: Option<&str>) -> Client {
        Client::new(&self.url, token)
    }

    /// How many packages and half-unpacked uploads its code directory holds.
    pub fn packages(&self) -> usize {
        std::fs::read_dir(self.data_dir().join("code"))
            .expect("the code directory")
            .count()
    }

    /// Kills it and starts it again on the same data.
    pub fn restart(self) -> Self {
        Self(self.0.restart().unwrap_or_else(|error| panic!("{error}")))
    }
}

/// The server's command line with test settings.
pub fn command(data_dir: &Path) -> Command {
    launch().command(data_dir)
}

fn launch() -> Launch {
    let log = std::env::var("HEARTH_TEST_LOG").unwrap_or_else(|_| "info".into());
    Launch::of(env!("CARGO_BIN_EXE_hearth"))
        .collecting_its_log()
        .settings(&[
            ("HEARTH_RESTORE_TIMEOUT_MS", RESTORE_TIMEOUT_MS),
            ("HEARTH_LOG", &log),
        ])
}
