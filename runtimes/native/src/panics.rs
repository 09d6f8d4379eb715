//! Panics of a handler: errors of its invocation.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe};

use crate::Error;

thread_local! {
    /// Where this thread has panicked last.
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Notes where panics happen, besides whatever else is done about them: usually they are printed, and so in the function's log.
pub(crate) fn note_places() {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        let place = panic.location().map(ToString::to_string);
        PLACE.with_borrow_mut(|noted| *noted = place);
        before(panic);
    }));
}

/// Runs a handler. What it leaves half done when it panics is its own.
pub(crate) fn caught<T>(run: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    match panic::catch_unwind(AssertUnwindSafe(run)) {
        Ok(result) => result,
        Err(payload) => {
            let error = Error::new("Panic", said(&*payload));
            Err(error.at(PLACE.take()))
        }
    }
}

fn said(payload: &(dyn Any + Send)) -> &str {
    match (
        payload.downcast_ref::<&str>(),
        payload.downcast_ref::<String>(),
    ) {
        (Some(text), _) => text,
        (None, Some(text)) => text,
        (None, None) => "a value that is no text",
    }
}
