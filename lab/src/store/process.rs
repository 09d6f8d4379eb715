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
use std::io::{self, BufRead as _, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use hyper::Uri;
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader,
};
use tokio::net::TcpListener;
use tokio::process::{Child, ChildStdin, Command};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::link::{Link, NETWORK};
use super::{BUCKET, PORT, Store};

/// Longest time for each step of a start, and for the end.
const STEP_WITHIN: Duration = Duration::from_secs(15);

/// Longest line that either says.
const LINE_MAX: u64 = 256;

/// As much of what a process says of its failure is told.
const SAID_MAX: u64 = 1_024;

const APART: &str = "apart";
const LISTENING: &str = "listening";

/// How to start the process.
#[derive(Debug, Clone)]
pub struct Program {
    /// The program.
    pub program: PathBuf,
    /// Its arguments, with which it calls [`serve_attached`].
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

/// What functions need to use a store.
#[derive(Clone, PartialEq, Eq)]
pub struct Access {
    /// Host and port.
    pub authority: String,
    /// The token.
    pub token: String,
    /// What the administrator opens to functions, as `HEARTH_NETWORK_ALLOW_PRIVATE` takes it.
    pub network: String,
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without the token.
        f.debug_struct("Access")
            .field("authority", &self.authority)
            .finish_non_exhaustive()
    }
}

/// Why there is no store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The address is not one of a store.
    #[error("{0:?} is not an address of a store, such as http://192.0.2.7:9000")]
    Address(String),
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

impl Access {
    /// To a store at an address such as `http://192.0.2.7:9000`.
    ///
    /// # Errors
    /// An address that is none, or has a path.
    pub fn new(url: &str, token: &str) -> Result<Self, StoreError> {
        let bad = || StoreError::Address(url.to_owned());
        let uri: Uri = url.parse().map_err(|_| bad())?;
        let authority = uri.authority().ok_or_else(bad)?;
        let has_path = uri
            .path_and_query()
            .is_some_and(|path| path.as_str() != "/");
        if uri.scheme_str() != Some("http") || has_path || authority.as_str().contains('@') {
            return Err(bad());
        }
        let port = authority.port_u16().unwrap_or(80);
        Ok(Self {
            authority: format!("{}:{port}", authority.host()),
            token: token.to_owned(),
            network: authority.host().trim_matches(['[', ']']).to_owned(),
        })
    }

    /// The policy of a function that reaches the store and nothing else.
    pub fn policy(&self) -> serde_json::Value {
        serde_json::json!({ "allow": [format!("{}/tcp", self.authority)] })
    }
}

/// A store that may be used.
#[derive(Debug)]
pub struct Running {
    access: Access,
    own: Option<Own>,
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
                let access = Access {
                    authority: format!("{}:{PORT}", link.inside()),
                    token,
                    network: NETWORK.to_owned(),
                };
                let own = Own { child, input, link };
                Ok(Self {
                    access,
                    own: Some(own),
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

    /// Ends the run's own with all that is stored.
    pub async fn stop(self) {
        let Some(own) = self.own else {
            return;
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

/// The process itself: takes its token and its address from stdin, and serves until stdin is closed.
///
/// # Errors
/// The interface or the port cannot be had.
pub async fn serve_attached() -> io::Result<()> {
    let token = told()?;
    say(APART)?;
    let Ok(address) = told()?.parse::<Ipv4Addr>() else {
        // Who started it is gone.
        return Ok(());
    };
    Link::set_up(address).await?;
    let listener = TcpListener::bind(SocketAddr::from((address, PORT))).await?;
    say(LISTENING)?;
    let store = Arc::new(Store::new(std::env::temp_dir(), token));
    tokio::select! {
        () = store.serve(listener) => {}
        ended = spawn_blocking(told) => drop(ended),
    }
    Ok(())
}

/// A line from stdin; empty at its end. Nothing is read ahead that would be lost: stdin has one buffer.
fn told() -> io::Result<String> {
    let mut line = String::new();
    io::stdin().lock().take(LINE_MAX).read_line(&mut line)?;
    Ok(line.trim_end().to_owned())
}

fn say(word: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(format!("{word}\n").as_bytes())?;
    output.flush()
}

/// The address of the only bucket of a store at this address.
pub fn bucket(address: &str) -> String {
    format!("http://{address}/{BUCKET}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_reaches_the_store_and_nothing_else() {
        let access = Access::new("http://192.0.2.7:9000/", "secret").expect("a store");
        assert_eq!(
            access.policy().to_string(),
            r#"{"allow":["192.0.2.7:9000/tcp"]}"#
        );
        assert_eq!(access.network, "192.0.2.7");
        assert!(!format!("{access:?}").contains("secret"));
        let access = Access::new("http://[2001:db8::7]", "").expect("a store");
        assert_eq!(
            (access.authority.as_str(), access.network.as_str()),
            ("[2001:db8::7]:80", "2001:db8::7")
        );
        for bad in ["", "a:9000", "https://a/", "http://a/b", "http://u@a"] {
            assert!(
                matches!(Access::new(bad, ""), Err(StoreError::Address(_))),
                "{bad}"
            );
        }
    }

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
