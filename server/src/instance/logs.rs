//! An instance's output: two pipes, split into lines, each tagged with the invocation that wrote it.
//!
//! An instance serves one invocation at a time, so a line belongs to the invocation running when it is read; the
//! runtime flushes before it responds, and [`LogTap::finish`] drains the pipes before the next one begins.

mod sink;

use std::mem;
use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::io::Interest;

pub use self::sink::{LogSink, Logs};
use super::FunctionKey;
use super::signs::{Seen, Signs};
use crate::model::{InvocationId, LogEntry, LogLine, LogStream};
use crate::watched::Watched;

/// Bytes of log kept of one invocation, [`LINE_COST`] for each line included: protects memory and the database from a function that prints without end.
const MAX_LOG_BYTES: usize = 1024 * 1024;
/// What a line counts besides its text: a row in the database and two entries in its indexes. A function that prints empty
/// lines must not keep the database busy for seconds.
const LINE_COST: usize = 64;
/// Longest line; longer ones are cut into several.
const MAX_LINE_BYTES: usize = 16 * 1024;
/// Bytes read from a pipe at once; a pipe holds 64 KiB.
const READ_BYTES: usize = 16 * 1024;
/// Reads of one pipe before other tasks run: a function that prints without end refills its pipe as fast as
/// it is emptied.
const READS_AT_ONCE: usize = 8;
/// Pause between such rounds once the log has reached its limit and what is read is only thrown away: protects the
/// server's share of the CPUs.
const DISCARD_PAUSE: Duration = Duration::from_millis(1);
/// Maximum reads of one pipe in [`LogTap::finish`]: a child process that keeps writing must not delay the response.
const MAX_FINAL_READS: usize = 64;

/// The log of one instance, or of a template.
#[derive(Clone)]
pub struct LogTap {
    inner: Arc<Inner>,
}

/// Says which invocation an instance works on.
type Owner = dyn Fn() -> Option<InvocationId> + Send + Sync;

struct Inner {
    function: FunctionKey,
    logs: Logs,
    pipes: [Watched; 2],
    /// Signs of life of the pipes and of the process that writes into them.
    signs: Signs,
    /// Says whose the lines are, where [`LogTap::begin`] does not.
    owner: OnceLock<Box<Owner>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Whether [`LogTap::finish`] will be called for lines that arrive now.
    running: bool,
    /// The current or last owner, to which late lines belong. `None` during the import.
    owner: Option<InvocationId>,
    partial: [Vec<u8>; 2],
    lines: Vec<LogLine>,
    bytes: usize,
    closed: [bool; 2],
    /// Where pipes are read into: kept, because clearing them for each read would cost more than the read.
    buffers: [Vec<u8>; 2],
}

const STDOUT: usize = 0;
const STDERR: usize = 1;
const STREAMS: [LogStream; 2] = [LogStream::Stdout, LogStream::Stderr];

impl LogTap {
    /// Starts reading the two pipes (non-blocking read ends).
    ///
    /// # Errors
    /// When the pipes cannot be watched.
    pub fn start(
        function: FunctionKey,
        logs: Logs,
        stdout: OwnedFd,
        stderr: OwnedFd,
    ) -> std::io::Result<Self> {
        let signs = Signs::of(&stdout, &stderr)?;
        let watch = |fd| Watched::new(fd, Interest::READABLE);
        let inner = Arc::new(Inner {
            function,
            logs,
            pipes: [watch(stdout)?, watch(stderr)?],
            signs,
            owner: OnceLock::new(),
            state: Mutex::new(State::default()),
        });
        for index in 0..2 {
            let inner = inner.clone();
            tokio::spawn(async move { inner.follow(index).await });
        }
        Ok(Self { inner })
    }

    /// What can be polled of the pipes and, once added, of the process.
    pub(super) fn signs(&self) -> &Signs {
        &self.inner.signs
    }

    /// Lines from now on belong to `owner` (`None`: to the import), until [`Self::finish`].
    pub fn begin(&self, owner: Option<InvocationId>) {
        let mut state = self.inner.state.lock();
        state.owner = owner;
        state.running = true;
    }

