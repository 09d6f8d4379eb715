//! Fork under the interpreter's eyes, its memory, and a way out without it.

use std::fmt::Display;
use std::io::Write as _;
use std::mem::MaybeUninit;
use std::{io, ptr, slice};

use hearth_worker::pages::prefer_large;
use hearth_worker::sys::{Forked, is_single_threaded};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rustix::process::Pid;

/// Forks as `os.fork` does. `in_child` runs in the child before Python's own at-fork handlers, so that they already see
/// the child's streams.
pub fn fork<T>(_py: Python<'_>, in_child: impl FnOnce() -> T) -> io::Result<Forked<T>> {
    // SAFETY: the interpreter is attached (`_py`), and every path below calls the matching AfterFork function. The child
    // has one thread, this one; PyOS_BeforeFork and libc's own handlers hold the locks that could be torn.
    unsafe {
        pyo3::ffi::PyOS_BeforeFork();
        match libc::fork() {
            0 => {
                let value = in_child();
                pyo3::ffi::PyOS_AfterFork_Child();
                Ok(Forked::Child(value))
            }
            pid => {
                let error = io::Error::last_os_error();
                pyo3::ffi::PyOS_AfterFork_Parent();
                Pid::from_raw(pid.max(0)).map(Forked::Parent).ok_or(error)
            }
        }
    }
}

/// Copies bytes into a Python `bytes` object, backed by large pages if it is large.
pub fn bytes<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    let len = isize::try_from(bytes.len())?;
    // SAFETY: the interpreter is attached (`py`). The object is new and nobody else's, and its `len` bytes, which are not
    // initialised, are written whole before it is handed out.
    unsafe {
        let made = pyo3::ffi::PyBytes_FromStringAndSize(ptr::null(), len);
        let made = Bound::from_owned_ptr_or_err(py, made)?;
        let room = pyo3::ffi::PyBytes_AsString(made.as_ptr()).cast::<MaybeUninit<u8>>();
        let room = slice::from_raw_parts_mut(room, bytes.len());
        prefer_large(room);
        room.write_copy_of_slice(bytes);
        Ok(made.cast_into_unchecked())
    }
}

/// Ends the process with a line in the function's log. Nothing of Python's runs any more.
pub fn end(status: i32, reason: &dyn Display) -> ! {
    // In the function's log, if that is still there.
    let _ = writeln!(io::stderr(), "hearth: {reason}");
    // SAFETY: _exit runs nothing of this process.
    unsafe { libc::_exit(status) }
}

/// Forks without the interpreter's at-fork handlers. They put in order what further threads have left behind (locks they
/// held, their records, the interpreter lock they waited for); so this is for a process without further threads, and
/// [`is_single_threaded`] is asked again here. `in_child` runs in the child.
pub fn fork_single_threaded<T>(
    _py: Python<'_>,
    in_child: impl FnOnce() -> T,
) -> io::Result<Forked<T>> {
    assert!(is_single_threaded(), "a process with further threads");
    // SAFETY: the only thread of the process is this one, so it holds the interpreter's lock (`_py`) and every other lock
    // that is held, in the child as in the parent, and no data can be torn. It stays the main thread with the same
    // identifier: the child has a copy of its thread control block.
    match unsafe { libc::fork() } {
        0 => Ok(Forked::Child(in_child())),
        pid => {
            let error = io::Error::last_os_error();
            Pid::from_raw(pid.max(0)).map(Forked::Parent).ok_or(error)
        }
    }
}
