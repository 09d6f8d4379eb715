//! Request bodies: read up to a limit, checked to be JSON.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, HttpBody};
use axum::extract::DefaultBodyLimit;
use axum::extract::multipart::MultipartError;
use axum::http::{HeaderMap, HeaderValue, header};
use bytes::{Bytes, BytesMut};
use http_body::{Frame, SizeHint};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde_json::Value;
use serde_json::value::RawValue;

use super::inbound::TooSlow;
use super::problem::{Problem, ProblemCode};

/// Reads a whole body. One that is declared or found to be longer than `limit` bytes is a 413.
pub async fn read(body: Body, limit: usize) -> Result<Bytes, Problem> {
    let mut pieces = Pieces::of(body, limit)?;
    let Some(first) = pieces.next().await? else {
        return Ok(Bytes::new());
    };
    let Some(second) = pieces.next().await? else {
        // The usual body is one piece, which is not copied.
        return Ok(first);
    };
    let known = first.len() + second.len() + pieces.left();
    let mut whole = BytesMut::with_capacity(known.min(limit));
    whole.extend_from_slice(&first);
    whole.extend_from_slice(&second);
    drop((first, second));
    while let Some(piece) = pieces.next().await? {
        whole.extend_from_slice(&piece);
    }
    Ok(whole.freeze())
}

/// A body piece by piece, for who need not have it whole. The same limit holds.
pub struct Pieces {
    body: Body,
    limit: usize,
    taken: usize,
}

impl Pieces {
    /// Those of a body of at most `limit` bytes.
    pub fn of(body: Body, limit: usize) -> Result<Self, Problem> {
        // hyper turns Content-Length into the exact hint. What is not read here, linger.rs takes care of.
        if body.size_hint().lower() > limit as u64 {
            return Err(too_large(limit));
        }
        Ok(Self {
            body,
            limit,
            taken: 0,
        })
    }

    /// The next one, which is not empty.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Problem> {
        while let Some(frame) = self.body.frame().await {
            let frame = frame.map_err(|error| unreadable(&error))?;
            let Ok(data) = frame.into_data() else {
                continue;
            };
            self.taken += data.len();
            if self.taken > self.limit {
                return Err(too_large(self.limit));
            }
            if !data.is_empty() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }

    /// How much is known to come.
    fn left(&self) -> usize {
        usize::try_from(self.body.size_hint().lower()).unwrap_or(usize::MAX)
    }
}

