//! An instance's end of its channel, as Python sees it: receive a request, answer it.

mod blocks;
mod errors;

use hearth_abi::{Kind, Trigger};
use hearth_worker::chain::Content;
use hearth_worker::channel::{Channel as Inner, Head};
use hearth_worker::message::{self, ID_TEXT_BYTES};
use hearth_worker::parts::Parts;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyMemoryView, PyString, PyTuple};

pub use self::errors::{ChainError, ChannelError};
use self::errors::{broken, call_failed};
use crate::block::Loans;
use crate::json::{NotPlain, read};
use crate::sys;

/// One instance's channel. Its methods block without holding the interpreter.
#[pyclass(unsendable, module = "hearth_runtime")]
pub struct Channel {
    inner: Inner,
    /// What the handler has of blocks.
    loans: Loans,
}

#[pymethods]
impl Channel {
    /// Whether the server wants this instance now. False for a pre-forked instance before GO.
    fn is_wanted(&mut self) -> PyResult<bool> {
        self.inner.is_wanted().map_err(broken)
    }

    /// Waits until the server wants this instance; false when the server is gone.
    fn wait_until_wanted(&mut self, py: Python<'_>) -> PyResult<bool> {
        py.detach(|| self.inner.wait_until_wanted()).map_err(broken)
    }

    /// Whether the server knows that this instance can take a request.
    fn is_ready(&self) -> bool {
        self.inner.is_ready()
    }

    /// Sends READY: this instance can take a request.
    fn ready(&mut self) -> PyResult<()> {
        self.inner.ready().map_err(broken)
    }

    /// Waits for a request: (id, trigger, deadline in µs since 1970, traceparent or None, event, unread, body or None).
    /// The event comes as an object; or as JSON text in `unread`, when `json` must read it; or as a memoryview of the payload, if
    /// it stays in place. Only HTTP requests have a body. Returns None when the server is gone.
    fn receive<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let received = py.detach(|| self.inner.receive()).map_err(broken)?;
        let Some(Head { head, traceparent }) = received else {
            return Ok(None);
        };
        let mut text = [0; ID_TEXT_BYTES];
        let in_place = match head.trigger {
            Trigger::Chain => self.payload(py)?,
            _ => None,
        };
        let (event, unread) = match in_place {
            Some(view) => (view.into_any(), None),
            None => match read(py, self.inner.event()) {
                Ok(event) => (event, None),
                Err(NotPlain) => (
                    py.None().into_bound(py),
                    Some(text_of(py, self.inner.event())),
                ),
            },
        };
        let body = match head.trigger {
            Trigger::Http => Some(sys::bytes(py, self.inner.body())?),
            _ => None,
        };
        self.inner.forget_request();
        (
            message::id_text(self.inner.id(), &mut text),
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
        self.inner.handler_begins();
    }

    /// Stamps the handler's end.
    fn handler_ended(&mut self) {
        self.inner.handler_ended();
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
        py.detach(|| self.inner.respond(head.as_bytes(), body))
            .map_err(broken)
    }

    /// Begins a streamed HTTP response.
    fn head(&mut self, py: Python<'_>, head: &str) -> PyResult<()> {
        py.detach(|| self.inner.head(head.as_bytes()))
            .map_err(broken)
    }

    /// Sends a piece of a streamed body; waits while the server takes no more.
    fn piece(&mut self, py: Python<'_>, piece: &[u8]) -> PyResult<()> {
        py.detach(|| self.inner.piece(piece)).map_err(broken)
    }

    /// Begins to call another member of the chain; the call's number.
    fn chain_call(&mut self, py: Python<'_>, member: &str, payload: &[u8]) -> PyResult<u32> {
        py.detach(|| {
            let (chain, control) = self.inner.chain()?;
            chain.begin_call(control, member, payload)
        })
        .map_err(|error| call_failed(&error))
    }

    /// Waits for a call's result, JSON text.
    fn chain_result<'py>(&mut self, py: Python<'py>, call: u32) -> PyResult<Bound<'py, PyBytes>> {
        let result = py.detach(|| {
            let (chain, control) = self.inner.chain()?;
            chain.finish_call(control, call)
        });
        result
            .map(|text| PyBytes::new(py, &text))
            .map_err(|error| call_failed(&error))
    }

    /// Passes the request on to another member, ahead of its turn.
    fn chain_send(&mut self, py: Python<'_>, member: &str, payload: &[u8]) -> PyResult<()> {
        py.detach(|| {
            let (chain, control) = self.inner.chain()?;
            chain.send_ahead(control, member, Content::Bytes(payload))
        })
        .map_err(|error| call_failed(&error))
    }

    /// Answers now.
    fn chain_respond(&mut self, py: Python<'_>, payload: &[u8]) -> PyResult<()> {
        py.detach(|| {
            let (chain, control) = self.inner.chain()?;
            chain.respond(control, Content::Bytes(payload))
        })
        .map_err(|error| call_failed(&error))
    }

    /// Whether requests are a chain's, with their payloads in place.
    fn is_in_place(&mut self) -> bool {
        let chain = self.inner.chain();
        chain.is_ok_and(|(chain, _)| chain.is_in_place())
    }

    /// The whole block of the request in hand.
    fn chain_block<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyMemoryView>> {
        self.whole_block(py)
    }

    /// A whole block for calls, or a run of so many bytes at least.
    fn chain_allocate<'py>(
        &mut self,
        py: Python<'py>,
        bytes: usize,
    ) -> PyResult<Bound<'py, PyMemoryView>> {
        self.allocate(py, bytes)
    }

    /// Begins to call another member with a payload in a block, or with a copy of it in one; the call's number.
    fn chain_call_block(
        &mut self,
        py: Python<'_>,
        member: &str,
        payload: &Bound<'_, PyAny>,
    ) -> PyResult<u32> {
        self.call_block(py, member, payload)
    }

    /// Waits for the result of such a call, a memoryview.
    fn chain_result_block<'py>(
        &mut self,
        py: Python<'py>,
        call: u32,
    ) -> PyResult<Bound<'py, PyMemoryView>> {
        self.result_block(py, call)
    }

    /// Passes the request on to another member, ahead of its turn, with what is in its block or is put there.
    fn chain_send_block(
        &mut self,
        py: Python<'_>,
        member: &str,
        payload: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.send_block(py, member, payload)
    }

    /// Answers now, with what is in the request's block or is put there.
    fn chain_respond_block(&mut self, py: Python<'_>, payload: &Bound<'_, PyAny>) -> PyResult<()> {
        self.respond_block(py, payload)
    }

    /// Passes the request on, with what is in its block or is put there; nothing if it was passed on before.
    fn pass_block(&mut self, py: Python<'_>, result: &Bound<'_, PyAny>) -> PyResult<()> {
        self.pass_on(py, result)
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
        let inner = Inner::open(parts).map_err(broken)?;
        Ok(Self {
            inner,
            loans: Loans::default(),
        })
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
        self.end_loans(py)?;
        py.detach(|| self.inner.finish(kind, payload))
            .map_err(broken)
    }
}

/// An event as str. The server has parsed it, so it is UTF-8; should it not be, the handler gets what can be read of it.
fn text_of<'py>(py: Python<'py>, event: &[u8]) -> Bound<'py, PyString> {
    PyString::from_bytes(py, event)
        .unwrap_or_else(|_| PyString::new(py, &String::from_utf8_lossy(event)))
}
