//! What is done about a request: a piece of a body is kept or read, a whole one is an event.

use std::time::Instant;

use super::answer::{Answer, CoapEvent, From, fitting, of_failure, of_result};
use super::code::Code;
use super::message::{Call, Head, MESSAGE_MAX};
use super::transfers::Place;
use super::{Endpoint, Reply, links};
use crate::model::Trigger;
use crate::triggers::datagrams::Datagram;
use crate::triggers::target::Target;

/// Most bytes of a request's body; fewer where a chain's blocks hold fewer.
const BODY_MAX: usize = 256 << 10;

impl Endpoint {
    /// What a request is answered.
    pub(super) async fn answer(
        &self,
        client: &Datagram,
        head: &Head,
        call: Result<Call, Code>,
        mut target: Target,
    ) -> Reply {
        let call = match call {
            Ok(call) => call,
            Err(code) => {
                self.counters.refused();
                let answer = match code {
                    Code::TOO_LARGE => Answer::too_large(MESSAGE_MAX),
                    code => Answer::of(code),
                };
                return answer.into();
            }
        };
        let now = Instant::now();
        let place = Place::of(client.source, &call);
        if call.block1.is_none() && call.block2.is_some_and(|block| block.number > 0) {
            if let Some(answer) = self.state.lock().downloads.get(&place, now) {
                return Reply::of(answer);
            }
            // The answer to anything else but a GET might be another one now.
            if call.method != Code::GET {
                return Answer::of(Code::INCOMPLETE).into();
            }
        }
        let most = target
            .room()
            .map_or(BODY_MAX, |room| fitting(&call, room).min(BODY_MAX));
        let body = match call.block1 {
            None if call.payload.len() > most => return Answer::too_large(most).into(),
            None => call.payload.clone(),
            Some(block) => {
                let payload = &call.payload;
                let added = self
                    .state
                    .lock()
                    .uploads
                    .add(place, block, payload, most, now);
                match added {
                    Ok(Some(body)) => body,
                    Ok(None) => return Answer::of(Code::CONTINUE).into(),
                    Err(Code::TOO_LARGE) => return Answer::too_large(most).into(),
                    Err(Code::UNAVAILABLE) => return Answer::later(Code::UNAVAILABLE).into(),
                    Err(code) => return Answer::of(code).into(),
                }
            }
        };
        if let Some(links) = links::answer(&call, &target) {
            return links.into();
        }
        let Some(path) = target.take_route(&call.path) else {
            return Answer::of(Code::NOT_FOUND).into();
        };
        let from = From {
            source: client.source.into(),
            port: self.port.number,
            received_at: client.received_at,
            confirmable: head.confirmable,
        };
        let event = CoapEvent::new(&call, path, &body, from);
        // Text and numbers: writing it cannot fail.
        let event = serde_json::to_vec(&event).unwrap_or_default();
        self.counters.accepted();
        let age = client.age();
        let invoked = target.invoke(&self.triggers, Trigger::Coap, event.into(), age);
        let answer = match invoked.await {
            Ok(json) => of_result(&call, json),
            Err(failed) => of_failure(failed),
        };
        answer.into()
    }
}
