//! Starts the real server as its users start it.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::program::{Output, Program, START, after};
use crate::server::Server;

/// The admin token of every server, unless its settings say otherwise.
pub const TOKEN: &str = "hth_test_token_for_integration_tests";

/// Why a server does not run.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No throwaway data directory.
    #[error("a temporary directory: {0}")]
    Directory(#[source] io::Error),
    /// Its program cannot be run.
    #[error("{}: {source}", program.display())]
    Spawn {
        /// What was to be run.
        program: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It ended, or was not ready within a minute.
    #[error("the server did not start; it said:\n{printed}{logged}")]
    Silent {
        /// Its stdout.
        printed: String,
        /// Its stderr, if that was collected.
        logged: String,
    },
}

/// How to start a server: on a free port of 127.0.0.1, with an empty data directory that goes with it.
#[derive(Debug, Clone)]
pub struct Launch {
    program: PathBuf,
    /// A program and its arguments that become the server.
    through: Vec<OsString>,
    data_dir: Option<PathBuf>,
    settings: Vec<(String, String)>,
    collects_log: bool,
}

impl Launch {
    /// A launch of this executable, without a log.
    pub fn of(program: impl Into<PathBuf>) -> Self {
        let launch = Self {
            program: program.into(),
            through: Vec::new(),
            data_dir: None,
            settings: Vec::new(),
            collects_log: false,
        };
        launch.settings(&[
            ("HEARTH_LISTEN", "127.0.0.1:0"),
            ("HEARTH_ADMIN_TOKEN", TOKEN),
            ("HEARTH_LOG", "error"),
        ])
    }

    /// Sets environment variables; "" takes one away.
    #[must_use]
    pub fn settings(mut self, settings: &[(&str, &str)]) -> Self {
        for &(name, value) in settings {
            self.settings.retain(|(known, _)| known != name);
            self.settings.push((name.to_owned(), value.to_owned()));
        }
        self
    }

    /// In a data directory that outlives it.
    #[must_use]
    pub fn in_directory(mut self, data_dir: impl Into<PathBuf>) -> Self {
        self.data_dir = Some(data_dir.into());
        self
    }

    /// Launches it through a program that executes its last arguments, as `prlimit` does.
    #[must_use]
    pub fn through(mut self, words: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.through = words.into_iter().map(Into::into).collect();
        self
    }

    /// Collects what it logs, which otherwise goes where this process's stderr goes.
    #[must_use]
    pub fn collecting_its_log(mut self) -> Self {
        self.collects_log = true;
        self
    }

    /// The command line, for running it in other ways than [`start`](Self::start).
    pub fn command(&self, data_dir: &Path) -> Command {
        let mut words = self.through.iter();
        let mut command = match words.next() {
            Some(first) => {
                let mut command = Command::new(first);
                command.args(words).arg(&self.program);
                command
            }
            None => Command::new(&self.program),
        };
        command
            .env("HEARTH_DATA_DIR", data_dir)
            .stdin(Stdio::null());
        for (name, value) in &self.settings {
            match value.as_str() {
                "" => command.env_remove(name),
                value => command.env(name, value),
            };
        }
        command
    }

    /// Starts it and waits until it has announced itself.
    ///
    /// # Errors
    /// If it is not ready within a minute.
    pub fn start(self) -> Result<Server, StartError> {
        let Some(data_dir) = self.data_dir.clone() else {
            let owned = tempfile::Builder::new().prefix("hearth-test-").tempdir();
            let owned = owned.map_err(StartError::Directory)?;
            return self.start_in(owned.path().join("data"), Some(owned));
        };
        self.start_in(data_dir, None)
    }

    pub(crate) fn start_in(
        self,
        data_dir: PathBuf,
        owned: Option<TempDir>,
    ) -> Result<Server, StartError> {
        let mut command = self.command(&data_dir);
        if self.collects_log {
            command.stderr(Stdio::piped());
        }
        let started = Program::start_and_collect(&mut command);
        let (mut program, printed) = started.map_err(|source| StartError::Spawn {
            program: self.program.clone(),
            source,
        })?;
        let logged = program.collect_stderr();
        let text = |output: &Output| output.text();
        let announced = printed.wait_for(START, |said| {
            // The announcement's last line but one, or its last.
            after(said, "  token ")?;
            let url = after(said, "  console ")?;
            Some(url.trim_end_matches('/').to_owned())
        });
        let url = announced.ok_or_else(|| StartError::Silent {
            printed: printed.text(),
            logged: logged.as_ref().map(text).unwrap_or_default(),
        })?;
        Ok(Server {
            program,
            printed,
            logged,
            url,
            data_dir,
            owned,
            launch: self,
        })
    }
}