/// 408 for a body that came too slowly, 400 for one that broke off.
pub fn unreadable(error: &(dyn std::error::Error + 'static)) -> Problem {
    match TooSlow::among(error) {
        Some(slow) => Problem::new(ProblemCode::RequestTimeout, slow.to_string()),
        None => {
            let detail = format!("the request's body could not be read: {error}");
            Problem::new(ProblemCode::BadRequestBody, detail)
        }
    }
}

/// A form's body for the parser, at most `limit` bytes of it, in sips: the parser takes whatever is there before it looks
/// at any of it, and would hold the whole body.
pub fn sipped(
    mut request: axum::extract::Request,
    limit: usize,
) -> Result<axum::extract::Request, Problem> {
    if request.body().size_hint().lower() > limit as u64 {
        return Err(too_large(limit));
    }
    // The limit here counts instead of axum's own.
    DefaultBodyLimit::disable().apply(&mut request);
    Ok(request.map(|body| {
        Body::new(Sips {
            inner: Limited::new(body, limit),
            taken: 0,
        })
    }))
}

/// Bytes of one sip.
const SIP: usize = 128 << 10;

struct Sips {
    inner: Limited<Body>,
    taken: usize,
}

impl HttpBody for Sips {
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::BoxError>>> {
        if self.taken >= SIP {
            self.taken = 0;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let polled = Pin::new(&mut self.inner).poll_frame(cx);
        match &polled {
            Poll::Ready(Some(Ok(frame))) => self.taken += frame.data_ref().map_or(0, Bytes::len),
            _ => self.taken = 0,
        }
        polled
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// A form that could not be read, of at most `limit` bytes.
pub fn malformed(error: &MultipartError, limit: usize) -> Problem {
    let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = next {
        if error.is::<LengthLimitError>() {
            return too_large(limit);
        }
        next = error.source();
    }
    match TooSlow::among(error) {
        Some(_) => unreadable(error),
        None => Problem::new(ProblemCode::InvalidMultipart, error.body_text()),
    }
}

/// 413 for a body over `limit` bytes.
pub fn too_large(limit: usize) -> Problem {
    Problem::new(
        ProblemCode::PayloadTooLarge,
        format!("the body is larger than the limit of {limit} bytes"),
    )
    .with("limit", limit)
}

/// Parses a body as JSON.
pub fn json(bytes: &[u8]) -> Result<Value, Problem> {
    serde_json::from_slice(bytes).map_err(|e| invalid_json(bytes, &e))
}

/// Checks that a body is JSON text without building a tree of it.
pub fn check_json(bytes: &[u8]) -> Result<(), Problem> {
    match serde_json::from_slice::<&RawValue>(bytes) {
        Ok(_) => Ok(()),
        Err(e) => Err(invalid_json(bytes, &e)),
    }
}

fn invalid_json(bytes: &[u8], error: &serde_json::Error) -> Problem {
    let detail = if bytes.is_empty() {
        "the body is empty; JSON is expected".to_owned()
    } else {
        format!("the body is not valid JSON: {error}")
    };
    Problem::new(ProblemCode::InvalidJson, detail)
        .with("line", error.line())
        .with("column", error.column())
}

/// The media type of `Content-Type` in lower case, without parameters; empty if the header is missing.
pub fn media_type(headers: &HeaderMap) -> String {
    headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.split(';').next())
        .map(|value| value.trim().to_ascii_lowercase())
        .unwrap_or_default()
}

/// 415 for a body in a content coding (`Content-Encoding: gzip`): bodies are read as they come.
pub fn check_coding(headers: &HeaderMap) -> Result<(), Problem> {
    headers
        .get_all(header::CONTENT_ENCODING)
        .iter()
        .try_for_each(check_one_coding)
}

/// The same for one value of `Content-Encoding`.
pub fn check_one_coding(coding: &HeaderValue) -> Result<(), Problem> {
    let text = coding.to_str().unwrap_or("?").trim();
    if text.is_empty() || text.eq_ignore_ascii_case("identity") {
        return Ok(());
    }
    let shown: String = text.chars().take(40).collect();
    let detail =
        format!("the Content-Encoding {shown:?} is not supported; send the body unencoded");
    // RFC 9110, 15.5.16: so that the client knows that it is the coding and not the type.
    Err(
        Problem::new(ProblemCode::UnsupportedMediaType, detail).header(
            header::ACCEPT_ENCODING,
            HeaderValue::from_static("identity"),
        ),
    )
}

/// `application/json` or anything `+json`.
pub fn is_json(media_type: &str) -> bool {
    media_type == "application/json"
        || (media_type.starts_with("application/") && media_type.ends_with("+json"))
}

/// 415, saying what would be taken.
pub fn unsupported(media_type: &str, taken: &str) -> Problem {
    let sent = match media_type {
        "" => "no Content-Type was sent".to_owned(),
        other => format!("the Content-Type is {other:?}"),
    };
    Problem::new(
        ProblemCode::UnsupportedMediaType,
        format!("{sent}; send {taken}"),
    )
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    fn pieces(sizes: &[usize]) -> Body {
        let pieces: Vec<Result<Bytes, std::io::Error>> = sizes
            .iter()
            .map(|size| Ok(Bytes::from(vec![b'x'; *size])))
            .collect();
        Body::from_stream(stream::iter(pieces))
    }

    #[tokio::test]
    async fn bodies_are_read_up_to_the_limit() {
        assert_eq!(read(Body::empty(), 10).await.unwrap().len(), 0);
        assert_eq!(read(Body::from("0123456789"), 10).await.unwrap().len(), 10);
        assert_eq!(read(pieces(&[4, 0, 5, 1]), 10).await.unwrap().len(), 10);
        for body in [Body::from("0123456789a"), pieces(&[4, 4, 4]), pieces(&[11])] {
            let problem = read(body, 10).await.unwrap_err();
            assert_eq!(problem.code(), ProblemCode::PayloadTooLarge);
        }
    }

    #[test]
    fn json_errors_say_where() {
        let problem = json(b"{\n  \"a\": }").unwrap_err();
        assert_eq!(problem.code(), ProblemCode::InvalidJson);
        let document = problem.document("r");
        assert_eq!(document["line"], 2);
        assert_eq!(document["column"], 8);
        assert!(json(b"").unwrap_err().detail().contains("empty"));
    }

    #[test]
    fn checking_takes_what_json_is_and_survives_depth() {
        for good in ["null", " 1 ", "\"x\"", "[1,{}]", "{\"a\":[]}"] {
            assert!(check_json(good.as_bytes()).is_ok(), "{good}");
        }
        for bad in ["", "nul", "{a:1}", "[1,]", "1 2", "\"\x01\"", "NaN"] {
            assert!(check_json(bad.as_bytes()).is_err(), "{bad}");
        }
        assert!(check_json(b"\"\xff\"").is_err());
        // Far deeper than any stack: neither call may overflow it.
        let mut deep = vec![b'['; 3 << 20];
        assert!(check_json(&deep).is_err());
        deep.extend(vec![b']'; 3 << 20]);
        let _ = check_json(&deep);
        assert!(json(&deep).is_err());
    }
}