    /// Lines belong from now on to what `owner` says when they are read, and to the owner before while it says nothing: for an
    /// instance that takes its requests from others than the server. Once in an instance's life.
    pub fn follow_owner(&self, owner: impl Fn() -> Option<InvocationId> + Send + Sync + 'static) {
        // The first stays.
        let _ = self.inner.owner.set(Box::new(owner));
    }

    /// Empties the pipes and takes the lines of the running invocation.
    pub fn finish(&self) -> Vec<LogLine> {
        let mut state = self.inner.state.lock();
        let Seen { written, .. } = self.inner.signs.look();
        for (index, written) in written.into_iter().enumerate() {
            for _ in 0..if written { MAX_FINAL_READS } else { 0 } {
                if !self.inner.read(index, &mut state) {
                    break;
                }
            }
            // Even when nothing is left to read: the line may have begun in what `follow` has read.
            self.inner.end_line(index, &mut state);
        }
        state.running = false;
        state.bytes = 0;
        mem::take(&mut state.lines)
    }
}

impl Inner {
    /// Reads one pipe until it is closed.
    async fn follow(&self, index: usize) {
        loop {
            let Ok(mut ready) = self.pipes[index].readable().await else {
                return;
            };
            let (drained, (invocation, lines)) = self.turn(index);
            if drained {
                ready.clear_ready();
            }
            if !lines.is_empty() {
                let entries = lines
                    .into_iter()
                    .map(|line| LogEntry { invocation, line })
                    .collect();
                self.logs.store(&self.function, entries).await;
            }
            let discarding = {
                let state = self.state.lock();
                if state.closed[index] {
                    return;
                }
                state.bytes > MAX_LOG_BYTES
            };
            if !drained && discarding {
                tokio::time::sleep(DISCARD_PAUSE).await;
            } else if !drained {
                tokio::task::yield_now().await;
            }
        }
    }

    /// Reads a bounded amount from one pipe. Returns whether it is empty, and the lines between invocations, for which
    /// [`LogTap::finish`] will not be called.
    fn turn(&self, index: usize) -> (bool, (Option<InvocationId>, Vec<LogLine>)) {
        let mut state = self.state.lock();
        if let Some(owner) = self.owner.get().and_then(|owner| owner())
            && state.owner != Some(owner)
        {
            state.owner = Some(owner);
            state.bytes = 0;
        }
        let drained = self.read_often(index, &mut state);
        let late = if state.running {
            (None, Vec::new())
        } else {
            (state.owner, mem::take(&mut state.lines))
        };
        (drained, late)
    }

    /// Reads until nothing is left, or as often as one turn allows. Whether nothing is left.
    fn read_often(&self, index: usize, state: &mut State) -> bool {
        (0..READS_AT_ONCE).any(|_| !self.read(index, state))
    }

    /// Reads once; false when there is nothing more to read now.
    ///
    /// Keeps output in order across both pipes: when stderr has been read, stdout already holds everything printed
    /// before it and is reported first.
    fn read(&self, index: usize, state: &mut State) -> bool {
        if state.closed[index] {
            return false;
        }
        let mut buffer = mem::take(&mut state.buffers[index]);
        buffer.resize(READ_BYTES, 0);
        let read = rustix::io::read(&self.pipes[index], &mut buffer[..]);
        if index == STDERR && read.is_ok() {
            self.read_often(STDOUT, state);
        }
        let more = self.digest(index, read, &buffer, state);
        state.buffers[index] = buffer;
        more
    }

    fn digest(
        &self,
        index: usize,
        read: rustix::io::Result<usize>,
        buffer: &[u8],
        state: &mut State,
    ) -> bool {
        match read {
            Ok(0) => {
                self.close(index, state);
                false
            }
            Ok(count) => {
                self.take(index, &buffer[..count], state);
                true
            }
            Err(rustix::io::Errno::INTR) => true,
            Err(rustix::io::Errno::AGAIN) => false,
            Err(_) => {
                self.close(index, state);
                false
            }
        }
    }

    fn close(&self, index: usize, state: &mut State) {
        state.closed[index] = true;
        self.end_line(index, state);
    }

