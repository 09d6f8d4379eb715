//! Child processes that end when their value is dropped, and their output.

use std::io::{self, BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};

/// How long a program may take to say what is waited for: Python frameworks import for a second or more, and the tests
/// keep the machine busy.
pub const START: Duration = Duration::from_secs(60);

/// How long a program may take to end after it was asked to: beyond what a server drains for.
pub const END: Duration = Duration::from_secs(120);

/// A process that is killed when this is dropped.
#[derive(Debug)]
pub struct Program {
    process: Child,
}

impl Drop for Program {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Program {
    /// Starts it without input.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        Self::start_with(command.stdin(Stdio::null()))
    }

    /// Starts it with what `command` says of all three streams.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start_with(command: &mut Command) -> io::Result<Self> {
        let process = command.spawn()?;
        Ok(Self { process })
    }

    /// Starts it and collects what it prints to stdout.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start_and_collect(command: &mut Command) -> io::Result<(Self, Output)> {
        let mut program = Self::start(command.stdout(Stdio::piped()))?;
        let stdout = program.process.stdout.take().expect("piped");
        Ok((program, Output::collect(stdout)))
    }

    /// Starts it and waits for a line that begins or continues with `mark`; says what follows in that line.
    ///
    /// # Errors
    /// If it cannot be started, or ends or says nothing of the kind for a minute.
    pub fn start_and_hear(command: &mut Command, mark: &str) -> io::Result<(Self, String)> {
        let (program, printed) = Self::start_and_collect(command)?;
        let heard = printed.wait_for(START, |text| after(text, mark).map(str::to_owned));
        let heard = heard.ok_or_else(|| {
            io::Error::other(format!("it did not start; it said:\n{}", printed.text()))
        })?;
        Ok((program, heard))
    }

    /// What it prints to stderr, when its command has piped that. A test that fails shows it.
    pub fn collect_stderr(&mut self) -> Option<Output> {
        let stderr = self.process.stderr.take()?;
        Some(Output::read(stderr, true))
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Asks it to end, as a service manager does.
    ///
    /// # Errors
    /// If it has ended and somebody has waited for it.
    pub fn terminate(&self) -> io::Result<()> {
        Ok(crate::processes::signal(self.pid(), Signal::TERM)?)
    }

    /// Kills it without warning and waits until it is gone.
    pub fn kill(&mut self) {
        // It may have ended by itself, and been waited for.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Its exit status, if it has ended.
    ///
    /// # Errors
    /// What `waitpid` says.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.process.try_wait()
    }

    /// Waits for its end, up to `limit`. Blocks the thread.
    ///
    /// # Errors
    /// `TimedOut` after the limit.
    pub fn wait(&mut self, limit: Duration) -> io::Result<ExitStatus> {
        wait(&mut self.process, limit)
    }
}

/// Waits for a child's end, up to `limit`. Blocks the thread.
///
/// # Errors
/// `TimedOut` after the limit.
pub fn wait(child: &mut Child, limit: Duration) -> io::Result<ExitStatus> {
    // One that has been waited for has no pid to open.
    if let Some(status) = child.try_wait()? {
        return Ok(status);
    }
    let pidfd = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
    let limit = Timespec::try_from(limit).map_err(io::Error::other)?;
    poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&limit))?;
    child
        .try_wait()?
        .ok_or_else(|| io::Error::new(io::ErrorKind::TimedOut, "it does not end"))
}

/// What follows `mark` in the first line that has it.
pub fn after<'a>(text: &'a str, mark: &str) -> Option<&'a str> {
    let found = text.lines().find_map(|line| line.split_once(mark));
    found.map(|(_, rest)| rest.trim())
}

/// What a program has printed to one of its streams. A thread reads it as it comes, so that the program never waits for
/// somebody to.
#[derive(Debug, Clone)]
pub struct Output(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    printed: Mutex<Printed>,
    more: Condvar,
}

#[derive(Debug, Default)]
struct Printed {
    /// Whole lines, unless the last one has no end.
    text: String,
    has_ended: bool,
}

impl Output {
    /// Reads a stream from here on.
    pub fn collect(stream: impl Read + Send + 'static) -> Self {
        Self::read(stream, false)
    }

    fn read(stream: impl Read + Send + 'static, shows: bool) -> Self {
        let output = Self(Arc::default());
        let shared = Arc::clone(&output.0);
        std::thread::spawn(move || shared.read(BufReader::new(stream), shows));
        output
    }

    /// All of it so far.
    pub fn text(&self) -> String {
        self.0.printed().text.clone()
    }

    /// Waits until `find` finds something in all of it; none when the stream ends without, or `limit` is over.
    pub fn wait_for<T>(&self, limit: Duration, find: impl Fn(&str) -> Option<T>) -> Option<T> {
        let until = Instant::now() + limit;
        let mut printed = self.0.printed();
        loop {
            if let Some(found) = find(&printed.text) {
                return Some(found);
            }
            let left = until.saturating_duration_since(Instant::now());
            if printed.has_ended || left.is_zero() {
                return None;
            }
            let woken = self.0.more.wait_timeout(printed, left);
            printed = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Shared {
    fn printed(&self) -> MutexGuard<'_, Printed> {
        // Whole between any two statements.
        self.printed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[allow(clippy::print_stderr, reason = "cargo test shows it with the test")]
    fn read(&self, mut stream: impl BufRead, shows: bool) {
        let mut line = Vec::new();
        while stream.read_until(b'\n', &mut line).unwrap_or(0) > 0 {
            let text = String::from_utf8_lossy(&line);
            if shows {
                eprint!("{text}");
            }
            self.printed().text.push_str(&text);
            self.more.notify_all();
            line.clear();
        }
        self.printed().has_ended = true;
        self.more.notify_all();
    }
}
