//! Bodies of HTTP requests. Their first part is read before an instance is leased, because a slow client must not
//! occupy one.
//!
//! What was read stays in memory until the client sends the rest, so the total is limited.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;

use crate::engine::InvokeError;
use crate::limits::budget::{Budget, Claim};
use crate::limits::{BODIES_AHEAD, BODY_AHEAD, BODY_SHARE};

/// A body as it comes.
pub(super) type Body = BoxStream<'static, Result<Bytes, std::io::Error>>;

/// The budget of all bodies.
#[derive(Debug, Default, Clone)]
pub(in crate::engine) struct Bodies(Arc<State>);

#[derive(Debug)]
struct State {
    /// Bytes, beyond each body's share.
    held: Budget,
    /// Bodies being read ahead.
    awaited: AtomicUsize,
}

impl Default for State {
    fn default() -> Self {
        Self {
            held: Budget::of(BODIES_AHEAD),
            awaited: AtomicUsize::new(0),
        }
    }
}

/// A body being read.
struct Awaited<'s>(&'s State);

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        self.0.awaited.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The part of a body that was read, counted until it is dropped.
pub(super) struct ReadAhead {
    pub(super) pieces: Vec<Bytes>,
    /// The rest, if any.
    pub(super) rest: Option<Body>,
    bytes: usize,
    /// Its share of the budget.
    held: Claim,
}

impl Bodies {
    /// Invocations that wait for their clients rather than for a processor.
    pub(super) fn awaited(&self) -> usize {
        self.0.awaited.load(Ordering::Relaxed)
    }

    /// Reads the first part of a body.
    ///
    /// # Errors
    /// The body broke off or arrived too slowly, or other bodies use the whole budget.
    pub(super) async fn read_ahead(&self, body: Option<Body>) -> Result<ReadAhead, InvokeError> {
        let mut ahead = ReadAhead {
            pieces: Vec::new(),
            rest: None,
            bytes: 0,
            held: self.0.held.claim(),
        };
        let Some(mut body) = body else {
            return Ok(ahead);
        };
        self.0.awaited.fetch_add(1, Ordering::Relaxed);
        let _awaited = Awaited(&self.0);
        while ahead.bytes < BODY_AHEAD {
            match body.next().await {
                Some(piece) => ahead.push(piece.map_err(|error| InvokeError::body(&error))?)?,
                None => return Ok(ahead),
            }
        }
        ahead.rest = Some(body);
        Ok(ahead)
    }
}

impl ReadAhead {
    /// Whether nothing follows what was read.
    pub(super) fn is_whole(&self) -> bool {
        self.rest.is_none()
    }

    /// Whether there is something to send without a wait for the client, be it only the end.
    pub(super) fn is_at_hand(&self) -> bool {
        self.is_whole() || !self.pieces.is_empty()
    }

    fn push(&mut self, piece: Bytes) -> Result<(), InvokeError> {
        self.bytes += piece.len();
        let more = self.bytes.saturating_sub(BODY_SHARE) - self.held.bytes();
        if more > 0 {
            self.held.grow(more).map_err(|full| {
                InvokeError::HostExhausted(format!(
                    "bodies of other requests, which are still coming, take the {} MiB that there are for them",
                    full.most >> 20
                ))
            })?;
        }
        self.pieces.push(piece);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    /// A body of this many bytes, after which its client falls silent or ends it.
    fn body(bytes: usize, ends: bool) -> Option<Body> {
        let piece = Bytes::from(vec![b'x'; 64 << 10]);
        let pieces = stream::iter(0..bytes >> 16).map(move |_| Ok(piece.clone()));
        Some(match ends {
            true => pieces.boxed(),
            false => pieces.chain(stream::pending()).boxed(),
        })
    }

    fn held(bodies: &Bodies) -> usize {
        bodies.0.held.taken()
    }

    #[tokio::test]
    async fn all_bodies_together_have_a_bound_and_small_ones_always_pass() {
        let bodies = Bodies::default();
        let mut waiting = Vec::new();
        let refused = loop {
            match bodies.read_ahead(body(BODY_AHEAD, false)).await {
                Ok(ahead) => waiting.push(ahead),
                Err(error) => break error,
            }
        };
        assert!(
            matches!(refused, InvokeError::HostExhausted(_)),
            "{refused}"
        );
        assert!(waiting.len() * BODY_AHEAD >= BODIES_AHEAD);
        assert!(held(&bodies) <= BODIES_AHEAD);
        let small = bodies.read_ahead(body(BODY_SHARE, true)).await;
        assert!(small.is_ok_and(|small| small.rest.is_none()));
        waiting.pop();
        assert!(bodies.read_ahead(body(BODY_AHEAD, false)).await.is_ok());
        drop(waiting);
        assert_eq!(held(&bodies), 0);
    }

    #[tokio::test]
    async fn who_gives_up_half_way_holds_nothing() {
        let bodies = Bodies::default();
        let mut reading = Box::pin(bodies.read_ahead(body(BODY_AHEAD / 2, false)));
        assert!(futures_util::poll!(&mut reading).is_pending());
        assert_eq!(
            (held(&bodies), bodies.awaited()),
            (BODY_AHEAD / 2 - BODY_SHARE, 1)
        );
        drop(reading);
        assert_eq!((held(&bodies), bodies.awaited()), (0, 0));
    }
}
