//! Carries invocations between the server's channel and the Runtime API, one at a time.

use std::io;
use std::process::ExitStatus;

use bytes::Bytes;
use hearth_abi::{Kind, Trigger};
use hearth_native::http;
use hearth_worker::channel::{Channel, ChannelError, Head};
use hearth_worker::message::{ID_TEXT_BYTES, id_text};
use serde::de::IgnoredAny;
use tokio::runtime::Runtime;
use tokio::sync::mpsc::Receiver;

use crate::api::{Api, Event, Said};
use crate::bootstrap::{self, Bootstrap};
use crate::connections::Connections;
use crate::error::FunctionError;
use crate::template::{Config, INIT_DEADLINE};
use crate::trace::of_trace_context;

/// Longest answer that is no stream, in bytes, as on AWS Lambda.
const ANSWER_BYTES: usize = 6 << 20;
/// The head of a streamed answer that has no prelude.
const NO_PRELUDE: &[u8] =
    br#"{"statusCode":200,"headers":{"content-type":"application/octet-stream"}}"#;
/// What a JSON object of a prelude has instead, if it names no content type.
const BINARY: &str = "application/octet-stream";

/// What serves one instance's invocations.
#[derive(Debug)]
pub(crate) struct Bridge<'a> {
    pub(crate) runtime: &'a Runtime,
    pub(crate) api: &'a Api,
    pub(crate) connections: &'a Connections,
    pub(crate) bootstrap: Bootstrap,
    pub(crate) config: &'a Config,
}

/// How the bootstrap's part in an invocation ended.
#[derive(Debug)]
enum Outcome {
    /// It has answered, and may have ended since.
    Answered,
    /// It has ended without an answer.
    Ended(ExitStatus),
}

impl Bridge<'_> {
    /// Serves until the server is gone. The end of a bootstrap that has not answered, or of which nothing is asked, ends this
    /// process.
    ///
    /// # Errors
    /// The channel broke.
    pub(crate) fn serve(&mut self, channel: &mut Channel) -> Result<(), ChannelError> {
        // A client has copies only.
        channel.leave_in_place(false);
        loop {
            let Some(head) = channel.receive()? else {
                return Ok(());
            };
            self.bootstrap.work();
            let outcome = self.invoke(channel, &head)?;
            channel.forget_request();
            if let Outcome::Ended(status) = outcome {
                bootstrap::leave(status);
            }
            // What it does until it asks again is nobody's invocation, but requests that it sends are answered.
            let ended = self.runtime.block_on(async {
                tokio::select! {
                    status = self.bootstrap.ended() => Some(status),
                    _ = self.api.asked() => None,
                }
            });
            if let Some(status) = ended {
                self.replace(status);
                channel.count_in(self.bootstrap.pid());
            }
            self.bootstrap.rest();
        }
    }

    /// Starts another bootstrap for one that has ended once it had answered, as libraries end it after a panic. As on AWS Lambda:
    /// the next request may be on its way to this instance, and is not to fail for the one before. What fails then ends this
    /// process.
    fn replace(&mut self, ended: io::Result<ExitStatus>) {
        let Ok(ended) = ended else {
            return;
        };
        // What it had asked for goes with its connections.
        self.runtime.block_on(self.connections.heard_out());
        let Ok(another) = Bootstrap::start(&Connections::address()) else {
            bootstrap::leave(ended);
        };
        let failed = self.runtime.block_on(async {
            tokio::select! {
                biased;
                _ = self.api.asked() => None,
                status = another.ended() => Some(status.unwrap_or(ended)),
                () = tokio::time::sleep(INIT_DEADLINE) => Some(ended),
            }
        });
        if let Some(status) = failed {
            bootstrap::leave(status);
        }
        self.bootstrap = another;
    }

    fn invoke(&self, channel: &mut Channel, head: &Head) -> Result<Outcome, ChannelError> {
        let trigger = head.head.trigger;
        let event = self.event(channel, head);
        channel.handler_begins();
        let said = self.api.begin(event);
        self.runtime.block_on(async {
            let mut answer = Answer {
                channel,
                bootstrap: &self.bootstrap,
                trigger,
                said,
                gathered: None,
            };
            tokio::select! {
                biased;
                done = answer.pass_on() => done.map(|()| Outcome::Answered),
                status = self.bootstrap.ended() => {
                    // What it has sent before is there to be read.
                    tokio::select! {
                        biased;
                        done = answer.pass_on() => return done.map(|()| Outcome::Answered),
                        () = self.connections.heard_out() => {}
                    }
                    match status {
                        Ok(status) => Ok(Outcome::Ended(status)),
                        Err(error) => Err(ChannelError::Go(error)),
                    }
                }
            }
        })
    }

    fn event(&self, channel: &Channel, head: &Head) -> Event {
        let body = match head.head.trigger {
            Trigger::Http => http::with_body(channel.event(), channel.body()),
            _ => channel.event().to_vec(),
        };
        let mut id = [0; ID_TEXT_BYTES];
        let Config {
            function, version, ..
        } = self.config;
        Event {
            id: id_text(channel.id(), &mut id).to_owned(),
            deadline_ms: head.head.deadline_unix_us / 1000,
            arn: format!("arn:hearth:lambda:local:0:function:{function}:{version}"),
            trace: head.traceparent.as_deref().and_then(of_trace_context),
            body: body.into(),
            answer_bytes: ANSWER_BYTES,
        }
    }
}

