//! Requests with their payloads in place: `hearth_worker/blocks.py`.

use hearth_worker::chain::{Area, CallError, ChainMember, Content, Returned};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyMemoryView};

use super::Channel;
use super::errors::{broken, call_failed};
use crate::block::{Call, Given};
use crate::sys;

/// Status of an instance that cannot go on, as in `hearth_worker/instance.py`.
const EXIT_CHANNEL_BROKEN: i32 = 70;

impl Channel {
    /// The payload of a chain's request, if it stays in place.
    pub(super) fn payload<'py>(
        &mut self,
        py: Python<'py>,
    ) -> PyResult<Option<Bound<'py, PyMemoryView>>> {
        match self.inner.chain() {
            Ok((chain, _)) if chain.is_in_place() => self.loans.request(py, chain, false),
            _ => Ok(None),
        }
    }

    pub(super) fn whole_block<'py>(
        &mut self,
        py: Python<'py>,
    ) -> PyResult<Bound<'py, PyMemoryView>> {
        let (chain, _) = self.inner.chain().map_err(|error| call_failed(&error))?;
        let view = self.loans.request(py, chain, true)?;
        view.ok_or_else(|| call_failed(&CallError::NoRequest))
    }

    pub(super) fn allocate<'py>(
        &mut self,
        py: Python<'py>,
        bytes: usize,
    ) -> PyResult<Bound<'py, PyMemoryView>> {
        self.loans.drop_unused(py);
        let inner = &mut self.inner;
        let held = py.detach(|| {
            let (chain, control) = inner.chain()?;
            chain.hold_block(control, bytes)
        });
        let held = held.map_err(|error| call_failed(&error))?;
        let (chain, _) = self.inner.chain().map_err(|error| call_failed(&error))?;
        let area = chain.area_of(&held, 0);
        self.loans.for_call(py, area, Call::new(chain, held))
    }

    pub(super) fn call_block(
        &mut self,
        py: Python<'_>,
        member: &str,
        payload: &Bound<'_, PyAny>,
    ) -> PyResult<u32> {
        let (chain, control) = self.inner.chain().map_err(|error| call_failed(&error))?;
        if let Some((held, len)) = self.loans.held_at(payload) {
            let call = chain.begin_call_in_place(control, member, held, len);
            let call = call.map_err(|error| call_failed(&error))?;
            self.loans.note_call(call, true);
            return Ok(call);
        }
        let given = Given::read(payload, 0, None)?;
        self.loans.drop_unused(py);
        let called = (|| {
            let content = given.content();
            let held = chain.hold_block(control, content.len())?;
            let area = chain.area_of(&held, 0);
            let call = chain.begin_call_of(control, member, &held, content)?;
            Ok((call, area, Call::new(chain, held)))
        })();
        let (call, area, held) = called.map_err(|error| call_failed(&error))?;
        self.loans.add(area, held);
        self.loans.note_call(call, true);
        Ok(call)
    }

    pub(super) fn result_block<'py>(
        &mut self,
        py: Python<'py>,
        call: u32,
    ) -> PyResult<Bound<'py, PyMemoryView>> {
        let inner = &mut self.inner;
        let returned = py.detach(|| {
            let (chain, control) = inner.chain()?;
            chain.finish_call_in_place(control, call)
        });
        // Of one that failed, the block is as good as returned: whether it is, the worker's library knows.
        self.loans.note_call(call, false);
        let no_call = || call_failed(&CallError::NoCall(call));
        match returned.map_err(|error| call_failed(&error))? {
            Returned::InPlace(len) => self.loans.result(py, call, len)?.ok_or_else(no_call),
            Returned::Moved(len) => {
                let held = self.loans.held(call).ok_or_else(no_call)?;
                let (chain, _) = inner.chain().map_err(|error| call_failed(&error))?;
                let moved = chain.take_moved(held, len);
                let moved = moved.map_err(|error| call_failed(&error))?;
                PyMemoryView::from(PyByteArray::new(py, &moved).as_any())
            }
        }
    }

    pub(super) fn send_block(
        &mut self,
        py: Python<'_>,
        member: &str,
        payload: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let given = self.given(py, payload, |chain, content| {
            chain.may_send_ahead(member, content)
        })?;
        let inner = &mut self.inner;
        let sent = py.detach(|| {
            let (chain, control) = inner.chain()?;
            chain.send_ahead(control, member, given.content())
        });
        sent.map_err(|error| call_failed(&error))
    }

    pub(super) fn respond_block(
        &mut self,
        py: Python<'_>,
        payload: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let given = self.given(py, payload, ChainMember::may_respond)?;
        let inner = &mut self.inner;
        let sent = py.detach(|| {
            let (chain, control) = inner.chain()?;
            chain.respond(control, given.content())
        });
        sent.map_err(|error| call_failed(&error))
    }

    pub(super) fn pass_on(&mut self, py: Python<'_>, result: &Bound<'_, PyAny>) -> PyResult<()> {
        let Some(area) = self.area() else {
            return Ok(());
        };
        // What is too long, the chain says as it says of a value.
        let given = Given::read(result, area.len, Some(area))?;
        self.end_loans(py)?;
        let inner = &mut self.inner;
        let finished = py.detach(|| inner.finish_content(given.content()));
        finished.map_err(broken)
    }

    /// What the handler gives to be sent now, once all loans are ended. A refusal comes before that: then the request goes on.
    fn given(
        &mut self,
        py: Python<'_>,
        payload: &Bound<'_, PyAny>,
        may: impl FnOnce(&ChainMember, Content<'_>) -> Result<(), CallError>,
    ) -> PyResult<Given> {
        let area = self.area();
        let given = Given::read(payload, area.map_or(0, |area| area.len), area)?;
        let allowed = self.inner.chain();
        let allowed = allowed.and_then(|(chain, _)| may(chain, given.content()));
        allowed.map_err(|error| call_failed(&error))?;
        self.end_loans(py)?;
        Ok(given)
    }

    fn area(&mut self) -> Option<Area> {
        let chain = self.inner.chain().ok();
        chain.and_then(|(chain, _)| chain.block())
    }

    /// Takes back what the handler has of blocks. If that cannot be done, the process ends: the handler, which could catch an
    /// exception, still has addresses of what it would pass on.
    pub(super) fn end_loans(&mut self, py: Python<'_>) -> PyResult<()> {
        if self.loans.is_empty() {
            return Ok(());
        }
        let (chain, _) = self.inner.chain().map_err(|error| call_failed(&error))?;
        let ended = self.loans.end(py, chain);
        ended.unwrap_or_else(|error| sys::end(EXIT_CHANNEL_BROKEN, &error));
        Ok(())
    }
}
