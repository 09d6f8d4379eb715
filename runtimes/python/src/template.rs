//! The template's loop: wait for FORK, fork, reap. Only the child comes back from it.

use std::io;
use std::os::fd::{AsRawFd, IntoRawFd};

use pyo3::exceptions::{PyOSError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyString;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::channel::{Channel, Parts};
use crate::children::Children;
use crate::control::{Command, Control, ControlError};
use crate::message::{self, FORK_DESCRIPTORS};
use crate::sys::{self, Forked};

impl From<ControlError> for PyErr {
    fn from(error: ControlError) -> Self {
        PyOSError::new_err(error.to_string())
    }
}

/// The template's end of its control socket. One a process.
#[pyclass(unsendable, module = "hearth_runtime")]
pub struct Template {
    /// None once `serve` has taken it: it ends there, and a child must not hold it.
    control: Option<Control>,
}

#[pymethods]
impl Template {
    /// Takes over the control socket on descriptor `fd`, and gives SIGCHLD its default action.
    #[new]
    fn new(fd: i32) -> PyResult<Self> {
        sys::reset_child_signal()?;
        Ok(Self {
            control: Some(Control::adopt(fd)?),
        })
    }

    /// Waits for the configuration. Returns its JSON text, or None when the server is gone.
    fn receive_config<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyString>>> {
        let control = self.control()?;
        let config = py.detach(|| control.receive_config())?;
        Ok(config.map(|config| PyString::new(py, &String::from_utf8_lossy(&config))))
    }

    /// Sends a report, JSON text, to the server.
    fn send(&self, py: Python<'_>, report: &str) -> PyResult<()> {
        let control = self.control()?;
        Ok(py.detach(|| control.send(report.as_bytes()))?)
    }

    /// Forks at the server's command until it closes the socket. Returns None then and, in every child, its channel.
    fn serve(&mut self, py: Python<'_>) -> PyResult<Option<Channel>> {
        self.control()?;
        let Some(control) = self.control.take() else {
            return Ok(None);
        };
        occupy_standard_descriptors()?;
        let mut children = Children::watch()?;
        loop {
            let (sequence, descriptors) = match py.detach(|| next_command(&control, &mut children))
            {
                Ok(Command::Fork {
                    sequence,
                    descriptors,
                }) => (sequence, descriptors),
                // A template whose server is gone has nobody left to report to.
                Ok(Command::Close) | Err(ControlError::Send(_)) => return Ok(None),
                Err(error) => return Err(error.into()),
            };
            let failure = match Parts::try_from(descriptors) {
                Err(count) => format!("{count} descriptors arrived instead of {FORK_DESCRIPTORS}"),
                Ok(parts) => match sys::fork(py, || parts.take_streams()) {
                    Ok(Forked::Parent(pid)) => {
                        children.add(pid);
                        continue;
                    }
                    Ok(Forked::Child(streams)) => {
                        streams?;
                        return Channel::open(parts).map(Some);
                    }
                    Err(error) => error.to_string(),
                },
            };
            control.send(message::fork_failed(sequence, &failure).as_bytes())?;
        }
    }
}

impl Template {
    fn control(&self) -> PyResult<&Control> {
        self.control
            .as_ref()
            .ok_or_else(|| PyRuntimeError::new_err("the control socket has been served"))
    }
}

/// Waits for a command, and reports children that end meanwhile.
fn next_command(control: &Control, children: &mut Children) -> Result<Command, ControlError> {
    loop {
        let (command_came, child_ended) = {
            let mut ready = [
                PollFd::new(control, PollFlags::IN),
                PollFd::from_borrowed_fd(children.bell(), PollFlags::IN),
            ];
            match poll(&mut ready, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(ControlError::Receive(errno.into())),
            }
            (
                !ready[0].revents().is_empty(),
                !ready[1].revents().is_empty(),
            )
        };
        if child_ended {
            let mut sent = Ok(());
            children.reap(|pid, end| {
                let report = message::exited(pid.as_raw_nonzero().get().unsigned_abs(), end);
                if sent.is_ok() {
                    sent = control.send(report.as_bytes());
                }
            });
            sent?;
        }
        if command_came && let Some(command) = control.try_receive()? {
            return Ok(command);
        }
    }
}

/// Opens what the function's module has closed of stdin, stdout and stderr: a descriptor received later would take its
/// number and be overwritten when a child takes its streams.
fn occupy_standard_descriptors() -> io::Result<()> {
    loop {
        let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        if null.as_raw_fd() > libc::STDERR_FILENO {
            return Ok(());
        }
        let _ = null.into_raw_fd();
    }
}
