//! Answering: the messages of a response, and the stamps around the handler.

use hearth_abi::counters::OtherProcess;
use hearth_abi::{Flags, Kind};

use super::{Channel, ChannelError};
use crate::chain::Content;
use crate::sys;

impl Channel {
    /// The handler is called now: everything before was delivery.
    pub fn handler_begins(&mut self) {
        // Chains have notes of their own.
        if self.chain.is_none() {
            self.blocking.endpoint().stamps.began();
        }
    }

    /// The handler runs in another process than this, whose page faults are counted. If they cannot be read, this process's are.
    pub fn count_in(&mut self, pid: u32) {
        if let Ok(process) = OtherProcess::new(pid) {
            self.blocking.endpoint().stamps.count(process);
        }
    }

    /// The handler is done: everything from here on is the answer's way back. A streamed answer's begins with its head, and
    /// one that nobody announced with its first frame.
    pub fn handler_ended(&mut self) {
        self.blocking.endpoint().stamps.ended();
    }

    /// Sends the message that ends a response. What C code has printed goes out before it, so that the server finds the
    /// invocation's whole log in the pipes.
    ///
    /// # Errors
    /// The channel broke.
    pub fn finish(&mut self, kind: Kind, payload: &[u8]) -> Result<(), ChannelError> {
        self.check_owner()?;
        self.handler_ended();
        sys::flush_c_streams();
        if let Some(chain) = &mut self.chain {
            let left = match kind {
                Kind::ResponseError => chain.fail(payload),
                _ => chain.pass(&self.ready, Content::Bytes(payload)),
            };
            return Ok(left?);
        }
        Ok(self.blocking.send_message(kind, &self.id, payload)?)
    }

    /// Passes the block of a chain's request on, with a result that is in it or is put there; nothing if it was passed on before.
    ///
    /// # Errors
    /// The chain broke.
    pub fn finish_content(&mut self, content: Content<'_>) -> Result<(), ChannelError> {
        self.check_owner()?;
        self.handler_ended();
        sys::flush_c_streams();
        match &mut self.chain {
            Some(chain) => Ok(chain.pass(&self.ready, content)?),
            None => Ok(()),
        }
    }

    /// Answers an HTTP request: the head as JSON text, and the whole body.
    ///
    /// # Errors
    /// The channel broke.
    pub fn respond(&mut self, head: &[u8], body: &[u8]) -> Result<(), ChannelError> {
        self.check_owner()?;
        self.handler_ended();
        // Left for the body's frame to ring for, so that the server wakes once.
        let sent = self.blocking.endpoint().tx.try_send(
            Kind::ResponseHead,
            Flags::NONE,
            &self.id,
            head,
        )?;
        if !sent {
            self.head(head)?;
        }
        self.finish(Kind::ResponseBody, body)
    }

    /// Begins a streamed HTTP response: the head as JSON text.
    ///
    /// # Errors
    /// The channel broke.
    pub fn head(&mut self, head: &[u8]) -> Result<(), ChannelError> {
        self.check_owner()?;
        self.handler_ended();
        Ok(self
            .blocking
            .send_message(Kind::ResponseHead, &self.id, head)?)
    }

    /// Sends a piece of a streamed body; waits while the server takes no more.
    ///
    /// # Errors
    /// The channel broke.
    pub fn piece(&mut self, piece: &[u8]) -> Result<(), ChannelError> {
        self.check_owner()?;
        Ok(self
            .blocking
            .send_part(Kind::ResponseBody, &self.id, piece, true)?)
    }

    fn check_owner(&self) -> Result<(), ChannelError> {
        if self.owner.is_here() {
            Ok(())
        } else {
            Err(ChannelError::ForeignProcess)
        }
    }
}
