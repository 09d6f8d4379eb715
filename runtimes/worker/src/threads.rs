//! Threads that an import left running. A fork has only the thread that forked, so waiting for any other thread there
//! blocks forever. A template with other threads is therefore not forked unless the user says so.
//!
//! Some libraries handle forks themselves, and their threads do not count:
//! - Those that end their threads when a fork comes and start them again when they are needed (`pthread_atfork`;
//!   OpenBLAS, and so numpy). There is no way to query this. So a fork is made whose child exits immediately, and the
//!   threads left afterwards are counted. This also benefits the template: its forks copy no thread stacks.
//! - jemalloc, whose background threads are known by name and are started again in each child.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use crate::sys;

/// Names of threads that are there again in a child.
const RENEWED: [&str; 1] = ["jemalloc_bg_thd"];
/// How long a thread may take to be gone that ends already: one that was joined is listed for a moment longer.
const ENDING: Duration = Duration::from_millis(20);
/// How often it is looked.
const LOOK_AGAIN: Duration = Duration::from_millis(1);
/// Most names that are reported: the rest is only counted.
const NAMES_MAX: usize = 8;

/// Threads that a fork would not have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Threads {
    /// How many.
    pub count: usize,
    /// What the first few are called by the kernel, each once.
    pub names: Vec<String>,
}

/// How many threads this process has, without those that are there again in a child. To be called before anything of the
/// function's runs: the sum is the interpreter's own.
#[must_use]
pub fn count() -> usize {
    names().len()
}

/// The threads that the import has left running and that a fork would miss. `own` is the number of the interpreter's own.
#[must_use]
pub fn left_running(own: usize) -> Threads {
    if settled(own) > own {
        sys::fork_in_vain();
        settled(own);
    }
    let all = names();
    // Which of the oldest are the interpreter's own, the kernel's order says: it lists by age.
    let mut left: Vec<String> = all.into_iter().skip(own).collect();
    let count = left.len();
    let mut seen = Vec::new();
    left.retain(|name| {
        let new = !seen.contains(name) && seen.len() < NAMES_MAX;
        if new {
            seen.push(name.clone());
        }
        new
    });
    Threads { count, names: left }
}

/// How many threads there are once what is about to end has ended.
fn settled(own: usize) -> usize {
    let until = Instant::now() + ENDING;
    loop {
        let count = count();
        if count <= own || Instant::now() >= until {
            return count;
        }
        thread::sleep(LOOK_AGAIN);
    }
}

/// The names of all threads but the [`RENEWED`].
fn names() -> Vec<String> {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten();
    tasks
        .flatten()
        // One that has ended meanwhile has no name any more.
        .filter_map(|task| fs::read_to_string(task.path().join("comm")).ok())
        .map(|name| name.trim_end().to_owned())
        .filter(|name| !RENEWED.contains(&name.as_str()))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// The test's own process has any number of threads: what is counted is what comes on top.
    #[test]
    fn a_thread_counts_until_it_has_ended() {
        let (end, ended) = mpsc::channel::<()>();
        let named = thread::Builder::new().name("left-behind".into());
        let running = named
            .spawn(move || {
                let _ = ended.recv();
            })
            .expect("a thread starts");
        // The name is set by the thread itself.
        while !names().contains(&"left-behind".to_owned()) {
            thread::yield_now();
        }
        let left = left_running(1);
        assert!(left.count >= 1);
        drop(end);
        running.join().expect("it ends");
        let until = Instant::now() + Duration::from_secs(10);
        while names().contains(&"left-behind".to_owned()) {
            assert!(Instant::now() < until, "a joined thread is still listed");
            thread::yield_now();
        }
    }

    #[test]
    fn what_is_there_again_in_a_child_is_not_counted() {
        let (end, ended) = mpsc::channel::<()>();
        let (begin, begun) = mpsc::channel::<()>();
        let named = thread::Builder::new().name(RENEWED[0].into());
        let running = named
            .spawn(move || {
                begin.send(()).expect("the test waits");
                let _ = ended.recv();
            })
            .expect("a thread starts");
        // The thread has its name before it runs what it was given.
        begun.recv().expect("the thread runs");
        let tasks = std::fs::read_dir("/proc/self/task").expect("the process's threads");
        let mut comms = tasks
            .flatten()
            .filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
        assert!(
            comms.any(|comm| comm.trim_end() == RENEWED[0]),
            "the thread is there"
        );
        assert!(!names().iter().any(|name| RENEWED.contains(&name.as_str())));
        drop(end);
        running.join().expect("it ends");
    }
}
