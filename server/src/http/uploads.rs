//! What all uploads hold together: a budget, so that many large ones at a time cannot take the host's memory.

use std::sync::atomic::{AtomicUsize, Ordering};

use axum::http::{HeaderValue, header};
use bytes::Bytes;

use super::problem::{Code, Problem};
use crate::limits::{UPLOAD_FREE, UPLOADS_BYTES};

/// Bytes that uploads hold at this moment.
static HELD: AtomicUsize = AtomicUsize::new(0);

/// Bytes counted in [`HELD`], until it is dropped.
pub struct Held(usize);

impl Drop for Held {
    fn drop(&mut self) {
        HELD.fetch_sub(self.0, Ordering::Relaxed);
    }
}

/// Counts an upload that has grown to `bytes`; 503 when all together would be too large. Small ones are not counted.
pub fn hold(held: &mut Option<Held>, bytes: usize) -> Result<(), Problem> {
    let counted = held.as_ref().map_or(0, |held| held.0);
    if bytes <= counted.max(UPLOAD_FREE) {
        return Ok(());
    }
    // By whole steps, so that the count is not touched for each piece.
    let more = (bytes - counted).next_multiple_of(UPLOAD_FREE);
    let all = HELD.fetch_add(more, Ordering::Relaxed) + more;
    if all > UPLOADS_BYTES {
        HELD.fetch_sub(more, Ordering::Relaxed);
        let detail = format!(
            "other uploads take the {UPLOADS_BYTES} bytes there are for all together; try again"
        );
        return Err(Problem::new(Code::TooManyUploads, detail)
            .header(header::RETRY_AFTER, HeaderValue::from_static("5")));
    }
    held.get_or_insert(Held(0)).0 += more;
    Ok(())
}

/// An upload that is counted as long as somebody has it.
pub fn kept(bytes: Bytes, held: Option<Held>) -> Bytes {
    struct Counted(
        Bytes,
        #[expect(dead_code, reason = "dropped with the bytes")] Held,
    );
    impl AsRef<[u8]> for Counted {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }
    match held {
        Some(held) => Bytes::from_owner(Counted(bytes, held)),
        None => bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_uploads_together_have_a_budget_that_comes_back() {
        let mut first = None;
        assert!(hold(&mut first, UPLOADS_BYTES - UPLOAD_FREE).is_ok());
        let mut second = None;
        assert!(hold(&mut second, UPLOAD_FREE).is_ok(), "small ones pass");
        let refused = hold(&mut second, 3 * UPLOAD_FREE).expect_err("too much");
        assert_eq!(refused.code(), Code::TooManyUploads);
        let kept = kept(Bytes::from_static(b"x"), first);
        let copy = kept.clone();
        drop(kept);
        assert!(hold(&mut second, 3 * UPLOAD_FREE).is_err());
        drop(copy);
        assert!(hold(&mut second, 3 * UPLOAD_FREE).is_ok());
    }
}
