//! Payloads in place, as `memoryview`s over the blocks of a chain's pool.
//!
//! A block is lent to the handler until it is passed on. Then the views that it was given are released, as `memoryview.release` does.
//! What cannot be released, because the handler has kept a slice of it or something that was made of it, leads to a private copy
//! from then on: whoever has kept it sees what was there, and neither what comes into the block later nor the other way round.

mod given;

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use hearth_worker::chain::{Area, ChainMember, Held, LeftCopy, MemberError};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyMemoryView;

pub(crate) use self::given::Given;

/// A block in the handler's hand.
struct Loan {
    /// Where it begins.
    at: usize,
    capacity: usize,
    /// Buffers that Python has of it.
    exports: AtomicUsize,
    /// Whether it was passed on.
    is_over: AtomicBool,
    /// What is there then, if a buffer was left.
    copy: OnceLock<LeftCopy>,
}

/// What a `memoryview` of a block is made of.
#[pyclass(frozen, module = "hearth_runtime")]
pub struct Block {
    loan: Arc<Loan>,
    len: usize,
}

#[pymethods]
impl Block {
    /// Python's buffer protocol.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let Self { loan, len } = slf.get();
        if loan.is_over.load(Ordering::Relaxed) && loan.copy.get().is_none() {
            return Err(PyBufferError::new_err("the block has been passed on"));
        }
        let at = std::ptr::with_exposed_provenance_mut::<c_void>(loan.at);
        let len = isize::try_from(*len)?;
        // SAFETY: `view` is the caller's, by the protocol. The memory stays mapped as long as the view: while the block is lent, as a
        // part of the pool, and after that as the copy that was left because of the view. Others may write to it, as to any
        // writable buffer.
        let filled = unsafe { ffi::PyBuffer_FillInfo(view, slf.as_ptr(), at, len, 0, flags) };
        if filled != 0 {
            return Err(PyErr::fetch(slf.py()));
        }
        loan.exports.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Python's buffer protocol.
    unsafe fn __releasebuffer__(&self, _view: *mut ffi::Py_buffer) {
        self.loan.exports.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A block for calls, or the run that was lent in its place.
pub(crate) struct Call {
    held: Held,
    block: u32,
}

impl Call {
    /// Of a block that is held.
    pub(crate) fn new(chain: &ChainMember, held: Held) -> Self {
        let block = chain.block_of(&held);
        Self { held, block }
    }
}

/// A lent block, with what the handler was given of it.
struct Lent {
    block: u32,
    loan: Arc<Loan>,
    /// If it is one for calls.
    held: Option<Held>,
    /// Whether a call with it is under way: then it is not the handler's to give back.
    is_called: bool,
    views: Vec<Py<PyMemoryView>>,
}

impl Lent {
    fn of(block: u32, area: Area, held: Option<Held>) -> Self {
        Self {
            block,
            loan: Arc::new(Loan {
                at: area.at.expose_provenance(),
                capacity: area.capacity,
                exports: AtomicUsize::new(0),
                is_over: AtomicBool::new(false),
                copy: OnceLock::new(),
            }),
            held,
            is_called: false,
            views: Vec::new(),
        }
    }

    fn is_for(&self, call: u32) -> bool {
        self.held.as_ref().is_some_and(|held| held.call() == call)
    }

    /// A view of the first `len` bytes.
    fn view<'py>(&mut self, py: Python<'py>, len: usize) -> PyResult<Bound<'py, PyMemoryView>> {
        let block = Block {
            loan: self.loan.clone(),
            len: len.min(self.loan.capacity),
        };
        let view = PyMemoryView::from(Bound::new(py, block)?.as_any())?;
        self.views.push(view.clone().unbind());
        Ok(view)
    }

    /// Takes back what was given; itself if there is something that cannot be released.
    fn end(mut self, py: Python<'_>) -> Option<Self> {
        self.release(py);
        self.loan.is_over.store(true, Ordering::Relaxed);
        self.is_kept().then_some(self)
    }

    fn release(&mut self, py: Python<'_>) {
        for view in self.views.drain(..) {
            // It refuses if something was made of it.
            let _ = view.call_method0(py, intern!(py, "release"));
        }
    }

    fn is_kept(&self) -> bool {
        self.loan.exports.load(Ordering::Relaxed) > 0
    }

