//! The two kinds of response: a whole result, and an HTTP response as it arrives.

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use hearth_abi::Kind;
use serde::Deserialize;

use super::Exchange;
use crate::engine::invoke::Receipt;
use crate::engine::invoke::bodies::ReadAhead;
use crate::engine::{InvokeError, InvokeReply};

/// Largest result of `invoke`, as Lambda's: it is held in memory whole.
pub(super) const MAX_RESULT: u64 = 6 * 1024 * 1024;
/// Longest result whose JSON is checked on the receiving thread, about a tenth of a millisecond; a longer one must not
/// delay other requests.
const CHECKED_AT_ONCE: usize = 128 * 1024;

/// RESPONSE_HEAD, as the runtime writes it.
#[derive(Deserialize)]
struct ResponseHead {
    #[serde(rename = "statusCode")]
    status: u16,
    headers: Vec<(String, String)>,
}

// Kept as a function of its own: `make bench SUITE=chains` counts its calls.
#[inline(never)]
fn response_head(head: &[u8]) -> serde_json::Result<ResponseHead> {
    serde_json::from_slice(head)
}

impl Exchange {
    /// Event in, result out.
    pub(in crate::engine::invoke) async fn invoke(
        mut self,
        receipt: &mut Receipt,
    ) -> Result<InvokeReply, InvokeError> {
        let answer = async {
            self.send(true).await?;
            let mut result = Vec::new();
            loop {
                let received = self.receive(&mut result).await?;
                match received.kind {
                    Kind::ResponseError => return Err(self.error(result, received.more).await),
                    Kind::ResponseResult => {}
                    other => return Err(self.out_of_turn(other)),
                }
                self.count_response(result.len());
                if result.len() as u64 > MAX_RESULT {
                    return Err(self.too_large(received.more).await);
                }
                if !received.more {
                    return Ok(result);
                }
            }
        }
        .await;
        let answer = match answer {
            Ok(result) => checked_result(result).await,
            error => error,
        };
        if let (Ok(result), Some(captured)) = (&answer, self.captured()) {
            captured.result(result);
        }
        let answer = self
            .conclude(answer)
            .await
            .map(|result| InvokeReply::Json(result.into()));
        *receipt = self.receipt();
        answer
    }

    /// HTTP request in, response out as it comes.
    pub(in crate::engine::invoke) async fn http(
        mut self,
        body: ReadAhead,
        receipt: &mut Receipt,
    ) -> Result<InvokeReply, InvokeError> {
        let head = async {
            // One that sleeps is woken once.
            self.send(!body.is_at_hand()).await?;
            self.send_body(body).await?;
            let mut head = Vec::new();
            let received = self.receive(&mut head).await?;
            match received.kind {
                Kind::ResponseError => Err(self.error(head, received.more).await),
                Kind::ResponseHead if !received.more => {
                    if let Some(captured) = self.captured() {
                        captured.head(&head);
                    }
                    response_head(&head).map_err(|error| {
                        self.broken(format!("its response head makes no sense: {error}"))
                    })
                }
                other => Err(self.out_of_turn(other)),
            }
        }
        .await;
        let ResponseHead { status, headers } = match head {
            Ok(head) => head,
            Err(error) => {
                let answer = self.conclude(Err(error)).await;
                *receipt = self.receipt();
                return answer;
            }
        };
        // Most bodies are complete by now: then the stage times are final and go into the headers.
        let mut first = Vec::new();
        let body = match self.receive_ready(&mut first) {
            Ok(Some(received)) if received.kind == Kind::ResponseBody && !received.more => {
                self.count_response(first.len());
                if let Some(captured) = self.captured() {
                    captured.result(&first);
                }
                let done = self.conclude(Ok(first)).await;
                *receipt = self.receipt();
                stream::once(async move { done.map(Bytes::from).map_err(std::io::Error::other) })
                    .boxed()
            }
            ready => {
                *receipt = self.receipt();
                let started = ready.map(|received| received.map(|received| (received, first)));
                self.into_body(started)
            }
        };
        Ok(InvokeReply::Http {
            status,
            headers,
            body,
        })
    }
}

/// A result is sent as `application/json`, so it must be JSON, whatever the worker says.
async fn checked_result(result: Vec<u8>) -> Result<Vec<u8>, InvokeError> {
    let (result, checked) = if result.len() <= CHECKED_AT_ONCE {
        let checked = check_json(&result);
        (result, checked)
    } else {
        let check = move || {
            let checked = check_json(&result);
            (result, checked)
        };
        tokio::task::spawn_blocking(check)
            .await
            .map_err(|error| InvokeError::Internal(error.to_string()))?
    };
    match checked {
        Ok(()) => Ok(result),
        Err(why) => Err(InvokeError::InvalidResult(why)),
    }
}

fn check_json(text: &[u8]) -> Result<(), String> {
    let text = std::str::from_utf8(text).map_err(|error| error.to_string())?;
    serde_json::from_str::<serde::de::IgnoredAny>(text)
        .map(drop)
        .map_err(|error| error.to_string())
}
