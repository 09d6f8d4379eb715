//! An instance's end of its channel, as Python sees it: receive a request, answer it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use hearth_abi::{AbiError, Bell, Blocking, Flags, HeadError, Kind, Region, RequestHead, Trigger};
use hearth_worker::parts::Parts;
use hearth_worker::{message, sys};
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple};
use rustix::io::retry_on_intr;
use rustix::net::{SendFlags, send};
use rustix::process::{Pid, getpid};

create_exception!(
    hearth_runtime,
    ChannelError,
    PyException,
    "The channel to the server broke: the instance is lost."
);

/// A request could not be read. The server is trusted, so each of these is a mistake of one side.
#[derive(Debug, thiserror::Error)]
enum ReceiveError {
    #[error(transparent)]
    Channel(#[from] AbiError),
    #[error(transparent)]
    Head(#[from] HeadError),
    #[error("a {found:?} message where a {expected:?} message belongs")]
    OutOfOrder { expected: Kind, found: Kind },
}

/// Buffers larger than this are given back after a request: an idle instance keeps little memory.
const KEPT_BUFFER_BYTES: usize = 64 * 1024;

/// One instance's channel. Its methods block without holding the interpreter.
#[pyclass(unsendable, module = "hearth_runtime")]
pub struct Channel {
    blocking: Blocking,
    /// Held open as long as the instance lives: its end tells the server of ours.
    ready: OwnedFd,
    /// The instance. A process that a handler forks has a copy of the channel and must not use it.
    owner: Pid,
    /// The request being served.
    id: [u8; 16],
    event: Vec<u8>,
    body: Vec<u8>,
}

/// What begins a request.
struct Head {
    head: RequestHead,
    traceparent: Option<String>,
}

#[pymethods]
impl Channel {
    /// Tells the server that this instance can take a request.
    fn ready(&self) -> PyResult<()> {
        let pid = self.owner.as_raw_nonzero().get().unsigned_abs();
        retry_on_intr(|| send(&self.ready, &message::ready(pid), SendFlags::NOSIGNAL))
            .map_err(io::Error::from)?;
        Ok(())
    }

    /// Waits for a request: (id, trigger, deadline in µs since 1970, traceparent or None, event as JSON text, body or
    /// None). Only HTTP requests have a body. Returns None when the server is gone.
    fn receive<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.check_owner()?;
        let Head { head, traceparent } = match py.detach(|| self.receive_request()) {
            Ok(head) => head,
            Err(ReceiveError::Channel(AbiError::PeerGone)) => return Ok(None),
            Err(error) => return Err(broken(error)),
        };
        let mut text = [0; message::ID_TEXT_BYTES];
        let request = (
            message::id_text(&self.id, &mut text),
            head.trigger as u16,
            head.deadline_unix_us,
            traceparent,
            text_of(py, &self.event),
            (head.trigger == Trigger::Http).then(|| PyBytes::new(py, &self.body)),
        )
            .into_pyobject(py)?;
        for buffer in [&mut self.event, &mut self.body] {
            buffer.clear();
            buffer.shrink_to(KEPT_BUFFER_BYTES);
        }
        Ok(Some(request))
    }

    /// Answers with one JSON value.
    fn result(&mut self, py: Python<'_>, json: &str) -> PyResult<()> {
        self.finish(py, Kind::ResponseResult, json.as_bytes())
    }

    /// Answers with an error, JSON.
    fn error(&mut self, py: Python<'_>, json: &str) -> PyResult<()> {
        self.finish(py, Kind::ResponseError, json.as_bytes())
    }

    /// Answers an HTTP request: head as JSON text, and the whole body, str or bytes.
    fn respond(&mut self, py: Python<'_>, head: &str, body: &Bound<'_, PyAny>) -> PyResult<()> {
        let body = if let Ok(text) = body.cast::<PyString>() {
            text.to_str()?.as_bytes()
        } else if let Ok(bytes) = body.cast::<PyBytes>() {
            bytes.as_bytes()
        } else {
            return Err(PyTypeError::new_err("a body is str or bytes"));
        };
        self.check_owner()?;
        // Left for the body's frame to ring for, so that the server wakes once.
        let sent = self.blocking.endpoint().tx.try_send(
            Kind::ResponseHead,
            Flags::NONE,
            &self.id,
            head.as_bytes(),
        );
        if !sent.map_err(broken)? {
            self.head(py, head)?;
        }
        self.finish(py, Kind::ResponseBody, body)
    }

    /// Begins a streamed HTTP response.
    fn head(&mut self, py: Python<'_>, head: &str) -> PyResult<()> {
        self.check_owner()?;
        py.detach(|| {
            self.blocking
                .send_message(Kind::ResponseHead, &self.id, head.as_bytes())
        })
        .map_err(broken)
    }

    /// Sends a piece of a streamed body; waits while the server takes no more.
    fn piece(&mut self, py: Python<'_>, piece: &[u8]) -> PyResult<()> {
        self.check_owner()?;
        py.detach(|| {
            self.blocking
                .send_part(Kind::ResponseBody, &self.id, piece, true)
        })
        .map_err(broken)
    }

    /// Ends a streamed response.
    fn end(&mut self, py: Python<'_>) -> PyResult<()> {
        self.finish(py, Kind::ResponseBody, &[])
    }
}

impl Channel {
    /// In the child: maps the channel.
    ///
    /// # Errors
    /// It is no channel of this version.
    pub(crate) fn open(parts: Parts) -> PyResult<Self> {
        let region = Region::attach(parts.channel.as_fd()).map_err(broken)?;
        Ok(Self {
            blocking: Blocking::new(
                region.worker(),
                Bell::from(parts.worker_bell),
                Bell::from(parts.host_bell),
            ),
            ready: parts.ready,
            owner: getpid(),
            id: [0; 16],
            event: Vec::new(),
            body: Vec::new(),
        })
    }

