//! A streamed answer: a prelude with status and headers, a body of any length, and its error, if any, in the trailers.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue};

use crate::api::{Answering, Said};
use crate::error::FunctionError;
use crate::requests::{Answer, ERROR_TYPE, accepted, unread};

const RESPONSE_MODE: &str = "lambda-runtime-function-response-mode";
const STREAMING: &[u8] = b"streaming";
const ERROR_BODY: &str = "lambda-runtime-function-error-body";
/// The content type of an answer that begins with a prelude.
const WITH_PRELUDE: &[u8] = b"application/vnd.awslambda.http-integration-response";
/// What ends a prelude.
const PRELUDE_END: [u8; 8] = [0; 8];
/// Longest prelude: a head of a response is one frame of the channel.
const PRELUDE_BYTES: usize = 64 * 1024;

/// The part of an answer that has come before its body.
#[derive(Debug)]
enum Opening {
    /// Of this much of a prelude, the end has not come.
    Prelude(BytesMut),
    /// There is no prelude, and nothing was said.
    Body,
    /// The head was said.
    Over,
}

/// Whether an answer with these headers is one: it is in the streaming mode, or has a prelude, which Go's library sends without
/// a word on the mode.
pub(crate) fn is_one(headers: &HeaderMap) -> bool {
    let mode = headers.get(RESPONSE_MODE).map(HeaderValue::as_bytes);
    mode.is_some_and(|mode| mode.eq_ignore_ascii_case(STREAMING)) || has_prelude(headers)
}

fn has_prelude(headers: &HeaderMap) -> bool {
    let content_type = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    content_type.is_some_and(|value| value.starts_with(WITH_PRELUDE))
}

/// Passes it on as it comes.
pub(crate) async fn pass_on(
    mut answering: Answering,
    headers: &HeaderMap,
    mut body: Incoming,
) -> Answer {
    let mut opening = match has_prelude(headers) {
        true => Opening::Prelude(BytesMut::new()),
        false => Opening::Body,
    };
    let mut failed = None;
    while let Some(frame) = body.frame().await {
        // Its end is missing, which is said by `answering` when it is dropped.
        let Ok(frame) = frame else {
            return unread();
        };
        let piece = match frame.into_data() {
            Ok(piece) => piece,
            Err(frame) => {
                failed = frame.into_trailers().ok().as_ref().and_then(of_trailers);
                continue;
            }
        };
        let piece = match opened(&mut opening, piece) {
            Ok((None, piece)) => piece,
            Ok((Some(head), piece)) => {
                answering.say(head).await;
                piece
            }
            Err(error) => {
                // Read to its end, so that its client hears of it.
                while let Some(Ok(_)) = body.frame().await {}
                answering.finish(Said::Broken(error)).await;
                return accepted();
            }
        };
        if !piece.is_empty() {
            answering.say(Said::Piece(piece)).await;
        }
    }
    if matches!(opening, Opening::Body) && failed.is_none() {
        answering.say(Said::Head(None)).await;
    }
    let last = match (failed, opening) {
        (Some(error), _) => Said::Broken(error),
        (None, Opening::Prelude(_)) => {
            Said::Broken(invalid("the response ended within its prelude"))
        }
        (None, _) => Said::End,
    };
    answering.finish(last).await;
    accepted()
}

/// The head, if it is complete with this piece, and what of the piece is body.
fn opened(opening: &mut Opening, piece: Bytes) -> Result<(Option<Said>, Bytes), FunctionError> {
    let prelude = match opening {
        Opening::Over => return Ok((None, piece)),
        Opening::Body => {
            *opening = Opening::Over;
            return Ok((Some(Said::Head(None)), piece));
        }
        Opening::Prelude(prelude) => prelude,
    };
    // The end may begin in what came before.
    let from = prelude.len().saturating_sub(PRELUDE_END.len());
    prelude.extend_from_slice(&piece);
    let mut parts = prelude[from..].windows(PRELUDE_END.len());
    match parts.position(|part| part == PRELUDE_END) {
        Some(at) if from + at <= PRELUDE_BYTES => {
            let text = prelude.split_to(from + at).freeze();
            let rest = prelude.split_off(PRELUDE_END.len()).freeze();
            *opening = Opening::Over;
            Ok((Some(Said::Head(Some(text))), rest))
        }
        None if prelude.len() <= PRELUDE_BYTES => Ok((None, Bytes::new())),
        _ => Err(invalid(&format!(
            "the response's prelude is longer than {PRELUDE_BYTES} bytes"
        ))),
    }
}

fn invalid(said: &str) -> FunctionError {
    FunctionError::new("Runtime.InvalidResponse", said)
}

/// The error that an answer ends in.
pub(crate) fn of_trailers(trailers: &HeaderMap) -> Option<FunctionError> {
    let text = |name| trailers.get(name).and_then(|value| value.to_str().ok());
    let error_type = text(ERROR_TYPE)?;
    let body = BASE64_STANDARD.decode(text(ERROR_BODY).unwrap_or_default());
    Some(FunctionError::reported(
        &body.unwrap_or_default(),
        Some(error_type),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The head and the body of an answer that comes in these pieces.
    fn read(pieces: &[&[u8]]) -> Result<(Option<Bytes>, Vec<u8>), FunctionError> {
        let mut opening = Opening::Prelude(BytesMut::new());
        let (mut head, mut body) = (None, Vec::new());
        for piece in pieces {
            let (said, rest) = opened(&mut opening, Bytes::copy_from_slice(piece))?;
            if let Some(Said::Head(text)) = said {
                head = text;
            }
            body.extend_from_slice(&rest);
        }
        Ok((head, body))
    }

    #[test]
    fn a_prelude_ends_wherever_pieces_do() {
        let whole = b"{\"statusCode\":201}\0\0\0\0\0\0\0\0body\0\0\0\0\0\0\0\0";
        for cut in 0..whole.len() {
            let (first, second) = whole.split_at(cut);
            let (head, body) = read(&[first, second]).expect("valid");
            assert_eq!(head.as_deref(), Some(&b"{\"statusCode\":201}"[..]), "{cut}");
            assert_eq!(body, b"body\0\0\0\0\0\0\0\0", "{cut}");
        }
        let single: Vec<&[u8]> = whole.chunks(1).collect();
        assert_eq!(read(&single).expect("valid").1, b"body\0\0\0\0\0\0\0\0");
    }

    #[test]
    fn a_prelude_is_bounded() {
        let long = vec![b' '; PRELUDE_BYTES];
        assert!(read(&[&long]).is_ok());
        assert!(read(&[&long, b" "]).is_err());
        assert!(read(&[&long, &PRELUDE_END]).is_ok());
        let longer = [&long[..], b" ", &PRELUDE_END].concat();
        assert!(read(&[&longer]).is_err());
    }
}
