//! Fork under the interpreter's eyes.

use std::io;

use hearth_worker::sys::Forked;
use pyo3::Python;
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