    /// Reads one request to its end.
    fn receive_request(&mut self) -> Result<Head, ReceiveError> {
        // The head's few bytes pass through the body's buffer.
        self.id = receive_message(&mut self.blocking, Kind::RequestHead, &mut self.body)?;
        let (head, traceparent) = RequestHead::decode(&self.body)?;
        let head = Head {
            head,
            traceparent: traceparent.map(str::to_owned),
        };
        receive_message(&mut self.blocking, Kind::RequestEvent, &mut self.event)?;
        if head.head.trigger == Trigger::Http {
            receive_message(&mut self.blocking, Kind::RequestBody, &mut self.body)?;
        }
        Ok(head)
    }

    fn check_owner(&self) -> PyResult<()> {
        if getpid() == self.owner {
            Ok(())
        } else {
            Err(ChannelError::new_err(
                "a process that the handler forked came back from the handler",
            ))
        }
    }

    /// Sends the message that ends a response. What C code has printed goes out before it, so that the server finds the
    /// invocation's whole log in the pipes.
    fn finish(&mut self, py: Python<'_>, kind: Kind, payload: &[u8]) -> PyResult<()> {
        self.check_owner()?;
        py.detach(|| {
            sys::flush_c_streams();
            self.blocking.send_message(kind, &self.id, payload)
        })
        .map_err(broken)
    }
}

/// Receives a whole message, which must be of kind `expected`. Its size is the server's business.
fn receive_message(
    blocking: &mut Blocking,
    expected: Kind,
    into: &mut Vec<u8>,
) -> Result<[u8; 16], ReceiveError> {
    let message = blocking.recv_message(into, usize::MAX)?;
    if message.kind == expected {
        Ok(message.id)
    } else {
        Err(ReceiveError::OutOfOrder {
            expected,
            found: message.kind,
        })
    }
}

/// An event as str. The server has parsed it, so it is UTF-8; should it not be, the handler gets what can be read of it.
fn text_of<'py>(py: Python<'py>, event: &[u8]) -> Bound<'py, PyString> {
    PyString::from_bytes(py, event)
        .unwrap_or_else(|_| PyString::new(py, &String::from_utf8_lossy(event)))
}

fn broken(error: impl std::error::Error) -> PyErr {
    ChannelError::new_err(error.to_string())
}
