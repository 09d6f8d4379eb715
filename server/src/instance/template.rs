//! A template: an interpreter in its sandbox with the function imported, which serves nothing and only forks.
//!
//! The server speaks with it over a SEQPACKET socket. What it sends is bounded and parsed like any other hostile input:
//! user code ran in that process.

use std::collections::HashMap;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use serde::Deserialize;
use tokio::io::Interest;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::FunctionKey;
use super::fork::StartError;
use super::kit::Kit;
use super::logs::LogTap;
use super::spare::Spares;
use crate::history::History;
use crate::host_error::{HostError, is_shortage, is_shortage_code};
use crate::model::{FunctionError, LogLine, StartRung};
use crate::sandbox::{Dumpable, Host, MemoryUse, Sandbox, SandboxError, SandboxSpec};
use crate::watched::Watched;

/// Longest message a template may send: a traceback of 100 frames fits well.
const MAX_MESSAGE: usize = 256 * 1024;
/// Time an import may take before the deploy is refused: long enough for large scientific packages, short enough that a
/// client is still there to read the answer.
pub const IMPORT_DEADLINE: Duration = Duration::from_secs(20);
/// Forks in a row that a template may refuse for want of memory or processes and be believed that it is the host's want.
/// Then it is replaced: its own memory may be what is full.
const REFUSALS_MAX: u32 = 32;
/// How long to wait for the word on how a process ended once its socket has closed.
pub(super) const EXIT_NEWS_DEADLINE: Duration = Duration::from_millis(250);

/// Why a template did not come up.
#[derive(Debug, thiserror::Error)]
pub enum BootError {
    /// The host could not give what it takes. Nothing is wrong with the function.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The image could not be restored.
    #[error(transparent)]
    Restore(SandboxError),
    /// The function's code did not import.
    #[error("{}: {}", error.error_type, error.error_message)]
    Import {
        /// The exception.
        error: FunctionError,
        /// What the import printed.
        logs: Vec<LogLine>,
    },
}

impl From<SandboxError> for BootError {
    /// Everything in a sandbox is the host's to give, but for what is in an image.
    fn from(error: SandboxError) -> Self {
        if error.is_of_restore() {
            Self::Restore(error)
        } else {
            Self::Host(HostError::new(error))
        }
    }
}

impl From<std::io::Error> for BootError {
    /// The server's own side failed.
    fn from(error: std::io::Error) -> Self {
        Self::Host(HostError::new(format_args!(
            "cannot speak with the template: {error}"
        )))
    }
}

/// How an instance's process ended, as its template saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitStatus {
    /// It exited with this status.
    Code(i32),
    /// It was killed by this signal.
    Signal(i32),
}

impl std::fmt::Display for ExitStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code(code) => write!(f, "it exited with status {code}"),
            Self::Signal(signal) => match signal_name(*signal) {
                Some(name) => write!(f, "it was killed by signal {signal} ({name})"),
                None => write!(f, "it was killed by signal {signal}"),
            },
        }
    }
}

fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        31 => "SIGSYS",
        _ => return None,
    })
}

/// What the template is told before it imports.
#[derive(Debug, Clone, serde::Serialize)]
#[serde(tag = "type", rename = "config")]
pub struct TemplateConfig {
    /// `module.function`.
    pub handler: String,
    /// The function's name.
    pub function: String,
    /// Its version.
    pub version: u32,
    /// MiB.
    pub memory_mb: u32,
    /// For how long an instance looks for its next request before it sleeps. Stands in each channel's header, not in
    /// this message.
    #[serde(skip)]
    pub busy_poll: Duration,
}

/// All of the message.
#[derive(serde::Serialize)]
struct Configuration<'a> {
    #[serde(flatten)]
    config: &'a TemplateConfig,
    /// Whether it is booted for an image to be made of it.
    image: bool,
}

/// What a template says.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Message {
    Booted {
        runtime: String,
        import_ms: f64,
    },
    ImportError {
        error: FunctionError,
    },
    ForkFailed {
        seq: u64,
        message: String,
        errno: Option<i32>,
    },
    Exited {
        pid: u32,
        code: Option<i32>,
        signal: Option<i32>,
    },
}

