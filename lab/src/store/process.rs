//! The store as a process: one that a run starts for itself, or one that is there already.
//!
//! ```text
//! run                                    store, in a namespace without interfaces
//!  ── token ──────────────────────────▶
//!  ◀── apart ──────────────────────────
//!     makes the pair of interfaces
//!  ── address ────────────────────────▶  sets its end up, listens
//!  ◀── listening ──────────────────────
//!     closes stdin ───────────────────▶  ends
//! ```

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{
    AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader,
};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::timeout;

use super::access::{Access, AddressError};
use super::link::{Link, NETWORK};
use super::{BUCKET, PORT};

/// Longest time for each step of a start, and for the end.
const STEP_WITHIN: Duration = Duration::from_secs(15);

/// Longest line that either says.
pub(super) const LINE_MAX: u64 = 256;

/// As much of what a process says of its failure is told.
const SAID_MAX: u64 = 1_024;

pub(super) const APART: &str = "apart";
pub(super) const LISTENING: &str = "listening";

/// How to start the process.
#[derive(Debug, Clone)]
pub struct Program {
    /// The program.
    pub program: PathBuf,
    /// Its arguments, with which it calls [`super::attached::serve`].
    pub arguments: Vec<OsString>,
}

/// Where a store is.
#[derive(Debug, Clone)]
pub enum Source {
    /// The run starts one.
    Own(Program),
    /// It is there.
    At(Access),
}

/// Why there is no store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The address is not one of a store.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The process does not start, or its pipes fail.
    #[error("the store: {0}")]
    Io(#[from] io::Error),
    /// It has ended.
    #[error(
        "the store gets no network namespace of its own, which takes root: {0}. hearth lab store on another host, and --store, do without"
    )]
    Ended(String),
    /// It says nothing.
    #[error("the store has said nothing for {0:?}")]
    Silent(Duration),
}

/// A store that may be used.
#[derive(Debug)]
pub struct Running {
    access: Access,
    own: Option<Own>,
    /// Objects in a store that stays.
    left: Mutex<Vec<String>>,
}

#[derive(Debug)]
struct Own {
    child: Child,
    /// Its end ends the store.
    input: ChildStdin,
    link: Link,
}

