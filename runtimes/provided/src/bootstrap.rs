//! The function's program: started, heard, and followed to its end.

use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

use rustix::process::{Pid, PidfdFlags, Signal, getpid, kill_process, pidfd_open};
use tokio::sync::Notify;

use crate::output::{self, Output};

/// Where the code is, in every sandbox.
const TASK_ROOT: &str = "/var/task";
/// The program's name, as on AWS Lambda.
const PROGRAM: &str = "bootstrap";
/// Where it finds the Runtime API.
const API_VARIABLE: &str = "AWS_LAMBDA_RUNTIME_API";
/// Added to a signal's number for the status of a process that could not die of it, as shells do.
const SIGNAL_STATUS: i32 = 128;

/// The child process. A thread passes its output on, and ends this process when it ends while nothing is asked of it.
#[derive(Debug)]
pub(crate) struct Bootstrap {
    /// Told once it has ended.
    over: Arc<Notify>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    child: Child,
    output: Output,
    /// Whether whoever waits for an answer of the child takes care of its end.
    is_busy: bool,
}

impl Bootstrap {
    /// Starts it, busy with its initialisation. It has this process's environment, and the address of the API.
    ///
    /// # Errors
    /// The kernel refused, as it does a file that is no program.
    pub(crate) fn start(api: &str) -> io::Result<Self> {
        let (stdout, its_stdout) = io::pipe()?;
        let (stderr, its_stderr) = io::pipe()?;
        let child = Command::new(format!("{TASK_ROOT}/{PROGRAM}"))
            .current_dir(TASK_ROOT)
            .env(API_VARIABLE, api)
            .stdin(Stdio::null())
            .stdout(its_stdout)
            .stderr(its_stderr)
            .spawn()?;
        let pidfd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?;
        let state = Arc::new(Mutex::new(State {
            child,
            output: Output::new(stdout, stderr)?,
            is_busy: true,
        }));
        let over = Arc::new(Notify::new());
        let (shared, tells) = (state.clone(), over.clone());
        thread::Builder::new()
            .name("output".to_owned())
            .spawn(move || {
                follow(&shared, &pidfd);
                tells.notify_one();
            })?;
        Ok(Self { over, state })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.state().child.id()
    }

    /// From now on the caller takes care of its end, until [`Self::rest`]. If it has ended, so does this process.
    pub(crate) fn work(&self) {
        let mut state = self.state();
        state.is_busy = true;
        leave_if_ended(&mut state);
    }

    /// Nothing is asked of it any more: its end is this process's.
    pub(crate) fn rest(&self) {
        let mut state = self.state();
        state.is_busy = false;
        state.output.pass_on();
        leave_if_ended(&mut state);
    }

    /// Passes on what it has printed by now.
    pub(crate) fn pass_on(&self) {
        self.state().output.pass_on();
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// The kernel refused.
    pub(crate) async fn ended(&self) -> io::Result<ExitStatus> {
        loop {
            if let Some(status) = self.status()? {
                return Ok(status);
            }
            self.over.notified().await;
        }
    }

    /// How it has ended, if it has, with all that it had printed passed on.
    fn status(&self) -> io::Result<Option<ExitStatus>> {
        let mut state = self.state();
        let status = state.child.try_wait()?;
        if status.is_some() {
            state.output.pass_on();
        }
        Ok(status)
    }
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(|broken| broken.into_inner())
}

/// Passes output on as it comes, until the process has ended.
fn follow(state: &Mutex<State>, pidfd: &OwnedFd) {
    loop {
        let pipes = locked(state).output.watched();
        let waited = pipes.and_then(|pipes| output::wait(&pipes, pidfd));
        let mut state = locked(state);
        state.output.pass_on();
        match (waited, state.child.try_wait()) {
            (Ok(()), Ok(None)) => {}
            (_, Ok(Some(status))) => {
                if !state.is_busy {
                    leave(status);
                }
                return;
            }
            (Err(error), Ok(None)) | (_, Err(error)) => {
                let _ = writeln!(io::stderr(), "hearth: cannot follow the bootstrap: {error}");
                std::process::exit(1);
            }
        }
    }
}

fn leave_if_ended(state: &mut State) {
    if let Ok(Some(status)) = state.child.try_wait() {
        state.output.pass_on();
        leave(status);
    }
}

/// Ends this process as the bootstrap ended, so that the server says of the instance what is true of the function.
pub(crate) fn leave(status: ExitStatus) -> ! {
    let _ = io::stdout().flush();
    if let Some(signal) = status.signal().and_then(Signal::from_named_raw) {
        // Twice: the standard library's handler of a few signals only takes itself away at the first.
        for _ in 0..2 {
            let _ = kill_process(getpid(), signal);
        }
    }
    let code = status.code();
    std::process::exit(code.unwrap_or_else(|| SIGNAL_STATUS + status.signal().unwrap_or_default()))
}

/// "exited with status 3", "was killed by signal 9".
pub(crate) fn in_words(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exited with status {code}"),
        (None, Some(signal)) => format!("was killed by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}
