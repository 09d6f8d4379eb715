//! An instance's end of its channel, as JavaScript sees it. Every call blocks the thread, and with it the event loop.
//!
//! A broken channel ends the process: the server that it leads to is trusted, so there is nobody left to serve.

use std::io::{self, Write as _};

use hearth_abi::{Kind, Trigger};
use hearth_worker::channel::{Channel as Inner, ChannelError, Head};
use hearth_worker::message::{self, ID_TEXT_BYTES};
use napi::Env;
use napi::bindgen_prelude::{Array, BufferSlice, Either, Uint8Array};
use napi_derive::napi;

use crate::{eventloop, sys};

/// Exit status of an instance whose channel broke.
const EXIT_CHANNEL_BROKEN: i32 = 70;

/// One instance's channel.
#[napi]
pub struct Channel(Inner);

impl Channel {
    pub(crate) fn new(inner: Inner) -> Self {
        Self(inner)
    }
}

#[napi]
impl Channel {
    /// The instance's process id, as it sees it.
    #[napi]
    pub fn pid(&self) -> u32 {
        self.0.pid()
    }

    /// Whether the server wants this instance now. A spare, forked ahead, is not wanted yet.
    #[napi]
    pub fn is_wanted(&mut self) -> bool {
        self.0.is_wanted().unwrap_or_else(|error| lost(&error))
    }

    /// Waits until the server wants this instance; false when the server is gone.
    #[napi]
    pub fn wait_until_wanted(&mut self) -> bool {
        self.0
            .wait_until_wanted()
            .unwrap_or_else(|error| lost(&error))
    }

    /// Tells the server that this instance can take a request.
    #[napi]
    pub fn ready(&self) {
        self.0.ready().unwrap_or_else(|error| lost(&error));
    }

    /// Waits for a request: `[id, trigger, deadline in µs since 1970, traceparent or undefined, event as JSON text, body
    /// or undefined]`. Only HTTP requests have a body. Returns null when the server is gone.
    #[napi]
    pub fn receive<'env>(&mut self, env: &'env Env) -> napi::Result<Option<Array<'env>>> {
        let Some(Head { head, traceparent }) =
            self.0.receive().unwrap_or_else(|error| lost(&error))
        else {
            return Ok(None);
        };
        eventloop::update_time(env)?;
        let mut text = [0; ID_TEXT_BYTES];
        let mut request = env.create_array(6)?;
        request.set(0, message::id_text(self.0.id(), &mut text))?;
        request.set(1, head.trigger as u32)?;
        // Exact until the year 2255.
        request.set(2, head.deadline_unix_us as f64)?;
        if let Some(traceparent) = traceparent {
            request.set(3, traceparent)?;
        }
        // The server has parsed it, so it is valid UTF-8 and borrowed as it is.
        let event = String::from_utf8_lossy(self.0.event());
        request.set(4, env.create_string(&event)?)?;
        if head.trigger == Trigger::Http {
            request.set(5, BufferSlice::copy_from(env, self.0.body())?)?;
        }
        Ok(Some(request))
    }

    /// Answers with one JSON value.
    #[napi]
    pub fn result(&mut self, json: String) {
        self.finish(Kind::ResponseResult, json.as_bytes());
    }

    /// Answers with an error, JSON.
    #[napi]
    pub fn error(&mut self, json: String) {
        self.finish(Kind::ResponseError, json.as_bytes());
    }

    /// Answers an HTTP request: head as JSON text, and the whole body, text or bytes.
    #[napi]
    pub fn respond(&mut self, head: String, body: Either<String, Uint8Array>) {
        let body = match &body {
            Either::A(text) => text.as_bytes(),
            Either::B(bytes) => bytes.as_ref(),
        };
        self.0
            .respond(head.as_bytes(), body)
            .unwrap_or_else(|error| lost(&error));
    }

    /// Begins a streamed HTTP response.
    #[napi]
    pub fn head(&mut self, head: String) {
        self.0
            .head(head.as_bytes())
            .unwrap_or_else(|error| lost(&error));
    }

    /// Sends a piece of a streamed body; waits while the server takes no more.
    #[napi]
    pub fn piece(&mut self, piece: Uint8Array) {
        self.0.piece(&piece).unwrap_or_else(|error| lost(&error));
    }

    /// Ends a streamed response.
    #[napi]
    pub fn end(&mut self) {
        self.finish(Kind::ResponseBody, &[]);
    }
}

impl Channel {
    fn finish(&mut self, kind: Kind, payload: &[u8]) {
        self.0
            .finish(kind, payload)
            .unwrap_or_else(|error| lost(&error));
    }
}

fn lost(error: &ChannelError) -> ! {
    let _ = writeln!(
        io::stderr(),
        "hearth: the channel to the server broke: {error}"
    );
    sys::exit_now(EXIT_CHANNEL_BROKEN)
}
