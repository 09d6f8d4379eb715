//! A streamed response between its instance and its client: read from the ring as it arrives, whatever the client does,
//! and buffered for the client up to a limit.
//!
//! ```text
//! ring ─▶ pump (a task of its own, under the deadline) ─▶ queue (bytes bounded) ─▶ body (polled when the client reads)
//! ```
//!
//! So the instance is free once the function is done and the rest fits the queue. If it does not fit, the pump stops,
//! the ring fills, the function blocks on its write, and the invocation's deadline ends all three.

use std::collections::VecDeque;
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use futures_util::{Stream, stream};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::limits::budget::{Budget, Claim};
use crate::limits::{ANSWER_AHEAD, ANSWER_SHARE, ANSWERS_AHEAD};

/// Overhead of a piece: a function may send single bytes.
const PIECE: usize = 64;

/// Bytes of all queues beyond their share.
static HELD: LazyLock<Budget> = LazyLock::new(|| Budget::of(ANSWERS_AHEAD));

type Piece = Result<Bytes, std::io::Error>;

struct State {
    pieces: VecDeque<Piece>,
    bytes: usize,
    /// The part of them that counts in [`HELD`].
    charged: Claim,
    /// Nothing follows.
    ended: bool,
    /// The client is gone.
    left: bool,
}

struct Queue {
    state: Mutex<State>,
    /// Woken for the client: a piece, or the end.
    came: Notify,
    /// Woken for the instance: room, or the client has gone.
    taken: Notify,
}

/// The end that the pump writes.
pub(super) struct Ahead(Arc<Queue>);

/// The end that the client reads.
struct Reader(Arc<Queue>);

/// An empty queue: its writing end, and its reading end as a body.
pub(super) fn queue() -> (Ahead, impl Stream<Item = Piece> + Send + use<>) {
    let queue = Arc::new(Queue {
        state: Mutex::new(State {
            pieces: VecDeque::new(),
            bytes: 0,
            charged: HELD.claim(),
            ended: false,
            left: false,
        }),
        came: Notify::new(),
        taken: Notify::new(),
    });
    let reader = Reader(queue.clone());
    let body = stream::unfold(reader, |reader| async move {
        let piece = reader.next().await?;
        if piece.is_err() {
            // The connection is cut without flushing: a pause lets earlier data reach the client.
            tokio::task::yield_now().await;
        }
        Some((piece, reader))
    });
    (Ahead(queue), body)
}

impl Ahead {
    /// Adds a piece if there is room for it, else returns it.
    fn offer(&self, piece: Bytes) -> Result<(), Bytes> {
        let mut state = self.0.state.lock();
        let held = state.bytes + piece.len() + PIECE;
        // A piece is at most a ring's capacity, so the first always fits.
        if held > ANSWER_SHARE && state.bytes > 0 {
            let wanted = held - ANSWER_SHARE.max(state.bytes);
            if held > ANSWER_AHEAD || state.charged.grow(wanted).is_err() {
                return Err(piece);
            }
        }
        state.bytes = held;
        state.pieces.push_back(Ok(piece));
        drop(state);
        self.0.came.notify_one();
        Ok(())
    }

    /// Adds a piece, waiting for room. False if the client has gone.
    pub(super) async fn put(&self, mut piece: Bytes) -> bool {
        loop {
            if self.0.state.lock().left {
                return false;
            }
            match self.offer(piece) {
                Ok(()) => return true,
                Err(refused) => piece = refused,
            }
            self.0.taken.notified().await;
        }
    }

    /// Completes when the client is gone.
    pub(super) async fn abandoned(&self) {
        while !self.0.state.lock().left {
            self.0.taken.notified().await;
        }
    }

    /// The response breaks off here.
    pub(super) fn fail(&self, error: std::io::Error) {
        self.0.state.lock().pieces.push_back(Err(error));
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.0.state.lock().ended = true;
        self.0.came.notify_one();
    }
}

impl Reader {
    async fn next(&self) -> Option<Piece> {
        loop {
            {
                let mut state = self.0.state.lock();
                if let Some(piece) = state.pieces.pop_front() {
                    let bytes = piece.as_ref().map_or(0, |piece| piece.len() + PIECE);
                    state.bytes -= bytes;
                    state.charged.shrink(bytes);
                    drop(state);
                    self.0.taken.notify_one();
                    return Some(piece);
                }
                if state.ended {
                    return None;
                }
            }
            self.0.came.notified().await;
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.state.lock().left = true;
        self.0.taken.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt;

    use super::*;

    #[tokio::test]
    async fn a_reader_that_does_not_read_fills_it_and_no_more() {
        let (ahead, body) = queue();
        let piece = Bytes::from(vec![b'x'; 100_000]);
        let mut taken = 0;
        while ahead.offer(piece.clone()).is_ok() {
            taken += piece.len();
        }
        assert!(taken > ANSWER_AHEAD / 2 && taken <= ANSWER_AHEAD);
        let writer = tokio::spawn(async move {
            assert!(ahead.put(piece).await, "room comes with reading");
            ahead.fail(std::io::Error::other("broken"));
        });
        let all: Vec<Piece> = body.collect().await;
        writer.await.expect("no panic");
        let read: usize = all.iter().flatten().map(Bytes::len).sum();
        assert_eq!(read, taken + 100_000);
        assert!(all.last().is_some_and(Result::is_err));
    }

    #[tokio::test]
    async fn who_writes_hears_that_the_reader_is_gone() {
        let (ahead, body) = queue();
        drop(body);
        ahead.abandoned().await;
        assert!(!ahead.put(Bytes::from_static(b"x")).await);
    }
}
