//! Lines that a handler prints belong to the request that the board names when the server reads them. So a request waits until what
//! was printed before it has been read.
//!
//! To ask the kernel takes two system calls, a good part of a hop. An instance asks as soon as it has passed a request on, when nobody waits
//! for it; only if something was left then does the next request ask again. What a thread of the function's prints between two requests
//! may so count as the second one's.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::fs::{FileType, fstat};
use rustix::io::ioctl_fionread;

/// Longest wait for the server to read, and interval between looks.
const READ: Duration = Duration::from_millis(5);
const LOOK: Duration = Duration::from_micros(50);

/// The pipes of an instance's log.
#[derive(Debug)]
pub(super) struct Logs {
    pipes: Vec<OwnedFd>,
    /// Whether all had been read when the last request was over.
    are_read: bool,
}

impl Logs {
    /// What this process's stdout and stderr are now; a function may put something else in their place later.
    pub(super) fn of_this_process() -> Self {
        let streams = [rustix::stdio::stdout(), rustix::stdio::stderr()];
        let pipes = streams.into_iter().filter(|stream| {
            fstat(stream).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo)
        });
        let pipes = pipes.filter_map(|stream| stream.try_clone_to_owned().ok());
        Self {
            pipes: pipes.collect(),
            are_read: false,
        }
    }

    /// Looks whether all has been read, if that is not known. Between two requests.
    pub(super) fn look(&mut self) {
        self.are_read = self.are_read || self.are_empty();
    }

    /// A request begins: gives the server a moment to read what there is, and the handler may print.
    pub(super) fn begin(&mut self) {
        if std::mem::take(&mut self.are_read) {
            return;
        }
        let until = Instant::now() + READ;
        while !self.are_empty() && Instant::now() < until {
            std::thread::sleep(LOOK);
        }
    }

    fn are_empty(&self) -> bool {
        let is_empty = |pipe: &OwnedFd| ioctl_fionread(pipe).is_ok_and(|left| left == 0);
        self.pipes.iter().all(is_empty)
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use rustix::pipe::pipe;

    use super::*;

    #[test]
    fn what_was_printed_is_asked_about_until_it_has_been_read() {
        let (reader, writer) = pipe().expect("a pipe");
        let print = |text: &str| {
            rustix::io::write(&writer, text.as_bytes()).expect("room");
        };
        let mut logs = Logs {
            pipes: vec![writer.try_clone().expect("a descriptor")],
            are_read: false,
        };
        logs.look();
        assert!(logs.are_read);
        logs.begin();
        assert!(!logs.are_read, "the handler may print");
        print("a line\n");
        logs.look();
        assert!(!logs.are_read);
        rustix::io::read(&reader, &mut [0; 16]).expect("the line");
        logs.begin();
        logs.look();
        assert!(logs.are_read);
    }
}
