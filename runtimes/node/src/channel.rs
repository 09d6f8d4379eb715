//! An instance's end of its channel, as JavaScript sees it. Every call blocks the thread, and with it the event loop.
//!
//! A broken channel ends the process: the server is trusted, so a broken channel means that it is gone.

mod blocks;

use std::fmt::Display;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;

use hearth_abi::{Kind, Trigger};
use hearth_worker::chain::{CallError, ChainMember, Content};
use hearth_worker::channel::{Channel as Inner, ChannelError, Head};
use hearth_worker::message::{self, ID_TEXT_BYTES};
use hearth_worker::parts::Parts;
use napi::Env;
use napi::bindgen_prelude::{Array, BufferSlice, Either, Uint8Array};
use napi_derive::napi;

use crate::blocks::Loans;
use crate::rehearsal::Rehearsal;
use crate::{eventloop, process, sys};

/// Exit status of an instance whose channel broke.
const EXIT_CHANNEL_BROKEN: i32 = 70;

/// One instance's channel. Made in the template, so that a child has to make nothing that JavaScript sees.
#[napi]
#[derive(Default)]
pub struct Channel {
    inner: Option<Inner>,
    /// Where it led before a rehearsal.
    real: Option<Inner>,
    /// The other end, while it leads nowhere else.
    rehearsal: Option<Rehearsal>,
    /// What the handler has of blocks.
    loans: Loans,
}

#[napi]
impl Channel {
    /// A channel that is not open yet.
    #[napi(constructor)]
    pub fn new() -> Self {
        Self::default()
    }

    /// In the template or a pre-forked instance: connects the channel to this process for `rounds` requests of each
    /// kind (a warm-up), then restores it.
    #[napi]
    pub fn rehearse(&mut self, rounds: u32) -> napi::Result<()> {
        let (inner, rehearsal) = Rehearsal::open(rounds).map_err(failed)?;
        self.real = self.inner.replace(inner);
        self.rehearsal = Some(rehearsal);
        Ok(())
    }

    /// The instance's process id, as it sees it.
    #[napi]
    pub fn pid(&mut self) -> napi::Result<u32> {
        Ok(self.open()?.pid())
    }

    /// Whether the server wants this instance now. False for a pre-forked instance before GO.
    #[napi]
    pub fn is_wanted(&mut self) -> napi::Result<bool> {
        Ok(self
            .open()?
            .is_wanted()
            .unwrap_or_else(|error| lost(&error)))
    }

    /// Waits until the server wants this instance; ends the process when the server is gone.
    #[napi]
    pub fn wait_until_wanted(&mut self) -> napi::Result<()> {
        match self.open()?.wait_until_wanted() {
            Ok(true) => Ok(()),
            Ok(false) => process::leave(0),
            Err(error) => lost(&error),
        }
    }

    /// Sends READY: this instance can take a request.
    #[napi]
    pub fn ready(&mut self) -> napi::Result<()> {
        self.open()?.ready().unwrap_or_else(|error| lost(&error));
        Ok(())
    }

