//! What the bootstrap prints: read from its pipes and written to this process's own stdout and stderr, which are other pipes
//! once this is an instance.

use std::io::{self, PipeReader, Read as _};
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

/// Most that is taken of one stream before an answer is sent: a child that prints without end must not hold it up.
const BEFORE_AN_ANSWER: usize = 1 << 20;
/// What is read at a time.
const PIECE: usize = 16 * 1024;

/// The reading ends, until the child and all that it started have closed them.
#[derive(Debug)]
pub(crate) struct Output {
    stdout: Option<PipeReader>,
    stderr: Option<PipeReader>,
}

impl Output {
    /// Takes the reading ends.
    pub(crate) fn new(stdout: PipeReader, stderr: PipeReader) -> io::Result<Self> {
        for pipe in [&stdout, &stderr] {
            fcntl_setfl(pipe, fcntl_getfl(pipe)? | OFlags::NONBLOCK)?;
        }
        Ok(Self {
            stdout: Some(stdout),
            stderr: Some(stderr),
        })
    }

    /// The reading ends that are open, once more.
    pub(crate) fn watched(&self) -> io::Result<Vec<PipeReader>> {
        let open = self.stdout.iter().chain(&self.stderr);
        open.map(PipeReader::try_clone).collect()
    }

    /// Passes on what was printed by now. Blocks while the server takes no more.
    pub(crate) fn pass_on(&mut self) {
        pass_on(&mut self.stdout, io::stdout().lock());
        pass_on(&mut self.stderr, io::stderr().lock());
    }
}

fn pass_on(pipe: &mut Option<PipeReader>, mut to: impl io::Write) {
    let mut piece = [0; PIECE];
    let mut passed = 0;
    while passed < BEFORE_AN_ANSWER
        && let Some(open) = pipe
    {
        match open.read(&mut piece) {
            Ok(0) => *pipe = None,
            Ok(count) => {
                passed += count;
                // A server that is gone takes nothing.
                let _ = to.write_all(&piece[..count]);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(_) => *pipe = None,
        }
    }
    // Not a whole line perhaps.
    let _ = to.flush();
}

/// Waits until one of these has something to read, or is over.
pub(crate) fn wait(pipes: &[PipeReader], process: impl AsFd) -> io::Result<()> {
    let pipes = pipes.iter().map(|pipe| PollFd::new(pipe, PollFlags::IN));
    let mut all: Vec<_> = pipes.collect();
    all.push(PollFd::new(&process, PollFlags::IN));
    match rustix::event::poll(&mut all, None) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}
