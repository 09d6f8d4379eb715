//! An instance's end of its channel, as Python sees it: receive a request, answer it.

use hearth_abi::{Kind, Trigger};
use hearth_worker::chain::CallError;
use hearth_worker::channel::{Channel as Inner, ChannelError as Broken, Head};
use hearth_worker::message::{self, ID_TEXT_BYTES};
use hearth_worker::parts::Parts;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString, PyTuple};

use crate::json::{NotPlain, read};
use crate::sys;

create_exception!(
    hearth_runtime,
    ChannelError,
    PyException,
    "The channel to the server broke: the instance is lost."
);

create_exception!(
    hearth_runtime,
    ChainError,
    PyException,
    "Another member of the chain could not be reached, or failed: `error_type`, the message, the member's own error as JSON text."
);

/// One instance's channel. Its methods block without holding the interpreter.
#[pyclass(unsendable, module = "hearth_runtime")]
pub struct Channel(Inner);

#[pymethods]
impl Channel {
    /// Whether the server wants this instance now. False for a pre-forked instance before GO.
    fn is_wanted(&mut self) -> PyResult<bool> {
        self.0.is_wanted().map_err(broken)
    }

    /// Waits until the server wants this instance; false when the server is gone.
    fn wait_until_wanted(&mut self, py: Python<'_>) -> PyResult<bool> {
        py.detach(|| self.0.wait_until_wanted()).map_err(broken)
    }

    /// Whether the server knows that this instance can take a request.
    fn is_ready(&self) -> bool {
        self.0.is_ready()
    }

    /// Sends READY: this instance can take a request.
    fn ready(&mut self) -> PyResult<()> {
        self.0.ready().map_err(broken)
    }

    /// Waits for a request: (id, trigger, deadline in µs since 1970, traceparent or None, event, unread, body or None).
    /// The event comes as an object; or as JSON text in `unread`, when `json` must read it. Only HTTP requests have a
    /// body. Returns None when the server is gone.
    fn receive<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let received = py.detach(|| self.0.receive()).map_err(broken)?;
        let Some(Head { head, traceparent }) = received else {
            return Ok(None);
        };
        let mut text = [0; ID_TEXT_BYTES];
        let (event, unread) = match read(py, self.0.event()) {
            Ok(event) => (event, None),
            Err(NotPlain) => (py.None().into_bound(py), Some(text_of(py, self.0.event()))),
        };
        let body = match head.trigger {
            Trigger::Http => Some(sys::bytes(py, self.0.body())?),
            _ => None,
        };
        self.0.forget_request();
        (
            message::id_text(self.0.id(), &mut text),
            head.trigger as u16,
            head.deadline_unix_us,
            traceparent,
            event,
            unread,
            body,
        )
            .into_pyobject(py)
            .map(Some)
    }

    /// Stamps the handler's beginning.
    fn handler_begins(&mut self) {
        self.0.handler_begins();
    }

    /// Stamps the handler's end.
    fn handler_ended(&mut self) {
        self.0.handler_ended();
    }

    /// Answers with one JSON value, its text as UTF-8.
    fn result(&mut self, py: Python<'_>, json: &[u8]) -> PyResult<()> {
        self.finish(py, Kind::ResponseResult, json)
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
        py.detach(|| self.0.respond(head.as_bytes(), body))
            .map_err(broken)
    }

    /// Begins a streamed HTTP response.
    fn head(&mut self, py: Python<'_>, head: &str) -> PyResult<()> {
        py.detach(|| self.0.head(head.as_bytes())).map_err(broken)
    }

    /// Sends a piece of a streamed body; waits while the server takes no more.
    fn piece(&mut self, py: Python<'_>, piece: &[u8]) -> PyResult<()> {
        py.detach(|| self.0.piece(piece)).map_err(broken)
    }

    /// Begins to call another member of the chain; the call's number.
    fn chain_call(&mut self, py: Python<'_>, member: &str, payload: &[u8]) -> PyResult<u32> {
        py.detach(|| {
            let (chain, control) = self.0.chain()?;
            chain.begin_call(control, member, payload)
        })
        .map_err(|error| call_failed(&error))
    }

    /// Waits for a call's result, JSON text.
    fn chain_result<'py>(&mut self, py: Python<'py>, call: u32) -> PyResult<Bound<'py, PyBytes>> {
        let result = py.detach(|| {
            let (chain, control) = self.0.chain()?;
            chain.finish_call(control, call)
        });
        result
            .map(|text| PyBytes::new(py, &text))
            .map_err(|error| call_failed(&error))
    }

    /// Passes the request on to another member, ahead of its turn.
    fn chain_send(&mut self, py: Python<'_>, member: &str, payload: &[u8]) -> PyResult<()> {
        py.detach(|| {
            let (chain, control) = self.0.chain()?;
            chain.send_ahead(control, member, payload)
        })
        .map_err(|error| call_failed(&error))
    }

    /// Answers now.
    fn chain_respond(&mut self, py: Python<'_>, payload: &[u8]) -> PyResult<()> {
        py.detach(|| self.0.chain()?.0.respond(payload))
            .map_err(|error| call_failed(&error))
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
        Inner::open(parts).map(Self).map_err(broken)
    }

    /// Says READY if the server wants this instance now.
    ///
    /// # Errors
    /// The server is gone, or said something else.
    pub(crate) fn ready_if_wanted(&mut self) -> PyResult<()> {
        if self.is_wanted()? {
            self.ready()?;
        }
        Ok(())
    }

    fn finish(&mut self, py: Python<'_>, kind: Kind, payload: &[u8]) -> PyResult<()> {
        py.detach(|| self.0.finish(kind, payload)).map_err(broken)
    }
}

/// An event as str. The server has parsed it, so it is UTF-8; should it not be, the handler gets what can be read of it.
fn text_of<'py>(py: Python<'py>, event: &[u8]) -> Bound<'py, PyString> {
    PyString::from_bytes(py, event)
        .unwrap_or_else(|_| PyString::new(py, &String::from_utf8_lossy(event)))
}

fn call_failed(error: &CallError) -> PyErr {
    let cause = error
        .cause()
        .map(|text| String::from_utf8_lossy(text).into_owned());
    ChainError::new_err((error.error_type(), error.to_string(), cause))
}

fn broken(error: Broken) -> PyErr {
    ChannelError::new_err(error.to_string())
}