    /// Waits for a request: `[id, trigger, deadline in µs since 1970, traceparent or undefined, event as JSON text, body
    /// or undefined]`. Only HTTP requests have a body, and a payload in place is no text. Returns null when a rehearsal is over;
    /// ends the process when the server is gone.
    #[napi]
    pub fn receive<'env>(&mut self, env: &'env Env) -> napi::Result<Option<Array<'env>>> {
        if let Some(rehearsal) = &mut self.rehearsal
            && !rehearsal.advance().map_err(failed)?
        {
            *self = Self {
                inner: self.real.take(),
                ..Self::default()
            };
            return Ok(None);
        }
        let inner = self.open()?;
        let Some(Head { head, traceparent }) = inner.receive().unwrap_or_else(|error| lost(&error))
        else {
            process::leave(0);
        };
        eventloop::update_time(env)?;
        let mut text = [0; ID_TEXT_BYTES];
        let mut request = env.create_array(6)?;
        request.set(0, message::id_text(inner.id(), &mut text))?;
        request.set(1, head.trigger as u32)?;
        // Exact until the year 2255.
        request.set(2, head.deadline_unix_us as f64)?;
        if let Some(traceparent) = traceparent {
            request.set(3, traceparent)?;
        }
        if head.trigger == Trigger::Chain
            && inner.chain().is_ok_and(|(chain, _)| chain.is_in_place())
        {
            return Ok(Some(request));
        }
        // The server has parsed it, so it is valid UTF-8; that is found many bytes at a time, other than by the lossy
        // way, which looks at each.
        let event = match std::str::from_utf8(inner.event()) {
            Ok(event) => env.create_string(event)?,
            Err(_) => env.create_string(String::from_utf8_lossy(inner.event()))?,
        };
        request.set(4, event)?;
        if head.trigger == Trigger::Http {
            request.set(5, BufferSlice::copy_from(env, inner.body())?)?;
        }
        inner.forget_request();
        Ok(Some(request))
    }

    /// Stamps the handler's beginning.
    #[napi]
    pub fn handler_begins(&mut self) -> napi::Result<()> {
        self.open()?.handler_begins();
        Ok(())
    }

    /// Stamps the handler's end.
    #[napi]
    pub fn handler_ended(&mut self) -> napi::Result<()> {
        self.open()?.handler_ended();
        Ok(())
    }

    /// Answers with one JSON value.
    #[napi]
    pub fn result(&mut self, json: String) -> napi::Result<()> {
        self.finish(Kind::ResponseResult, json.as_bytes())
    }

    /// Answers with an error, JSON.
    #[napi]
    pub fn error(&mut self, json: String) -> napi::Result<()> {
        self.finish(Kind::ResponseError, json.as_bytes())
    }

    /// Answers an HTTP request: head as JSON text, and the whole body, text or bytes.
    #[napi]
    pub fn respond(&mut self, head: String, body: Either<String, Uint8Array>) -> napi::Result<()> {
        let body = match &body {
            Either::A(text) => text.as_bytes(),
            Either::B(bytes) => bytes.as_ref(),
        };
        self.open()?
            .respond(head.as_bytes(), body)
            .unwrap_or_else(|error| lost(&error));
        Ok(())
    }

    /// Begins a streamed HTTP response.
    #[napi]
    pub fn head(&mut self, head: String) -> napi::Result<()> {
        self.open()?
            .head(head.as_bytes())
            .unwrap_or_else(|error| lost(&error));
        Ok(())
    }

    /// Sends a piece of a streamed body; waits while the server takes no more.
    #[napi]
    pub fn piece(&mut self, piece: Uint8Array) -> napi::Result<()> {
        self.open()?
            .piece(&piece)
            .unwrap_or_else(|error| lost(&error));
        Ok(())
    }

    /// Begins to call another member of the chain; the call's number.
    #[napi]
    pub fn chain_call(&mut self, member: String, payload: String) -> napi::Result<u32> {
        let (chain, control) = self.chain()?;
        chain
            .begin_call(control, &member, payload.as_bytes())
            .map_err(|error| call_failed(&error))
    }

    /// Waits for a call's result, JSON text.
    #[napi]
    pub fn chain_result(&mut self, call: u32) -> napi::Result<String> {
        let (chain, control) = self.chain()?;
        let result = chain
            .finish_call(control, call)
            .map_err(|error| call_failed(&error))?;
        Ok(String::from_utf8_lossy(&result).into_owned())
    }

    /// Passes the request on to another member, ahead of its turn.
    #[napi]
    pub fn chain_send(&mut self, member: String, payload: String) -> napi::Result<()> {
        let (chain, control) = self.chain()?;
        chain
            .send_ahead(control, &member, Content::Bytes(payload.as_bytes()))
            .map_err(|error| call_failed(&error))
    }

    /// Answers now.
    #[napi]
    pub fn chain_respond(&mut self, payload: String) -> napi::Result<()> {
        let (chain, control) = self.chain()?;
        chain
            .respond(control, Content::Bytes(payload.as_bytes()))
            .map_err(|error| call_failed(&error))
    }

    /// Ends a streamed response.
    #[napi]
    pub fn end(&mut self) -> napi::Result<()> {
        self.finish(Kind::ResponseBody, &[])
    }
}

impl Channel {
    /// In an instance: takes over what came with its FORK.
    pub(crate) fn attach(&mut self, parts: Parts) -> napi::Result<()> {
        self.inner = Some(Inner::open(parts).map_err(failed)?);
        Ok(())
    }

    fn chain(&mut self) -> napi::Result<(&mut ChainMember, &OwnedFd)> {
        self.open()?.chain().map_err(|error| call_failed(&error))
    }

    fn open(&mut self) -> napi::Result<&mut Inner> {
        self.inner
            .as_mut()
            .ok_or_else(|| failed("the channel is not open"))
    }

    fn finish(&mut self, kind: Kind, payload: &[u8]) -> napi::Result<()> {
        self.open()?
            .finish(kind, payload)
            .unwrap_or_else(|error| lost(&error));
        Ok(())
    }
}

fn failed(error: impl Display) -> napi::Error {
    napi::Error::from_reason(error.to_string())
}

/// What `worker/chain.js` takes apart: type, message and the member's own error, a line each. None of them has a line break.
fn call_failed(error: &CallError) -> napi::Error {
    let cause = String::from_utf8_lossy(error.cause().unwrap_or_default());
    failed(format!("{}\n{error}\n{cause}", error.error_type()))
}

fn lost(error: &ChannelError) -> ! {
    let _ = writeln!(
        io::stderr(),
        "hearth: the channel to the server broke: {error}"
    );
    sys::exit_now(EXIT_CHANNEL_BROKEN)
}
