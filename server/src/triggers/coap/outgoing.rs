//! Sends answers: whole or in blocks, as far as there is room for them, and repeatedly where a client confirms them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use coap_lite::MessageType;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::answer::Answer;
use super::block::{self, Block};
use super::code::Code;
use super::message::{AROUND, Call, Head, Options, Way, write, write_empty};
use super::transfers::Place;
use super::{Endpoint, Reply};
use crate::triggers::datagrams::Datagram;

/// Times of RFC 7252, 4.8: the first repetition comes after ACK_TIMEOUT and up to half of it more, each next one after twice as long.
const ACK_TIMEOUT: Duration = Duration::from_secs(2);
const MAX_RETRANSMIT: u32 = 4;
/// Most answers of a port that wait for their receipts. Those beyond are sent once.
const UNCONFIRMED_MAX: usize = 1024;

impl Endpoint {
    /// Sends an answer on its own until its receipt comes, or for 93 s at most.
    pub(super) async fn send_until_confirmed(
        &self,
        reply: Reply,
        head: &Head,
        asked: Option<&Call>,
        client: &Datagram,
    ) {
        let (peer, id) = (client.source, self.id());
        let (confirm, confirmed) = oneshot::channel();
        let kind = {
            let waiting = &mut self.state.lock().unconfirmed;
            match waiting.len() < UNCONFIRMED_MAX {
                true => {
                    waiting.insert((peer, id), confirm);
                    MessageType::Confirmable
                }
                false => MessageType::NonConfirmable,
            }
        };
        let _forgotten = Forgotten(self, peer, id);
        let bytes = self.write(Way { kind, id }, &reply, head, asked, peer);
        // It may be a large one, of which this is a block.
        drop(reply);
        self.send(&bytes, client).await;
        if matches!(kind, MessageType::NonConfirmable) {
            return;
        }
        let mut confirmed = std::pin::pin!(confirmed);
        // As good as random, for clients that were asked at the same time.
        let mut wait = ACK_TIMEOUT + Duration::from_millis(u64::from(id) % 1000);
        for repetition in 0..=MAX_RETRANSMIT {
            tokio::select! {
                waited = timeout(wait, &mut confirmed) => if waited.is_ok() {
                    return;
                },
                () = self.triggers.stopping.cancelled() => return,
            }
            if repetition < MAX_RETRANSMIT {
                self.send(&bytes, client).await;
            }
            wait *= 2;
        }
    }

    /// An answer, or the block of it that is asked for, no longer than there is room for; the rest is kept for who asks.
    pub(super) fn write(
        &self,
        way: Way,
        reply: &Reply,
        head: &Head,
        asked: Option<&Call>,
        peer: SocketAddr,
    ) -> Bytes {
        let answer = &*reply.0;
        // A refusal is sent whole to who asked for a block of something else.
        let wanted = asked
            .and_then(|call| call.block2)
            .filter(|block| !answer.code.is_error() || block.offset() < answer.body.len());
        let block1 = asked.and_then(|call| call.block1).map(|block| Block {
            more: answer.code == Code::CONTINUE,
            ..block
        });
        let room = self.room(peer);
        let mut exponent = wanted.map_or(block::LARGEST, |block| block.exponent);
        while exponent > 0 && block::size(exponent) + AROUND > room {
            exponent -= 1;
        }
        let offset = wanted.map_or(0, Block::offset);
        let Some((block, piece)) = Block::of(&answer.body, offset, exponent) else {
            let beyond = Answer::of(Code::BAD_REQUEST);
            return write(way, &head.token, beyond.code, &Options::default(), &[]);
        };
        let in_blocks = block.more || offset > 0 || wanted.is_some();
        if block.more
            && block.number == 0
            && let Some(call) = asked
        {
            let mut state = self.state.lock();
            let place = Place::of(peer, call);
            state.downloads.keep(place, reply.0.clone(), Instant::now());
        }
        let options = Options {
            etag: in_blocks.then(|| crc32fast::hash(&answer.body)),
            content_format: answer.content_format,
            max_age: answer.max_age,
            block1,
            block2: in_blocks.then_some(block),
            size1: answer.size1,
            size2: (block.more && block.number == 0)
                .then(|| u32::try_from(answer.body.len()).ok())
                .flatten(),
        };
        write(way, &head.token, answer.code, &options, piece)
    }

    /// An answer without a body, to be sent at once.
    pub(super) fn whole(&self, answer: &Answer, head: &Head, peer: SocketAddr) -> Bytes {
        let way = match head.confirmable {
            true => Way {
                kind: MessageType::Acknowledgement,
                id: head.id,
            },
            false => Way {
                kind: MessageType::NonConfirmable,
                id: self.id(),
            },
        };
        self.write(way, &Reply(Arc::new(answer.clone())), head, None, peer)
    }

    pub(super) async fn send_empty(&self, kind: MessageType, id: u16, client: &Datagram) {
        self.send(&write_empty(kind, id), client).await;
    }

    /// Sends to a client what there is room for: a message for which there is none is dropped.
    pub(super) async fn send(&self, bytes: &[u8], client: &Datagram) {
        let to = client.source.ip();
        {
            let allowance = &mut self.state.lock().allowance;
            let now = Instant::now();
            if bytes.len() > allowance.left(to, now) {
                return;
            }
            allowance.spend(to, bytes.len(), now);
        }
        if client.by_xdp.as_ref().is_some_and(|way| way.reply(bytes)) {
            return;
        }
        if let Err(error) = self.socket.send(bytes, client).await {
            tracing::debug!(port = %self.port, %error, "cannot send an answer");
        }
    }
}

/// An answer whose receipt nobody waits for any more, when this is dropped.
struct Forgotten<'a>(&'a Endpoint, SocketAddr, u16);

impl Drop for Forgotten<'_> {
    fn drop(&mut self) {
        let Self(endpoint, peer, id) = *self;
        endpoint.state.lock().unconfirmed.remove(&(peer, id));
    }
}