    /// Whether no call is under way and the handler has dropped all that it was given.
    fn is_unused(&mut self, py: Python<'_>) -> bool {
        if self.is_called {
            return false;
        }
        // SAFETY: the interpreter is attached (`py`), and `self` keeps each view.
        let references = |view: &Py<PyMemoryView>| unsafe { ffi::Py_REFCNT(view.as_ptr()) };
        if self.views.iter().any(|view| references(view) > 1) {
            return false;
        }
        self.release(py);
        if self.is_kept() {
            return false;
        }
        // What a view was made of may outlive the view, and must give no more of them.
        self.loan.is_over.store(true, Ordering::Relaxed);
        true
    }
}

/// The blocks that the handler has in hand: that of its request, and those for calls.
#[derive(Default)]
pub(crate) struct Loans(Vec<Lent>);

impl Loans {
    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Lends the request's block; a view of its payload, or of all of it.
    pub(crate) fn request<'py>(
        &mut self,
        py: Python<'py>,
        chain: &ChainMember,
        whole: bool,
    ) -> PyResult<Option<Bound<'py, PyMemoryView>>> {
        let (Some(area), Some(block)) = (chain.block(), chain.block_number()) else {
            return Ok(None);
        };
        let at = self.0.iter().position(|lent| lent.block == block);
        let at = at.unwrap_or_else(|| {
            self.0.push(Lent::of(block, area, None));
            self.0.len() - 1
        });
        let len = if whole { area.capacity } else { area.len };
        self.0[at].view(py, len).map(Some)
    }

    /// Lends a block for calls; a view of all of it.
    pub(crate) fn for_call<'py>(
        &mut self,
        py: Python<'py>,
        area: Area,
        call: Call,
    ) -> PyResult<Bound<'py, PyMemoryView>> {
        let mut lent = Lent::of(call.block, area, Some(call.held));
        let view = lent.view(py, area.capacity)?;
        self.0.push(lent);
        Ok(view)
    }

    /// Lends a block that the handler has no view of yet.
    pub(crate) fn add(&mut self, area: Area, call: Call) {
        self.0.push(Lent::of(call.block, area, Some(call.held)));
    }

    /// Notes whether a call is under way.
    pub(crate) fn note_call(&mut self, call: u32, is_under_way: bool) {
        let lent = self.0.iter_mut().filter(|lent| lent.is_for(call));
        lent.for_each(|lent| lent.is_called = is_under_way);
    }

    /// The block of a call.
    pub(crate) fn held(&self, call: u32) -> Option<&Held> {
        let lent = self.0.iter().find(|lent| lent.is_for(call))?;
        lent.held.as_ref()
    }

    /// The block for calls that a buffer begins with, if it does.
    pub(crate) fn held_at(&self, argument: &Bound<'_, PyAny>) -> Option<(&Held, usize)> {
        let buffer = PyBuffer::<u8>::get(argument).ok()?;
        let begin = buffer.buf_ptr().addr();
        let lent = self.0.iter().find(|lent| lent.loan.at == begin)?;
        let held = lent.held.as_ref().filter(|_| buffer.is_c_contiguous())?;
        Some((held, buffer.len_bytes()))
    }

    /// A view of a call's result.
    pub(crate) fn result<'py>(
        &mut self,
        py: Python<'py>,
        call: u32,
        len: usize,
    ) -> PyResult<Option<Bound<'py, PyMemoryView>>> {
        let lent = self.0.iter_mut().find(|lent| lent.is_for(call));
        lent.map(|lent| lent.view(py, len)).transpose()
    }

    /// Gives back the blocks for calls that the handler has nothing left of.
    pub(crate) fn drop_unused(&mut self, py: Python<'_>) {
        self.0
            .retain_mut(|lent| lent.held.is_none() || !lent.is_unused(py));
    }

    /// Ends all loans, because the request is about to be passed on. What cannot be taken back leads to copies from now on.
    ///
    /// # Errors
    /// There is no memory for these: the request must not be passed on.
    pub(crate) fn end(
        &mut self,
        py: Python<'_>,
        chain: &mut ChainMember,
    ) -> Result<(), MemberError> {
        let mut kept: Vec<Lent> = self.0.drain(..).filter_map(|lent| lent.end(py)).collect();
        if kept.is_empty() {
            return Ok(());
        }
        kept.sort_by_key(|lent| lent.block);
        let mut blocks = kept.iter().map(|lent| lent.block).collect();
        let copies = chain.take_from_keepers(&mut blocks)?;
        for (lent, copy) in kept.iter().zip(copies) {
            // It is set once: no block is lent twice at a time.
            let _ = lent.loan.copy.set(copy);
        }
        Ok(())
    }
}
