//! Answers requests, one after the other, until the server is gone.

use std::io::{self, Write as _};

use hearth_abi::{Kind, Trigger};
use hearth_worker::chain::Content;
use hearth_worker::channel::{Channel, ChannelError, Head};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::block::{Block, Passed, Request};
use crate::chain::InPlace;
use crate::room::Room;
use crate::template::Config;
use crate::{Context, Error, http, panics, sys, template};

/// Status of an instance whose channel broke.
const EXIT_CHANNEL_BROKEN: i32 = 70;

/// Makes this process a function. The event is any type that JSON can be read as, the result any that can be written as JSON.
///
/// A request to the function's URL is an event of payload format 2.0, and a result with `statusCode` is a whole response. As a
/// member of a chain, the function gets the result of the one before, and its own goes to the next.
///
/// Does not return: everything before has been done once, in the process that instances are forked from.
pub fn serve<E, R, H>(mut handler: H) -> !
where
    E: DeserializeOwned,
    R: Serialize,
    H: FnMut(E, &mut Context<'_>) -> Result<R, Error>,
{
    run(false, |channel, config, head| {
        let trigger = head.head.trigger;
        let text = event(channel, trigger);
        channel.handler_begins();
        let mut context = Context::new(channel, config, head);
        let result = panics::caught(|| {
            let event = serde_json::from_slice(&text).map_err(unreadable)?;
            let value = handler(event, &mut context)?;
            serde_json::to_vec(&value).map_err(|error| Error::new("Runtime.MarshalError", error))
        });
        match result {
            Ok(result) => answer(channel, trigger, &result),
            Err(error) => fail(channel, &error),
        }
    })
}

/// Makes this process a function whose handler has the event's text in place, and leaves the result's text there.
///
/// As a member of a chain, it gets the block of shared memory that the request lies in, or the run of blocks. Nothing is copied. For more
/// room there is [`crate::Chain::enlarge`]. Outside of a chain the same handler gets private memory: 1 MiB, or as much as the event
/// has.
///
/// Does not return, as [`serve`].
pub fn serve_blocks<H>(mut handler: H) -> !
where
    H: for<'a> FnMut(Request<'a>, &mut Context<'a, InPlace>) -> Result<Passed<'a>, Error>,
{
    let mut room = Room::default();
    run(true, |channel, config, head| {
        let trigger = head.head.trigger;
        let chain = match trigger {
            Trigger::Chain => channel.chain().ok(),
            _ => None,
        };
        let block = match chain.and_then(|(chain, _)| chain.block()) {
            Some(area) => Block::new(area),
            None => room.put(&event(channel, trigger)),
        };
        channel.handler_begins();
        let request = Request::new(block);
        let mut context = Context::new(channel, config, head);
        let result = panics::caught(|| handler(request, &mut context).map(|passed| passed.len));
        match result {
            Ok(len) if trigger == Trigger::Chain => {
                flush();
                channel.finish_content(Content::InPlace(len.unwrap_or_default()))
            }
            // Only a chain's request can be passed on before.
            Ok(len) => answer(channel, trigger, room.bytes(len.unwrap_or_default())),
            Err(error) => fail(channel, &error),
        }
    })
}

/// Becomes an instance and hands each request to `serve_one`; those of chains with their payloads in place, or with copies.
fn run(
    in_place: bool,
    mut serve_one: impl FnMut(&mut Channel, &Config, Head) -> Result<(), ChannelError>,
) -> ! {
    panics::note_places();
    let (mut channel, config) = template::run();
    channel.leave_in_place(in_place);
    loop {
        let served = match channel.receive() {
            Ok(Some(head)) => serve_one(&mut channel, &config, head),
            Ok(None) => sys::leave(0),
            Err(error) => Err(error),
        };
        if let Err(error) = served {
            // In the function's log.
            let _ = writeln!(io::stderr(), "hearth: {error}");
            sys::leave(EXIT_CHANNEL_BROKEN);
        }
        channel.forget_request();
    }
}

/// The text of the event, with its body if it is an HTTP request.
fn event(channel: &Channel, trigger: Trigger) -> Vec<u8> {
    match trigger {
        Trigger::Http => http::with_body(channel.event(), channel.body()),
        _ => channel.event().to_vec(),
    }
}

fn unreadable(error: serde_json::Error) -> Error {
    Error::new(
        "Runtime.UnmarshalError",
        format!("Unable to unmarshal input: {error}"),
    )
}

fn answer(channel: &mut Channel, trigger: Trigger, result: &[u8]) -> Result<(), ChannelError> {
    channel.handler_ended();
    if trigger != Trigger::Http {
        flush();
        return channel.finish(Kind::ResponseResult, result);
    }
    match http::response(result) {
        Ok((head, body)) => {
            flush();
            channel.respond(head.as_bytes(), &body)
        }
        Err(error) => fail(channel, &error),
    }
}

fn fail(channel: &mut Channel, error: &Error) -> Result<(), ChannelError> {
    flush();
    channel.finish(Kind::ResponseError, &error.to_json())
}

/// What was printed must be in the pipe before the server sees the end of the response.
fn flush() {
    // One that was closed takes nothing.
    let _ = io::stdout().flush();
}