fn failure(error_type: &str, error_message: String) -> FunctionError {
    FunctionError {
        error_type: error_type.into(),
        error_message,
        stack_trace: Vec::new(),
    }
}

/// A live template.
pub struct Template {
    control: Watched,
    /// The sandbox it lives in; taken when it is shut down.
    pub(super) sandbox: Sandbox,
    sequence: AtomicU64,
    /// Forks that it refused since the last that worked, for want of what the host has to give.
    refusals: AtomicU32,
    waiting: Mutex<Waiting>,
    watched: AtomicBool,
    /// Prepared for the next start.
    pub(super) kit: Mutex<Option<Kit>>,
    pub(super) spares: Spares,
    retired: CancellationToken,
    busy_poll: Duration,
    /// The runtime's version, "3.11.2".
    pub runtime: String,
    /// How it came up: by a boot or a restore.
    pub rung: StartRung,
}

/// Who waits for what the template will say. An entry's absence means that nobody cares any more.
#[derive(Default)]
struct Waiting {
    forks: HashMap<u64, oneshot::Sender<StartError>>,
    exits: HashMap<u32, oneshot::Sender<ExitStatus>>,
    /// Exits that were reported before anybody asked, by pid; bounded.
    early: HashMap<u32, ExitStatus>,
}

/// Exits kept for watchers that have not asked yet.
const MAX_EARLY_EXITS: usize = 1024;

impl Template {
    /// Makes the sandbox, boots the runtime in it and waits for the import. Returns what the import printed, too.
    ///
    /// # Errors
    /// [`BootError::Import`] carries the traceback and what was printed.
    pub async fn boot(
        host: &Host,
        spec: SandboxSpec,
        config: &TemplateConfig,
        function: FunctionKey,
        history: &History,
    ) -> Result<(Arc<Self>, Vec<LogLine>), BootError> {
        let image = spec.dumpable;
        let mut sandbox = host.create(spec).await?;
        let (control, logs) = connect(&mut sandbox, &function, history)?;
        let configuration = Configuration { config, image };
        let text = serde_json::to_vec(&configuration).map_err(std::io::Error::other)?;
        logs.begin(None);
        // An interpreter that has ended already (its own variables can make it) takes no configuration: that is a failed
        // import like any other.
        let heard = match send(&control, &text, &[]).await {
            Ok(()) => tokio::time::timeout(IMPORT_DEADLINE, next_message(&control)).await,
            Err(error) => Ok(Err(error)),
        };
        let lines = logs.finish();
        let error = match heard {
            Ok(Ok(Message::Booted { runtime, import_ms })) => {
                tracing::debug!(
                    function = config.function,
                    version = config.version,
                    import_ms,
                    "template is up"
                );
                let busy_poll = config.busy_poll;
                let template = Self::up(control, sandbox, busy_poll, runtime, StartRung::Boot);
                template.prepare(&function, history, Duration::ZERO);
                return Ok((template, lines));
            }
            Ok(Ok(Message::ImportError { error })) => error,
            Ok(Ok(_)) => failure(
                "Runtime.ProtocolError",
                "the runtime answered out of turn".into(),
            ),
            Ok(Err(io)) if is_shortage(&io) => {
                sandbox.destroy().await;
                return Err(io.into());
            }
            Ok(Err(io)) => {
                let how = tokio::time::timeout(EXIT_NEWS_DEADLINE, sandbox.exited())
                    .await
                    .unwrap_or(io.to_string());
                if sandbox.template_oom_killed() {
                    let limit = config.memory_mb;
                    failure(
                        "Runtime.OutOfMemory",
                        format!("the import used more than {limit} MiB of memory ({how})"),
                    )
                } else {
                    failure(
                        "Runtime.ExitError",
                        format!("the process ended while it imported the function: {how}"),
                    )
                }
            }
            Err(_) => failure(
                "Runtime.ImportTimeout",
                format!(
                    "the import did not finish within {} s",
                    IMPORT_DEADLINE.as_secs()
                ),
            ),
        };
        sandbox.destroy().await;
        Err(BootError::Import { error, logs: lines })
    }

