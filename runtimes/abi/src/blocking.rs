//! Blocking send and receive of whole messages, for workers.

use std::time::Instant;

use crate::bell::Bell;
use crate::error::{AbiError, Violation};
use crate::frame::Kind;
use crate::region::Endpoint;
use crate::spin::{AdaptiveSpin, look};

/// A message that was received: what its frames have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// What it carries.
    pub kind: Kind,
    /// The invocation it belongs to.
    pub id: [u8; 16],
}

/// An endpoint with its two bells. Calls block the thread, without using the processor, until they are done.
///
/// One thread uses it at a time, and while it sends it does not receive: the peer must not wait for it to receive
/// before it takes what is sent. Hearth's worker reads a request to its end before it answers.
#[derive(Debug)]
pub struct Blocking {
    endpoint: Endpoint,
    own_bell: Bell,
    peer_bell: Bell,
    spin: AdaptiveSpin,
}

impl Blocking {
    /// Puts together an endpoint, the bell this side sleeps on and the bell that wakes the peer.
    #[must_use]
    pub fn new(endpoint: Endpoint, own_bell: Bell, peer_bell: Bell) -> Self {
        Self {
            spin: AdaptiveSpin::new(endpoint.busy_poll),
            endpoint,
            own_bell,
            peer_bell,
        }
    }

    /// The endpoint, for what is not offered here; for example to fill a frame in place.
    pub fn endpoint(&mut self) -> &mut Endpoint {
        &mut self.endpoint
    }

    /// Whether this side may look for a message before it sleeps on it; from the start it may.
    pub fn may_look(&mut self, allowed: bool) {
        self.spin.allow(allowed);
    }

    /// Wakes the peer if it sleeps: for use after sending or receiving through [`Blocking::endpoint`].
    ///
    /// # Errors
    /// The peer is gone, or its bell is not a bell.
    pub fn ring_if_needed(&mut self) -> Result<(), AbiError> {
        // Both must be asked: each takes an announcement of its own.
        let (data, space) = (
            self.endpoint.tx.bell_needed(),
            self.endpoint.rx.bell_needed(),
        );
        if data || space {
            self.peer_bell.ring()
        } else {
            Ok(())
        }
    }

    /// Sends a message, in as many frames as it takes.
    ///
    /// # Errors
    /// The peer is gone or broke the protocol, or `kind` cannot be sent.
    pub fn send_message(
        &mut self,
        kind: Kind,
        id: &[u8; 16],
        payload: &[u8],
    ) -> Result<(), AbiError> {
        self.send_part(kind, id, payload, false)
    }

    /// Sends a part of a message; the message ends with the part for which `more_follows` is false.
    ///
    /// # Errors
    /// As [`Blocking::send_message`].
    pub fn send_part(
        &mut self,
        kind: Kind,
        id: &[u8; 16],
        payload: &[u8],
        more_follows: bool,
    ) -> Result<(), AbiError> {
        let mut rest = payload;
        loop {
            let tx = &mut self.endpoint.tx;
            match tx.try_send_piece(kind, id, rest, more_follows)? {
                Some(taken) => {
                    if tx.bell_needed() {
                        self.peer_bell.ring()?;
                    }
                    rest = rest.get(taken..).unwrap_or_default();
                    if rest.is_empty() {
                        return Ok(());
                    }
                }
                None if tx.prepare_wait(rest.len()) => {
                    let woken = self.own_bell.wait();
                    self.endpoint.tx.cancel_wait();
                    woken?;
                }
                None => {}
            }
        }
    }

    /// Receives a message into `into`, replacing what was there, and waits until it is complete.
    ///
    /// # Errors
    /// The message is longer than `limit` bytes (it is read to its end and dropped, `into` is empty, and the channel goes
    /// on), or the peer is gone or broke the protocol.
    pub fn recv_message(&mut self, into: &mut Vec<u8>, limit: usize) -> Result<Message, AbiError> {
        into.clear();
        let mut message = None;
        let mut too_large = false;
        let mut last = false;
        while !last {
            let rx = &mut self.endpoint.rx;
            let Some(mut frame) = rx.try_recv()? else {
                self.wait_for_data()?;
                continue;
            };
            too_large = too_large || frame.len() > limit - into.len();
            if too_large {
                // Dropped part by part, so that memory stays bounded; each is still checked.
                into.clear();
            }
            frame.copy_to(into)?;
            let found = Message {
                kind: frame.kind(),
                id: *frame.id(),
            };
            last = !frame.flags().has_more();
            frame.consume();
            if self.endpoint.rx.bell_needed() {
                self.peer_bell.ring()?;
            }
            let expected = *message.get_or_insert(found);
            if found != expected {
                let violation = Violation::BrokenMessage {
                    expected: expected.kind,
                    found: found.kind,
                };
                return Err(self.endpoint.rx.fail(violation).into());
            }
        }
        if too_large {
            into.clear();
            return Err(AbiError::MessageTooLarge { limit });
        }
        // The loop ends only after a frame.
        message.ok_or(AbiError::PeerGone)
    }

    /// Waits until there may be a frame: looks for a while where that pays, then sleeps.
    fn wait_for_data(&mut self) -> Result<(), AbiError> {
        if let Some(budget) = self.spin.budget(Instant::now) {
            self.endpoint.tx.warm_up();
            let look = look(budget, || self.endpoint.rx.is_ready());
            self.spin.learn(look);
            if look.found {
                return Ok(());
            }
        }
        if self.endpoint.rx.prepare_wait() {
            let woken = self.own_bell.wait();
            self.endpoint.rx.cancel_wait();
            woken?;
        }
        Ok(())
    }
}