impl Running {
    /// Starts the run's own, or takes the one that is there. When it is dropped, its process is killed.
    ///
    /// # Errors
    /// As [`StoreError`] has them.
    pub async fn start(source: &Source) -> Result<Self, StoreError> {
        let program = match source {
            Source::At(access) => {
                return Ok(Self {
                    access: access.clone(),
                    own: None,
                    left: Mutex::default(),
                });
            }
            Source::Own(program) => program,
        };
        let mut child = Command::new("unshare")
            .args(["--net", "--"])
            .arg(&program.program)
            .args(&program.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A Ctrl-C at the terminal is for the one that cleans up.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => {
                    io::Error::other("the program unshare of util-linux is missing")
                }
                _ => error,
            })?;
        let token = format!("{:032x}{:032x}", random()?, random()?);
        match lead(&mut child, &token).await {
            Ok((input, link)) => {
                let authority = format!("{}:{PORT}", link.inside());
                let own = Own { child, input, link };
                Ok(Self {
                    access: Access::own(authority, token, NETWORK),
                    own: Some(own),
                    left: Mutex::default(),
                })
            }
            Err(StoreError::Ended(_)) => Err(StoreError::Ended(last_words(&mut child).await)),
            Err(error) => Err(error),
        }
    }

    /// What functions need.
    pub fn access(&self) -> &Access {
        &self.access
    }

    /// Notes that a function, alone or as the first of a chain of so many, stores objects under its name.
    pub fn note(&self, name: &str, functions: usize) {
        self.left().extend(self.access.removals(name, functions));
    }

    /// Ends the run's own with all that is stored; removes its objects from one that stays, as far as it is known which they are.
    ///
    /// # Errors
    /// What is left, with the reason.
    pub async fn stop(self) -> Result<(), String> {
        let left = std::mem::take(&mut *self.left());
        for (done, path) in left.iter().enumerate() {
            let removed = timeout(STEP_WITHIN, remove(&self.access.authority, path)).await;
            let removed = removed.map_err(|_| "no answer".to_owned()).flatten();
            removed.map_err(|reason| {
                format!("{} objects in the store ({reason})", left.len() - done)
            })?;
        }
        let Some(own) = self.own else {
            return Ok(());
        };
        let Own {
            mut child,
            input,
            link,
        } = own;
        drop(input);
        if timeout(STEP_WITHIN, child.wait()).await.is_err() {
            let _ = child.kill().await;
        }
        link.remove().await;
        Ok(())
    }

    fn left(&self) -> MutexGuard<'_, Vec<String>> {
        // Nothing panics while it is held.
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes an object by the path that is signed for it.
async fn remove(authority: &str, path: &str) -> Result<(), String> {
    let fail = |error: io::Error| error.to_string();
    let mut stream = TcpStream::connect(authority).await.map_err(fail)?;
    // Without the default port, as it was signed.
    let host = authority.strip_suffix(":80").unwrap_or(authority);
    let request = format!("DELETE {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.map_err(fail)?;
    let mut output = BufReader::new(stream);
    let status = line(&mut output).await.map_err(fail)?;
    match status.split(' ').nth(1) {
        // One that was never put is removed, too.
        Some("200" | "204" | "404") => Ok(()),
        _ => Err(status),
    }
}

/// Leads a process to where it listens.
async fn lead(child: &mut Child, token: &str) -> Result<(ChildStdin, Link), StoreError> {
    let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(StoreError::Ended(String::new()));
    };
    let mut output = BufReader::new(output);
    // A process that has ended takes nothing, and says nothing.
    let _ = input.write_all(format!("{token}\n").as_bytes()).await;
    expect(&mut output, APART).await?;
    let process = child.id().ok_or_else(|| StoreError::Ended(String::new()))?;
    let link = Link::make(process).await?;
    let address = format!("{}\n", link.inside());
    let listening = async {
        input.write_all(address.as_bytes()).await?;
        expect(&mut output, LISTENING).await
    };
    match listening.await {
        Ok(()) => Ok((input, link)),
        Err(error) => {
            link.remove().await;
            Err(error)
        }
    }
}

async fn expect(output: &mut (impl AsyncBufRead + Unpin), word: &str) -> Result<(), StoreError> {
    let line = timeout(STEP_WITHIN, line(output)).await;
    let line = line.map_err(|_| StoreError::Silent(STEP_WITHIN))??;
    match line == word {
        true => Ok(()),
        false => Err(StoreError::Ended(line)),
    }
}

/// A line without its end; empty at the end of the input.
async fn line(input: &mut (impl AsyncBufRead + Unpin)) -> io::Result<String> {
    let mut line = String::new();
    input.take(LINE_MAX).read_line(&mut line).await?;
    Ok(line.trim_end().to_owned())
}

/// What a process that has failed says of it.
async fn last_words(child: &mut Child) -> String {
    let mut said = Vec::new();
    if let Some(errors) = child.stderr.take() {
        let mut errors = errors.take(SAID_MAX);
        let _ = timeout(STEP_WITHIN, errors.read_to_end(&mut said)).await;
    }
    String::from_utf8_lossy(&said).trim().to_owned()
}

/// 128 bits that nobody can guess.
///
/// # Errors
/// The kernel has none.
pub fn random() -> io::Result<u128> {
    let mut bytes = [0; 16];
    let read = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    match read == bytes.len() {
        true => Ok(u128::from_ne_bytes(bytes)),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// The address of the only bucket of a store at this address.
pub fn bucket(address: &str) -> String {
    format!("http://{address}/{BUCKET}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_program_that_is_no_store_is_told_by_what_it_says() {
        let program = |script: &str| {
            Source::Own(Program {
                program: "/bin/sh".into(),
                arguments: vec!["-c".into(), script.into()],
            })
        };
        let error = Running::start(&program("echo no >&2; exit 1")).await;
        let error = error.expect_err("it is no store");
        assert!(matches!(&error, StoreError::Ended(_)), "{error}");
    }
}