    /// Makes the sandbox and has CRIU restore the template into it from `spec.restore`: it goes on where it was dumped,
    /// waiting for a command. `runtime` is what it said of itself when it was booted.
    ///
    /// # Errors
    /// [`SandboxError`] with CRIU's last error lines.
    pub async fn restore(
        host: &Host,
        spec: SandboxSpec,
        busy_poll: Duration,
        runtime: &str,
        function: &FunctionKey,
        history: &History,
    ) -> Result<Arc<Self>, BootError> {
        // The restore is asked for first, and what its first instance needs is made meanwhile.
        let (sandbox, kit) = tokio::join!(host.create(spec), async {
            Kit::new(busy_poll, function, history)
        });
        let mut sandbox = sandbox?;
        let (control, _logs) = connect(&mut sandbox, function, history)?;
        let uid = sandbox.worker_uid();
        let template = Self::up(
            control,
            sandbox,
            busy_poll,
            runtime.to_owned(),
            StartRung::Restore,
        );
        // Should it have failed, the first start will say why.
        *template.kit.lock() = kit.ok().filter(|kit| kit.give(uid).is_ok());
        template.prepare(function, history, Duration::ZERO);
        Ok(template)
    }

    fn up(
        control: Watched,
        sandbox: Sandbox,
        busy_poll: Duration,
        runtime: String,
        rung: StartRung,
    ) -> Arc<Self> {
        Arc::new(Self {
            control,
            sandbox,
            sequence: AtomicU64::new(1),
            refusals: AtomicU32::new(0),
            waiting: Mutex::default(),
            watched: AtomicBool::new(false),
            kit: Mutex::default(),
            spares: Spares::default(),
            retired: CancellationToken::new(),
            busy_poll,
            runtime,
            rung,
        })
    }

    /// What CRIU needs to dump it.
    pub fn dumpable(&self) -> &Dumpable {
        self.sandbox.dumpable()
    }

    /// It is wanted no longer: it ends when its last instance has.
    pub fn retire(&self) {
        self.end_spares();
        self.retired.cancel();
    }

    /// Waits for [`Self::retire`].
    pub async fn retired(&self) {
        self.retired.cancelled().await;
    }

    /// True for the first caller, who is to run [`Self::listen`].
    pub fn claim_watch(&self) -> bool {
        !self.watched.swap(true, Ordering::AcqRel)
    }

    /// Listens to the template until its socket closes. One task per template runs this.
    pub async fn listen(&self) {
        while let Ok(message) = next_message(&self.control).await {
            let mut waiting = self.waiting.lock();
            match message {
                Message::ForkFailed {
                    seq,
                    message,
                    errno,
                } => {
                    if let Some(sender) = waiting.forks.remove(&seq) {
                        let scarce = errno.is_some_and(is_shortage_code)
                            && self.refusals.fetch_add(1, Ordering::Relaxed) < REFUSALS_MAX;
                        // Whoever waited may have given up.
                        let _ = sender.send(if scarce {
                            StartError::Host(HostError::new(message))
                        } else {
                            StartError::Fork(message)
                        });
                    }
                }
                Message::Exited { pid, code, signal } => {
                    let status = match signal {
                        Some(signal) => ExitStatus::Signal(signal),
                        None => ExitStatus::Code(code.unwrap_or(-1)),
                    };
                    match waiting.exits.remove(&pid) {
                        Some(sender) => drop(sender.send(status)),
                        None => {
                            // Spares end without anybody asking.
                            if waiting.early.len() >= MAX_EARLY_EXITS {
                                waiting.early.clear();
                            }
                            let _ = waiting.early.insert(pid, status);
                        }
                    }
                }
                Message::Booted { .. } | Message::ImportError { .. } => {}
            }
        }
    }

    /// A kit for one instance.
    pub(super) fn new_kit(
        &self,
        function: &FunctionKey,
        history: &History,
    ) -> Result<Kit, StartError> {
        let kit = Kit::new(self.busy_poll, function, history)?;
        kit.give(self.sandbox.worker_uid())?;
        Ok(kit)
    }

