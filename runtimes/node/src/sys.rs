//! The calls that no safe wrapper offers: fork under libuv's eyes, its clock, advice about memory, leaving for good.

use std::ffi::c_int;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use hearth_worker::sys::Forked;
use napi::Env;
use rustix::process::Pid;

/// Where a template, and a spare, finds its control socket: after stdin, stdout and stderr.
const CONTROL_FD: RawFd = 3;

/// libuv's `uv_loop_t`, which is never looked into.
#[repr(C)]
struct UvLoop([u8; 0]);

// Node exports libuv to its addons.
unsafe extern "C" {
    fn uv_loop_fork(event_loop: *mut UvLoop) -> c_int;
    fn uv_loop_alive(event_loop: *const UvLoop) -> c_int;
    fn uv_update_time(event_loop: *mut UvLoop);
}

fn event_loop(env: &Env) -> napi::Result<*mut UvLoop> {
    Ok(env.get_uv_event_loop()?.cast())
}

/// Forks. `in_child` runs first in the child; then the event loop gets descriptors of its own, because the kernel shares
/// an epoll set and its wake-ups between parent and children.
///
/// # Errors
/// There is no memory or no process number left.
pub fn fork<T>(env: &Env, in_child: impl FnOnce() -> T) -> napi::Result<io::Result<Forked<T>>> {
    let event_loop = event_loop(env)?;
    // SAFETY: this is the main thread, inside a call from JavaScript, and the only one that runs JavaScript or touches
    // the event loop. Threads of libuv's pool may exist; they are idle, and libuv's and libc's own at-fork handlers
    // see to the locks they could hold.
    match unsafe { libc::fork() } {
        0 => {
            let value = in_child();
            // SAFETY: the loop is this environment's, and the child has one thread.
            let status = unsafe { uv_loop_fork(event_loop) };
            if status < 0 {
                return Ok(Err(io::Error::from_raw_os_error(-status)));
            }
            Ok(Ok(Forked::Child(value)))
        }
        pid => {
            let error = io::Error::last_os_error();
            Ok(Pid::from_raw(pid.max(0)).map(Forked::Parent).ok_or(error))
        }
    }
}

/// Brings the event loop's clock up to date: timers are set by it, and it stands still while a call blocks.
///
/// # Errors
/// The environment has no event loop.
pub fn update_time(env: &Env) -> napi::Result<()> {
    let event_loop = event_loop(env)?;
    // SAFETY: the loop is this environment's, and this is its thread.
    unsafe { uv_update_time(event_loop) };
    Ok(())
}

/// Whether anything is left that keeps the event loop going.
///
/// # Errors
/// The environment has no event loop.
pub fn loop_alive(env: &Env) -> napi::Result<bool> {
    let event_loop = event_loop(env)?;
    // SAFETY: the loop is this environment's, and this is its thread.
    Ok(unsafe { uv_loop_alive(event_loop) } != 0)
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

/// Has the kernel end this process after so many seconds.
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
