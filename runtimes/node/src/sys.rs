//! System calls without a safe wrapper: fork, memory advice, `_exit`.

use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use hearth_worker::sys::Forked;
use napi::Env;
use rustix::process::Pid;

use crate::eventloop;

/// Where a template, and a pre-forked instance, finds its control socket: after stdin, stdout and stderr.
const CONTROL_FD: RawFd = 3;

/// Forks. `in_child` runs first in the child; then its event loop is renewed.
///
/// # Errors
/// Inner: there is no memory or no process number left. Outer, in the child only: its event loop could not be renewed.
pub fn fork<T>(env: &Env, in_child: impl FnOnce() -> T) -> napi::Result<io::Result<Forked<T>>> {
    // SAFETY: this is the main thread, inside a call from JavaScript, and the only one that runs JavaScript or touches
    // the event loop. Threads of libuv's pool may exist; they are idle, and libuv's and libc's own at-fork handlers
    // see to the locks they could hold.
    match unsafe { libc::fork() } {
        0 => {
            let value = in_child();
            eventloop::renew(env)?;
            Ok(Ok(Forked::Child(value)))
        }
        pid => {
            let error = io::Error::last_os_error();
            Ok(Pid::from_raw(pid.max(0)).map(Forked::Parent).ok_or(error))
        }
    }
}

/// Lets children have a copy of this memory.
///
/// # Errors
/// It is no memory of this process, or of a device.
pub fn copy_on_fork(range: &Range<usize>) -> io::Result<()> {
    // SAFETY: the advice changes what a later fork does and nothing of this process' memory.
    let result = unsafe {
        libc::madvise(
            range.start as *mut libc::c_void,
            range.len(),
            libc::MADV_DOFORK,
        )
    };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Has the kernel end this process after this many seconds.
pub fn alarm(seconds: u32) {
    // SAFETY: alarm touches no memory; SIGALRM's default action ends the process.
    unsafe { libc::alarm(seconds) };
}

/// Ends the process without Node's own way out, which waits for threads that a fork does not have.
pub fn exit_now(status: i32) -> ! {
    // SAFETY: _exit runs nothing of this process.
    unsafe { libc::_exit(status) }
}

/// Makes `control` descriptor 3 of the program that `command` starts. It must stay open until then.
pub fn give_control(command: &mut Command, control: &OwnedFd) {
    let fd = control.as_raw_fd();
    // SAFETY: between fork and exec the closure calls nothing but dup2 and fcntl, which are async-signal-safe.
    unsafe {
        command.pre_exec(move || {
            // A descriptor that has the number already stays closed-on-exec under dup2.
            let result = if fd == CONTROL_FD {
                libc::fcntl(fd, libc::F_SETFD, 0)
            } else {
                libc::dup2(fd, CONTROL_FD)
            };
            if result < 0 {
                Err(io::Error::last_os_error())
            } else {
                Ok(())
            }
        });
    }
}
