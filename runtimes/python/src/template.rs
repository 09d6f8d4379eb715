//! The template as Python sees it: its control socket, and the loop that only a child comes back from.

use hearth_worker::compaction;
use hearth_worker::control::{Control, ControlError};
use hearth_worker::forkserver::ForkServer;
use hearth_worker::inherited::Inherited;
use hearth_worker::message::Way;
use hearth_worker::parts::Parts;
use hearth_worker::reseed::OpenSsl;
use hearth_worker::sys::{Forked, is_single_threaded, reset_child_signal};
use hearth_worker::threads;
use pyo3::exceptions::{PyOSError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::channel::Channel;
use crate::sys;

/// The template's end of its control socket. One a process.
#[pyclass(unsendable, module = "hearth_runtime")]
pub struct Template {
    /// None once `serve` has taken it: it ends there, and a child must not hold it.
    control: Option<Control>,
    /// What the interpreter had open before anything of the function's ran.
    inherited: Inherited,
}

#[pymethods]
impl Template {
    /// Takes over the control socket on descriptor `fd`, and gives SIGCHLD its default action.
    #[new]
    fn new(fd: i32) -> PyResult<Self> {
        reset_child_signal()?;
        Ok(Self {
            control: Some(Control::adopt(fd).map_err(os_error)?),
            inherited: Inherited::note()?,
        })
    }

    /// Waits for the configuration. Returns its JSON text, or None when the server is gone.
    fn receive_config<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyString>>> {
        let control = self.control()?;
        let config = py.detach(|| control.receive_message()).map_err(os_error)?;
        Ok(config.map(|config| PyString::new(py, &String::from_utf8_lossy(&config))))
    }

    /// Sends a report, JSON text, to the server.
    fn send(&self, py: Python<'_>, report: &str) -> PyResult<()> {
        let control = self.control()?;
        py.detach(|| control.send(report.as_bytes()))
            .map_err(os_error)
    }

    /// Tells the server `booted`, JSON text, and starts instances at its command until it closes the socket. Returns None then
    /// and, in every instance, its channel: in each child, or in this very process if the server has it become one.
    ///
    /// `renewals` are called in every instance, besides `of_fork` in a child and `of_itself` in this process. One that is wanted
    /// at once says READY then, if it may (`ready_at_once`): whatever else Python runs, a fresh child copies page by page, and
    /// does while the server sees READY.
    ///
    /// `before`, `in_child` and `in_parent` are the at-fork handlers that have to run although the process has a single
    /// thread, in the order in which they have to. Where it has more, all that are registered with the interpreter run.
    #[allow(
        clippy::too_many_arguments,
        reason = "called from one place, by position"
    )]
    fn serve(
        &mut self,
        py: Python<'_>,
        booted: &str,
        mut renewals: Vec<Py<PyAny>>,
        of_fork: Vec<Py<PyAny>>,
        of_itself: Vec<Py<PyAny>>,
        ready_at_once: bool,
        before: Vec<Py<PyAny>>,
        in_child: Vec<Py<PyAny>>,
        in_parent: Vec<Py<PyAny>>,
    ) -> PyResult<Option<Channel>> {
        self.control()?;
        let Some(control) = self.control.take() else {
            return Ok(None);
        };
        let openssl = OpenSsl::find();
        let mut server = ForkServer::start(control, Some(booted)).map_err(os_error)?;
        while let Some(request) = py.detach(|| server.wait()).map_err(os_error)? {
            if request.way == Way::Become {
                drop(server);
                request.parts.take_streams()?;
                openssl.reseed();
                renewals.extend(of_itself);
                return instance(py, request.parts, &renewals, ready_at_once).map(Some);
            }
            let shared = self.inherited.before_fork();
            let take_streams = || {
                request.parts.take_streams()?;
                shared.replace()
            };
            let forked = if is_single_threaded() {
                run(py, &before);
                let forked = sys::fork_single_threaded(py, take_streams);
                match &forked {
                    Ok(Forked::Child(_)) => run(py, &in_child),
                    Ok(Forked::Parent(_)) | Err(_) => run(py, &in_parent),
                }
                forked
            } else {
                sys::fork(py, take_streams)
            };
            match forked {
                Ok(Forked::Parent(pid)) => server.forked(pid),
                Ok(Forked::Child(streams)) => {
                    streams?;
                    drop(server);
                    renewals.extend(of_fork);
                    return instance(py, request.parts, &renewals, ready_at_once).map(Some);
                }
                Err(error) => server
                    .refuse(request.sequence, &error.to_string(), error.raw_os_error())
                    .map_err(os_error)?,
            }
        }
        Ok(None)
    }
}

/// A fresh instance's channel, once what siblings must not share is renewed.
fn instance(
    py: Python<'_>,
    parts: Parts,
    renewals: &[Py<PyAny>],
    ready_at_once: bool,
) -> PyResult<Channel> {
    let mut channel = Channel::open(parts)?;
    for renewal in renewals {
        renewal.call0(py)?;
    }
    if ready_at_once {
        channel.ready_if_wanted()?;
    }
    Ok(channel)
}

/// How many threads the import has left running that a fork would not have, and what the first few are called.
#[pyfunction]
pub fn threads_left() -> (usize, Vec<String>) {
    let left = threads::left_running(1);
    (left.count, left.names)
}

/// Moves what this process has written into large folios ([`compaction`]). Returns how many bytes; where it cannot be, 0,
/// and its memory stays as it is.
#[pyfunction]
pub fn compact_memory() -> usize {
    compaction::compact(|| false).unwrap_or(0)
}

/// Runs at-fork handlers as the interpreter does: one that raises does not keep the others from running.
fn run(py: Python<'_>, handlers: &[Py<PyAny>]) {
    for handler in handlers {
        let handler = handler.bind(py);
        if let Err(error) = handler.call0() {
            error.write_unraisable(py, Some(handler));
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

fn os_error(error: ControlError) -> PyErr {
    PyOSError::new_err(error.to_string())
}
