//! Bodies that come or go in several blocks (RFC 7959). What is kept of them is bounded, for so long from its first block on,
//! whatever the client does.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::answer::Answer;
use super::block::Block;
use super::code::Code;
use crate::limits::network;

/// How long a body may take.
const LIMIT: Duration = Duration::from_secs(120);
/// Most bytes of all bodies of one kind, for a port.
const BYTES: usize = 16 << 20;
/// Most of these bytes that one network has of those that come.
const BYTES_OF_ONE: usize = 4 << 20;
/// Most bodies of one kind, for a port.
const MOST: usize = 1024;

/// Whose body it is: requests of a client for the same are blocks of the same body.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Place {
    pub(super) peer: SocketAddr,
    pub(super) method: u8,
    pub(super) path: String,
    pub(super) query: String,
}

struct Kept<T> {
    body: T,
    ends: Instant,
}

/// Bodies that come.
#[derive(Default)]
pub(super) struct Uploads(HashMap<Place, Kept<Vec<u8>>>);

/// Answers that are asked for block by block.
#[derive(Default)]
pub(super) struct Downloads(HashMap<Place, Kept<Arc<Answer>>>);

impl Uploads {
    /// Adds a block. The whole body with its last one; none before.
    pub(super) fn add(
        &mut self,
        place: Place,
        block: Block,
        payload: &[u8],
        most: usize,
        now: Instant,
    ) -> Result<Option<Bytes>, Code> {
        self.0.retain(|_, kept| kept.ends > now);
        if payload.len() > block.size() || (block.more && payload.len() != block.size()) {
            return Err(Code::BAD_REQUEST);
        }
        let (mut body, ends) = match self.0.remove(&place) {
            // It begins anew.
            None | Some(_) if block.number == 0 => (Vec::new(), now + LIMIT),
            Some(kept) if kept.body.len() == block.offset() => (kept.body, kept.ends),
            _ => return Err(Code::INCOMPLETE),
        };
        if body.len() + payload.len() > most {
            return Err(Code::TOO_LARGE);
        }
        body.extend_from_slice(payload);
        if !block.more {
            return Ok(Some(body.into()));
        }
        let of_one = network(place.peer.ip());
        let (mut all, mut own) = (body.len(), body.len());
        for (other, kept) in &self.0 {
            all += kept.body.len();
            if network(other.peer.ip()) == of_one {
                own += kept.body.len();
            }
        }
        if all > BYTES || own > BYTES_OF_ONE || self.0.len() >= MOST {
            return Err(Code::UNAVAILABLE);
        }
        self.0.insert(place, Kept { body, ends });
        Ok(None)
    }
}

impl Downloads {
    /// Keeps an answer for those who ask for more of it. The one that ends first makes room.
    pub(super) fn keep(&mut self, place: Place, answer: Arc<Answer>, now: Instant) {
        self.0.retain(|_, kept| kept.ends > now);
        self.0.remove(&place);
        let mut bytes: usize = self.0.values().map(|kept| kept.body.body.len()).sum();
        while self.0.len() >= MOST || bytes + answer.body.len() > BYTES {
            let first = self.0.iter().min_by_key(|(_, kept)| kept.ends);
            let Some(first) = first.map(|(place, _)| place.clone()) else {
                break;
            };
            if let Some(kept) = self.0.remove(&first) {
                bytes -= kept.body.body.len();
            }
        }
        let ends = now + LIMIT;
        self.0.insert(place, Kept { body: answer, ends });
    }

    /// The answer that a client has begun to read.
    pub(super) fn get(&self, place: &Place, now: Instant) -> Option<Arc<Answer>> {
        let kept = self.0.get(place).filter(|kept| kept.ends > now)?;
        Some(kept.body.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(host: u8, path: usize) -> Place {
        Place {
            peer: SocketAddr::from(([192, 0, 2, host], 5683)),
            method: 2,
            path: path.to_string(),
            query: String::new(),
        }
    }

    fn block(number: u32, more: bool) -> Block {
        Block {
            number,
            more,
            exponent: 0,
        }
    }

    #[test]
    fn a_body_comes_in_order_and_in_time() {
        let (mut all, now) = (Uploads::default(), Instant::now());
        let mut add = |block, payload: &[u8], now| all.add(place(1, 0), block, payload, 40, now);
        assert_eq!(add(block(0, true), &[1; 16], now), Ok(None));
        assert_eq!(add(block(1, true), &[2; 16], now), Ok(None));
        let whole = add(block(2, false), &[3; 8], now).expect("a body");
        assert_eq!(whole.expect("whole").len(), 40);
        // It is done; a block that was left out, or is shorter than it says.
        assert_eq!(add(block(2, false), &[3; 8], now), Err(Code::INCOMPLETE));
        assert_eq!(add(block(0, true), &[1; 16], now), Ok(None));
        assert_eq!(add(block(2, true), &[1; 16], now), Err(Code::INCOMPLETE));
        assert_eq!(add(block(0, true), &[1; 9], now), Err(Code::BAD_REQUEST));
        assert_eq!(add(block(0, false), &[1; 17], now), Err(Code::BAD_REQUEST));
        // Larger than allowed.
        for number in 0..2 {
            assert_eq!(add(block(number, true), &[1; 16], now), Ok(None));
        }
        assert_eq!(add(block(2, true), &[1; 16], now), Err(Code::TOO_LARGE));
        // A block now and then does not keep it.
        assert_eq!(add(block(0, true), &[1; 16], now), Ok(None));
        let later = now + LIMIT / 2;
        assert_eq!(add(block(1, true), &[1; 16], later), Ok(None));
        let end = now + LIMIT;
        assert_eq!(add(block(2, false), &[1; 8], end), Err(Code::INCOMPLETE));
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let (mut all, now) = (Uploads::default(), Instant::now());
        let refused = (0..=MOST).find(|path| {
            let added = all.add(place(1, *path), block(0, true), &[0; 16], 40, now);
            added == Err(Code::UNAVAILABLE)
        });
        assert_eq!(refused, Some(MOST));
        let mut answers = Downloads::default();
        for path in 0..40 {
            let answer = Answer {
                body: Bytes::from(vec![0; 1 << 20]),
                ..Answer::of(Code::CONTENT)
            };
            let now = now + Duration::from_millis(path);
            answers.keep(place(1, path as usize), Arc::new(answer), now);
        }
        assert_eq!(answers.0.len(), 16);
        assert!(answers.get(&place(1, 0), now).is_none());
        assert!(answers.get(&place(1, 39), now).is_some());
        assert!(answers.get(&place(1, 39), now + 2 * LIMIT).is_none());
    }
}
