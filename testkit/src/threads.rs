//! What the threads of a process do.

use std::time::Duration;

use rustix::process::Signal;

use crate::figures;
use crate::processes::{Process, signal};
use crate::wait::poll;

const STOPPED_WITHIN: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(1);

/// Stops a process, and waits until each of its threads has stopped: one that runs goes on for a moment after the signal.
///
/// # Errors
/// What `kill` says: there may be no such process any more. Or it still runs after ten seconds.
pub fn stop(pid: u32) -> rustix::io::Result<()> {
    signal(pid, Signal::STOP)?;
    poll(STOPPED_WITHIN, LOOK, || {
        let all = threads(pid)?;
        all.iter().all(Process::is_stopped).then_some(())
    })
    .ok_or(rustix::io::Errno::TIMEDOUT)
}

/// Whether there was a moment at which all threads of a process slept: until then it had done all that it had been told,
/// except for what it waits for.
pub fn were_asleep(pid: u32) -> bool {
    // The looks at the threads are one after another. Which sleeps at both looks, and did not run in between, slept when the first
    // round ended and the second began: that is the moment.
    let (Some(before), Some(after)) = (threads(pid), threads(pid)) else {
        return false;
    };
    let did_not_run = |(before, after): (&Process, &Process)| {
        before.pid == after.pid
            && [before, after].iter().all(|thread| thread.is_asleep())
            && before.switches() == after.switches()
    };
    before.len() == after.len() && before.iter().zip(&after).all(did_not_run)
}

/// Each of a process's threads, by number. None when it is gone, or when a thread ends meanwhile.
fn threads(pid: u32) -> Option<Vec<Process>> {
    let mut numbers = figures::threads(pid).ok()?;
    numbers.sort_unstable();
    numbers.into_iter().map(Process::of).collect()
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn what_is_stopped_does_nothing_and_what_waits_sleeps() {
        let mut cat = Command::new("cat")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let (pid, limit) = (cat.id(), Duration::from_secs(10));
        let asleep = || were_asleep(pid).then_some(());
        poll(limit, LOOK, asleep).expect("it waits");
        stop(pid).expect("it runs");
        assert!(!were_asleep(pid), "it is stopped");
        let mut orders = cat.stdin.take().expect("a pipe");
        orders.write_all(b"a line\n").expect("room");
        assert!(!were_asleep(pid), "it is stopped");
        signal(pid, Signal::CONT).expect("it is there");
        let mut said = String::new();
        let answers = cat.stdout.take().expect("a pipe");
        BufReader::new(answers)
            .read_line(&mut said)
            .expect("a line");
        assert_eq!(said, "a line\n");
        poll(limit, LOOK, asleep).expect("it waits");
        drop(orders);
        cat.wait().expect("its end");
        assert!(!were_asleep(pid), "it is gone");
        assert!(stop(pid).is_err());
    }

    #[test]
    fn what_spins_does_not_sleep() {
        let mut spins = Command::new("sh")
            .args(["-c", "while :; do :; done"])
            .spawn()
            .expect("a process");
        let pid = spins.id();
        let spun = Duration::from_millis(50);
        let ran = poll(Duration::from_secs(10), LOOK, || {
            let time = figures::cpu_time(pid).ok()?;
            (time > spun).then_some(())
        });
        let were_asleep = were_asleep(pid);
        spins.kill().expect("it runs");
        spins.wait().expect("its end");
        ran.expect("it spins");
        assert!(!were_asleep);
    }
}