    /// Commands a fork that takes over `fds`; the answer is READY on the fork's own socket, or a message here.
    pub(super) async fn fork(
        &self,
        fds: &[BorrowedFd<'_>],
    ) -> std::io::Result<(u64, oneshot::Receiver<StartError>)> {
        let sequence = self.sequence.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        {
            let mut waiting = self.waiting.lock();
            // Of spares that were given up.
            waiting.forks.retain(|_, sender| !sender.is_closed());
            waiting.forks.insert(sequence, sender);
        }
        let mut command = [0_u8; 9];
        command[0] = b'F';
        command[1..].copy_from_slice(&sequence.to_le_bytes());
        if let Err(error) = send(&self.control, &command, fds).await {
            self.waiting.lock().forks.remove(&sequence);
            return Err(error);
        }
        Ok((sequence, receiver))
    }

    /// A fork worked.
    pub(super) fn has_forked(&self) {
        self.refusals.store(0, Ordering::Relaxed);
    }

    /// The fork with this number answered or is given up.
    pub(super) fn forget_fork(&self, sequence: u64) {
        self.waiting.lock().forks.remove(&sequence);
    }

    /// What the template will say of the end of the child that it knows as `pid`.
    pub(super) fn exit_of(&self, pid: u32) -> oneshot::Receiver<ExitStatus> {
        let (sender, receiver) = oneshot::channel();
        let mut waiting = self.waiting.lock();
        match waiting.early.remove(&pid) {
            Some(status) => drop(sender.send(status)),
            None => drop(waiting.exits.insert(pid, sender)),
        }
        receiver
    }

    /// What it and its instances use; `None` when the sandbox is gone. Reads files.
    pub fn memory(&self) -> Option<MemoryUse> {
        self.sandbox.memory()
    }

    /// Memory mappings of its largest process, counted up to `most`. Reads files.
    pub fn mappings(&self, most: usize) -> usize {
        self.sandbox.mappings(most)
    }

    /// Waits until the sandbox is gone and says how it ended.
    pub async fn exited(&self) -> String {
        self.sandbox.exited().await
    }
}

/// Takes the server's ends of what the template has. The log is read as long as the pipes are open, whoever holds it.
fn connect(
    sandbox: &mut Sandbox,
    function: &FunctionKey,
    history: &History,
) -> std::io::Result<(Watched, LogTap)> {
    let missing = || std::io::Error::other("the sandbox has no control socket");
    let control = sandbox.control.take().ok_or_else(missing)?;
    let stdout = sandbox.stdout.take().ok_or_else(missing)?;
    let stderr = sandbox.stderr.take().ok_or_else(missing)?;
    let logs = LogTap::start(function.clone(), history.clone(), stdout, stderr)?;
    let control = Watched::new(control, Interest::READABLE)?;
    Ok((control, logs))
}

/// Sends one datagram with descriptors, waiting for room.
async fn send(socket: &Watched, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> std::io::Result<()> {
    let try_send = |socket: BorrowedFd<'_>| -> std::io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() {
            ancillary.push(SendAncillaryMessage::ScmRights(fds));
        }
        rustix::net::sendmsg(
            socket,
            &[IoSlice::new(bytes)],
            &mut ancillary,
            SendFlags::NOSIGNAL | SendFlags::DONTWAIT,
        )?;
        Ok(())
    };
    match try_send(socket.as_fd()) {
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
            // Watched for room only now: otherwise each message that the template takes would wake the server, in the
            // middle of a start.
            let room = Watched::new(socket.as_fd().try_clone_to_owned()?, Interest::WRITABLE)?;
            room.io(Interest::WRITABLE, try_send).await
        }
        sent => sent,
    }
}

/// Receives and parses one datagram. Descriptors are never accepted: no buffer for them is offered.
async fn next_message(socket: &Watched) -> std::io::Result<Message> {
    let mut buffer = vec![0_u8; MAX_MESSAGE];
    let length = socket
        .io(Interest::READABLE, |socket| {
            let (length, _) = rustix::net::recv(socket, &mut buffer[..], RecvFlags::DONTWAIT)?;
            Ok(length)
        })
        .await?;
    if length == 0 {
        return Err(std::io::Error::new(
            std::io::ErrorKind::UnexpectedEof,
            "it closed its control socket",
        ));
    }
    serde_json::from_slice(&buffer[..length]).map_err(|error| {
        std::io::Error::other(format!("it sent a message that makes no sense: {error}"))
    })
}