/// An answer on its way from the API to the server.
struct Answer<'a> {
    channel: &'a mut Channel,
    bootstrap: &'a Bootstrap,
    trigger: Trigger,
    said: Receiver<Said>,
    /// A streamed answer that has to be whole.
    gathered: Option<Vec<u8>>,
}

impl Answer<'_> {
    /// Passes all of it on. Dropped between two pieces, it can go on with another call.
    async fn pass_on(&mut self) -> Result<(), ChannelError> {
        loop {
            match self.said.recv().await {
                Some(Said::Head(prelude)) => {
                    if !self.head(prelude)? {
                        return Ok(());
                    }
                }
                Some(Said::Piece(piece)) => match &mut self.gathered {
                    None => self.channel.piece(&piece)?,
                    // One byte more than may be tells the server.
                    Some(all) => {
                        let room = (ANSWER_BYTES + 1).saturating_sub(all.len());
                        all.extend_from_slice(&piece[..piece.len().min(room)]);
                    }
                },
                Some(Said::End) => {
                    return match self.gathered.take() {
                        Some(all) => self.whole(&all),
                        None => self.finish(Kind::ResponseBody, &[]),
                    };
                }
                Some(Said::Answer(answer)) => return self.whole(&answer),
                Some(Said::Error(error) | Said::Broken(error)) => return self.fail(&error),
                Some(Said::TooLong) => return self.too_long(),
                None => {
                    let said = "the response broke off";
                    return self.fail(&FunctionError::new("Runtime.TruncatedResponse", said));
                }
            }
        }
    }

    /// Returns whether a body follows: where the prelude is wrong, the invocation has its answer.
    fn head(&mut self, prelude: Option<Bytes>) -> Result<bool, ChannelError> {
        if self.trigger != Trigger::Http {
            // Whoever called gets the result as JSON, and so as a whole.
            self.gathered = Some(Vec::new());
            return Ok(true);
        }
        match streamed_head(prelude.as_deref().unwrap_or(NO_PRELUDE)) {
            Ok(head) => self.channel.head(head.as_bytes()).map(|()| true),
            Err(error) => {
                self.said.close();
                self.fail(&error).map(|()| false)
            }
        }
    }

    fn whole(&mut self, answer: &[u8]) -> Result<(), ChannelError> {
        if answer.len() > ANSWER_BYTES {
            return self.too_long();
        }
        if self.trigger == Trigger::Http {
            return match http::response(answer) {
                Ok((head, body)) => {
                    self.bootstrap.pass_on();
                    self.channel.respond(head.as_bytes(), &body)
                }
                Err(error) => self.finish(
                    Kind::ResponseError,
                    &serde_json::to_vec(&error).unwrap_or_default(),
                ),
            };
        }
        match serde_json::from_slice::<IgnoredAny>(answer) {
            Ok(_) => self.finish(Kind::ResponseResult, answer),
            Err(error) => {
                let said = format!("the response is not JSON: {error}");
                self.fail(&FunctionError::new("Runtime.InvalidResponse", &said))
            }
        }
    }

    /// The server refuses a result that is too long itself, in its own words; of the body of an HTTP answer it would not.
    fn too_long(&mut self) -> Result<(), ChannelError> {
        match self.trigger {
            Trigger::Invoke | Trigger::Async | Trigger::Schedule => {
                self.finish(Kind::ResponseResult, &vec![b' '; ANSWER_BYTES + 1])
            }
            _ => {
                let said = format!(
                    "the response is longer than {ANSWER_BYTES} bytes; a streamed one may be"
                );
                self.fail(&FunctionError::new("Function.ResponseSizeTooLarge", &said))
            }
        }
    }

    fn fail(&mut self, error: &FunctionError) -> Result<(), ChannelError> {
        self.finish(Kind::ResponseError, &error.to_json())
    }

    /// Sends the last of it, after what was printed.
    fn finish(&mut self, kind: Kind, payload: &[u8]) -> Result<(), ChannelError> {
        self.bootstrap.pass_on();
        self.channel.finish(kind, payload)
    }
}

/// The head of a streamed answer, from its prelude.
fn streamed_head(prelude: &[u8]) -> Result<String, FunctionError> {
    let invalid = |said: &str| FunctionError::new("Runtime.InvalidResponse", said);
    let mut prelude: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(prelude)
        .map_err(|error| {
        invalid(&format!(
            "the response's prelude is no JSON object: {error}"
        ))
    })?;
    prelude.remove("body");
    prelude.entry("statusCode").or_insert(200.into());
    let headers = prelude
        .entry("headers")
        .or_insert_with(|| serde_json::json!({}));
    if let Some(headers) = headers.as_object_mut() {
        let is_content_type = |name: &String| name.eq_ignore_ascii_case("content-type");
        if !headers.keys().any(is_content_type) {
            headers.insert("content-type".to_owned(), BINARY.into());
        }
    }
    let text = serde_json::Value::Object(prelude).to_string();
    let (head, _) = http::response(text.as_bytes()).map_err(|error| invalid(&error.to_string()))?;
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prelude_becomes_a_head() {
        let head = streamed_head(br#"{"headers":{"X-A":"b"},"cookies":["c=d"],"statusCode":201}"#);
        assert_eq!(
            head.expect("valid"),
            r#"{"headers":[["X-A","b"],["content-type","application/octet-stream"],["set-cookie","c=d"]],"statusCode":201}"#
        );
        assert!(streamed_head(NO_PRELUDE).is_ok());
        for wrong in [&b"[]"[..], b"{", br#"{"statusCode":1}"#] {
            assert!(streamed_head(wrong).is_err());
        }
    }
}
