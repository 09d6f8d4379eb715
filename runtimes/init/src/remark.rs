//! Giving the mappings of a restored process the properties back that CRIU does not restore ([`marks`]), before the
//! process runs: with the same addresses, and empty where a forked child would find them empty.

use std::fs::File;
use std::io::{self, Read as _};

use rustix::fs::{Mode, OFlags};
use rustix::process::Pid;

use crate::imagefile::marks::{self, Mark};
use crate::inject::Stopped;

/// Longest file of marks, bytes: the most that an image may have take an eighth. Protects PID 1 from a corrupt file.
const FILE_MAX: u64 = 1 << 20;

/// The marks of an image's processes.
#[derive(Debug)]
pub struct Marks(Vec<(i32, Vec<Mark>)>);

impl Marks {
    /// Reads those that are in the directory `images`.
    pub fn read(images: &str) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let dir = rustix::fs::open(images, flags | OFlags::DIRECTORY, Mode::empty())?;
        let mut all = Vec::new();
        for entry in rustix::fs::Dir::read_from(&dir)? {
            let entry = entry?;
            if let Some(pid) = entry.file_name().to_str().ok().and_then(marks::pid) {
                let flags = flags | OFlags::NOFOLLOW;
                let file = rustix::fs::openat(&dir, entry.file_name(), flags, Mode::empty())?;
                let mut text = Vec::new();
                File::from(file).take(FILE_MAX).read_to_end(&mut text)?;
                all.push((pid, serde_json::from_slice(&text)?));
            }
        }
        Ok(Self(all))
    }

    /// Whether all of them belong to these processes.
    pub fn are_all_of(&self, processes: &[Pid]) -> bool {
        let is_there = |number: &i32| {
            processes
                .iter()
                .any(|pid| pid.as_raw_nonzero().get() == *number)
        };
        self.0.iter().all(|(number, _)| is_there(number))
    }

    /// Marks the mappings of a process. The kernel's answers are looked at one by one: a process that has one mapping
    /// unmarked must not run.
    pub fn put_back(&self, pid: Pid, process: &Stopped<'_>) -> io::Result<()> {
        let number = pid.as_raw_nonzero().get();
        let own = self.0.iter().filter(|(owner, _)| *owner == number);
        for mark in own.flat_map(|(_, marks)| marks) {
            put_back(mark, process).map_err(|error| {
                let (start, wiped) = (mark.range.start, mark.is_wiped());
                let kind = if wiped { "wiped in forks" } else { "marked" };
                io::Error::new(
                    error.kind(),
                    format!("memory at {start:x} that is {kind}: {error}"),
                )
            })?;
        }
        Ok(())
    }
}

fn put_back(mark: &Mark, process: &Stopped<'_>) -> io::Result<()> {
    if mark.droppable {
        process.make_droppable(&mark.range, mark.protection)?;
    }
    for number in (0..u64::BITS).filter(|number| mark.advice & 1 << number != 0) {
        process.advise(&mark.range, number)?;
    }
    if mark.sealed {
        process.seal(&mark.range)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use rustix::process::{Signal, kill_process};

    use super::*;
    use crate::{inject, smaps};

    /// A process that is stopped.
    struct Sleeper(Child);

    impl Sleeper {
        fn new() -> Self {
            let child = Command::new("sleep").arg("1000").spawn().unwrap();
            let sleeper = Self(child);
            kill_process(sleeper.pid(), Signal::STOP).unwrap();
            sleeper
        }

        fn pid(&self) -> Pid {
            Pid::from_child(&self.0)
        }

        fn put_back(&self, mark: Mark) -> io::Result<()> {
            let number = self.pid().as_raw_nonzero().get();
            let marks = Marks(vec![(number, vec![mark])]);
            assert!(marks.are_all_of(&[Pid::INIT, self.pid()]) && !marks.are_all_of(&[Pid::INIT]));
            inject::with_stopped(self.pid(), |process| marks.put_back(self.pid(), process))
        }

        /// A mapping that is not of the process's code.
        fn stack(&self) -> smaps::Listed {
            let listed = smaps::of_process(&self.0.id().to_string()).unwrap();
            let mut data = listed.into_iter().filter(|mapping| mapping.has("gd"));
            data.next().expect("a stack")
        }
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            self.0.kill().unwrap();
            self.0.wait().unwrap();
        }
    }

    fn wiped(range: std::ops::Range<u64>) -> Mark {
        Mark {
            range,
            protection: 3,
            droppable: false,
            advice: 1 << libc::MADV_WIPEONFORK | 1 << libc::MADV_DONTFORK,
            sealed: false,
        }
    }

    #[test]
    fn a_mapping_is_marked_in_a_process_that_does_not_run() {
        let sleeper = Sleeper::new();
        let range = sleeper.stack().range;
        sleeper.put_back(wiped(range)).unwrap();
        let stack = sleeper.stack();
        assert!(stack.has("wf") && stack.has("dc"), "{stack:?}");
    }

    #[test]
    fn a_mapping_that_cannot_be_marked_is_an_error_that_names_it() {
        let sleeper = Sleeper::new();
        let nothing = 0x10000..0x11000;
        let error = sleeper
            .put_back(wiped(nothing.clone()))
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("memory at 10000 that is wiped in forks"),
            "{error}"
        );
        let sealed = Mark {
            advice: 0,
            sealed: true,
            ..wiped(nothing)
        };
        let error = sleeper.put_back(sealed).unwrap_err().to_string();
        assert!(
            error.starts_with("memory at 10000 that is marked"),
            "{error}"
        );
    }
}
