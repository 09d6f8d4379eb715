//! Waiting for a process that was told to stop.
//!
//! The signal is one for all threads, and each stops when it comes to run. The one that takes it first stops the others. Were
//! that one traced, which is asked what is to become of the signal, the others could run meanwhile: in memory that is not
//! filled yet.

use std::io;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions};

/// Between two looks at a process that is not a child.
const PAUSE: Duration = Duration::from_micros(200);

/// Waits until every thread of a process is stopped, or it has ended. Its parent has not been told of the stop before.
pub(super) fn wait_until(pid: Pid) -> io::Result<()> {
    let options = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    match rustix::io::retry_on_intr(|| rustix::process::waitid(WaitId::Pid(pid), options)) {
        Err(Errno::CHILD) => {}
        other => return Ok(other.map(drop)?),
    }
    while !is_still(pid)? {
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

/// Whether no thread of it will run.
fn is_still(pid: Pid) -> io::Result<bool> {
    for thread in std::fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero()))? {
        match std::fs::read(thread?.path().join("stat")) {
            Ok(stat) if is_still_in(&stat) => {}
            Ok(_) => return Ok(false),
            // It has ended since it was listed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// The same of one thread, by its `stat` file: its state follows the name, which is in parentheses and may hold any character.
/// Stopped, traced, a zombie, dead.
fn is_still_in(stat: &[u8]) -> bool {
    let name_end = stat.iter().rposition(|byte| *byte == b')');
    let state = name_end.and_then(|end| stat.get(end + 2));
    matches!(state, Some(b'T' | b't' | b'Z' | b'X'))
}

#[cfg(test)]
mod tests {
    use std::io::BufRead as _;
    use std::process::{Child, Command, Stdio};

    use rustix::process::{Signal, kill_process};

    use super::super::with_stopped;
    use super::*;

    const ROUNDS: usize = 200;

    /// Threads that wait, as those of an interpreter do, for a moment each time.
    const THREADS: &str = "
import threading, time
def wait():
    while True: time.sleep(0.0001)
for _ in range(8): threading.Thread(target=wait).start()
print('ready', flush=True)";

    fn threads() -> Child {
        let mut child = Command::new("python3")
            .args(["-c", THREADS])
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3");
        let mut line = String::new();
        let output = child.stdout.take().expect("its output");
        let read = std::io::BufReader::new(output).read_line(&mut line);
        assert!(read.is_ok() && line == "ready\n", "{line}");
        child
    }

    #[test]
    fn no_other_thread_runs_while_one_is_made_to() {
        let mut child = threads();
        let pid = Pid::from_child(&child);
        for round in 0..ROUNDS {
            kill_process(pid, Signal::STOP).expect("told to stop");
            with_stopped(pid, |process| {
                // A call that changes nothing.
                process
                    .traced
                    .call(&process.saved, libc::SYS_getpid, [0; 6])?;
                std::thread::sleep(PAUSE);
                assert!(is_still(pid)?, "round {round}");
                Ok(())
            })
            .expect("prepared");
            // A wait for the next stop is to find that one.
            let stopped = WaitIdOptions::STOPPED;
            rustix::process::waitid(WaitId::Pid(pid), stopped).expect("stopped");
            kill_process(pid, Signal::CONT).expect("told to go on");
        }
        child.kill().expect("killed");
        child.wait().expect("ended");
    }

    #[test]
    fn one_that_is_nobodys_child_here_is_waited_for_too() {
        let mut child = Command::new("sh")
            .args(["-c", "sleep 1000 & echo $!; wait"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh");
        let mut line = String::new();
        let output = child.stdout.take().expect("its output");
        std::io::BufReader::new(output)
            .read_line(&mut line)
            .expect("a number");
        let number = line.trim().parse().expect("a number");
        let pid = Pid::from_raw(number).expect("a process");
        assert!(!is_still(pid).expect("a look"));
        kill_process(pid, Signal::STOP).expect("told to stop");
        wait_until(pid).expect("stopped");
        assert!(is_still(pid).expect("a look"));
        kill_process(pid, Signal::KILL).expect("killed");
        assert!(child.wait().is_ok());
    }

    #[test]
    fn a_name_cannot_feign_a_state() {
        for (stat, is) in [
            (&b"12 (python3) S 7"[..], false),
            (b"12 (python3) T 7", true),
            (b"12 (x) t 1) R 7", false),
            (b"12 (x) R 1) t 7", true),
            (b"12 (python3)", false),
            (b"", false),
        ] {
            assert_eq!(is_still_in(stat), is, "{}", String::from_utf8_lossy(stat));
        }
    }
}