    fn take(&self, index: usize, mut bytes: &[u8], state: &mut State) {
        while let Some(end) = bytes.iter().position(|&byte| byte == b'\n') {
            state.partial[index].extend_from_slice(&bytes[..end]);
            self.push_line(index, state);
            bytes = &bytes[end + 1..];
        }
        state.partial[index].extend_from_slice(bytes);
        while state.partial[index].len() > MAX_LINE_BYTES {
            let rest = state.partial[index].split_off(MAX_LINE_BYTES);
            self.push_line(index, state);
            state.partial[index] = rest;
        }
    }

    fn end_line(&self, index: usize, state: &mut State) {
        if !state.partial[index].is_empty() {
            self.push_line(index, state);
        }
    }

    fn push_line(&self, index: usize, state: &mut State) {
        let raw = mem::take(&mut state.partial[index]);
        if state.bytes > MAX_LOG_BYTES {
            return;
        }
        state.bytes += raw.len() + LINE_COST;
        let text = if state.bytes > MAX_LOG_BYTES {
            format!(
                "[the log of one invocation is limited to {MAX_LOG_BYTES} bytes, {LINE_COST} for each line included; the rest was dropped]"
            )
        } else {
            let raw = raw.strip_suffix(b"\r").unwrap_or(&raw);
            String::from_utf8_lossy(raw).into_owned()
        };
        let line = LogLine {
            time: Timestamp::now(),
            stream: STREAMS[index],
            text,
        };
        self.logs.publish(
            &self.function,
            LogEntry {
                invocation: state.owner,
                line: line.clone(),
            },
        );
        state.lines.push(line);
    }
}

#[cfg(test)]
mod tests {
    use rustix::pipe::{PipeFlags, pipe_with};

    use super::*;

    /// Nobody follows, and nothing is stored.
    struct Nowhere;

    impl LogSink for Nowhere {
        fn publish(&self, _: &FunctionKey, _: LogEntry) {}

        fn store<'a>(
            &'a self,
            _: &'a FunctionKey,
            _: Vec<LogEntry>,
        ) -> futures_util::future::BoxFuture<'a, ()> {
            Box::pin(async {})
        }
    }

    fn tap_of_pipes() -> (LogTap, OwnedFd, OwnedFd) {
        let (stdout, print) = pipe_with(PipeFlags::NONBLOCK).expect("a pipe");
        let (stderr, warn) = pipe_with(PipeFlags::NONBLOCK).expect("a pipe");
        let tap =
            LogTap::start(FunctionKey::new(1), Arc::new(Nowhere), stdout, stderr).expect("a tap");
        tap.begin(None);
        (tap, print, warn)
    }

    #[tokio::test]
    async fn what_was_printed_before_a_warning_stands_before_it() {
        let (tap, print, warn) = tap_of_pipes();
        rustix::io::write(&print, b"one\ntwo\nand a ha").expect("room");
        rustix::io::write(&warn, b"beware\n").expect("room");
        // Its task is the first that comes to look.
        assert!(tap.inner.turn(STDERR).0);
        rustix::io::write(&print, b"lf\n").expect("room");
        let lines = tap.finish();
        let lines: Vec<&str> = lines.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(lines, ["one", "two", "beware", "and a half"]);
    }

    #[tokio::test]
    async fn a_warning_that_comes_while_the_pipes_are_read_stands_after_what_was_printed() {
        let (tap, print, warn) = tap_of_pipes();
        let write = |pipe: &OwnedFd, line: String| {
            while rustix::io::write(pipe, line.as_bytes()) == Err(rustix::io::Errno::AGAIN) {
                std::thread::yield_now();
            }
        };
        let lines = std::thread::scope(|threads| {
            let printing = threads.spawn(|| {
                for number in 0..3_000 {
                    write(&print, format!("{number}\n"));
                    write(&warn, format!("{number}!\n"));
                }
            });
            while !printing.is_finished() {
                tap.inner.turn(STDERR);
            }
            tap.finish()
        });
        assert_eq!(lines.len(), 6_000);
        let mut printed = Vec::new();
        for line in &lines {
            match line.text.strip_suffix('!') {
                Some(number) => assert!(printed.contains(&number), "{number} was printed later"),
                None => printed.push(line.text.as_str()),
            }
        }
    }
}
