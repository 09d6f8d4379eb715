//! What a request asks for, and how one is refused: with S3's codes.

use hyper::header::{AUTHORIZATION, CONTENT_LENGTH, HeaderMap, TRANSFER_ENCODING};
use hyper::{StatusCode, Uri};
use subtle::ConstantTimeEq as _;

use super::BUCKET;
use super::objects::NoRoom;

/// Longest key, as S3 has it.
const KEY_MAX: usize = 1_024;

/// Begins the value of `x-amz-content-sha256` where a body has signatures among its bytes.
const SIGNED_PARTS: &[u8] = b"STREAMING-";

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) code: &'static str,
    message: String,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
        }
    }

    /// As S3 words it. Nothing of the request is in it.
    pub(super) fn xml(&self) -> String {
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{}</Code><Message>{}</Message></Error>",
            self.code, self.message
        )
    }

    pub(super) fn no_such_key() -> Self {
        let status = StatusCode::NOT_FOUND;
        Self::new(status, "NoSuchKey", "there is no object of this key")
    }

    pub(super) fn method() -> Self {
        let message = "only PUT, GET, HEAD and DELETE of an object";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message)
    }

    pub(super) fn incomplete() -> Self {
        let message = "the body ended before its length";
        Self::new(StatusCode::BAD_REQUEST, "IncompleteBody", message)
    }
}

impl From<NoRoom> for Refusal {
    fn from(error: NoRoom) -> Self {
        let (status, code) = match &error {
            NoRoom::TooLarge(_) => (StatusCode::BAD_REQUEST, "EntityTooLarge"),
            NoRoom::Full => (StatusCode::SERVICE_UNAVAILABLE, "SlowDown"),
            NoRoom::Io(_) => (StatusCode::INTERNAL_SERVER_ERROR, "InternalError"),
        };
        Self::new(status, code, error.to_string())
    }
}

/// Whether a request has the token. How long that takes tells nothing but whether the length is right.
///
/// # Errors
/// It has not.
pub(super) fn check_token(headers: &HeaderMap, token: &str) -> Result<(), Refusal> {
    let given = headers.get(AUTHORIZATION).map(|value| value.as_bytes());
    let given = given.and_then(|value| value.strip_prefix(b"Bearer "));
    if given.is_some_and(|given| given.ct_eq(token.as_bytes()).into()) {
        return Ok(());
    }
    let message = "the store's token is needed: Authorization: Bearer TOKEN";
    Err(Refusal::new(StatusCode::FORBIDDEN, "AccessDenied", message))
}

/// The key in an address.
///
/// # Errors
/// It is none of an object here.
pub(super) fn key(uri: &Uri) -> Result<&str, Refusal> {
    let bad = |code, message: &str| Refusal::new(StatusCode::BAD_REQUEST, code, message);
    if uri.query().is_some() {
        let message = "no parameters are known";
        return Err(Refusal::new(
            StatusCode::NOT_IMPLEMENTED,
            "NotImplemented",
            message,
        ));
    }
    let path = uri.path().strip_prefix('/').unwrap_or_default();
    let Some((bucket, key)) = path.split_once('/').filter(|(_, key)| !key.is_empty()) else {
        return Err(Refusal::method());
    };
    if bucket != BUCKET {
        let message = format!("the only bucket is {BUCKET}");
        return Err(Refusal::new(StatusCode::NOT_FOUND, "NoSuchBucket", message));
    }
    if key.len() > KEY_MAX {
        return Err(bad("KeyTooLongError", "a key has at most 1,024 bytes"));
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
    if !key.bytes().all(is_plain) {
        let message = "a key has letters, digits, and -._~/ only";
        return Err(bad("InvalidURI", message));
    }
    Ok(key)
}

/// The length that a body is announced with.
///
/// # Errors
/// It is announced otherwise, or not at all.
pub(super) fn length(headers: &HeaderMap) -> Result<u64, Refusal> {
    let digest = headers.get("x-amz-content-sha256");
    let is_signed = digest.is_some_and(|value| value.as_bytes().starts_with(SIGNED_PARTS));
    if is_signed || headers.contains_key(TRANSFER_ENCODING) {
        let message = "a body must come as it is, with Content-Length";
        return Err(Refusal::new(
            StatusCode::NOT_IMPLEMENTED,
            "NotImplemented",
            message,
        ));
    }
    let given = headers.get(CONTENT_LENGTH);
    let length = given.and_then(|value| value.to_str().ok()?.parse().ok());
    length.ok_or_else(|| {
        let message = "Content-Length is needed";
        Refusal::new(StatusCode::LENGTH_REQUIRED, "MissingContentLength", message)
    })
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    #[test]
    fn only_the_token_itself_opens() {
        let with = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, HeaderValue::from_static(value));
            check_token(&headers, "secret").map_err(|refusal| refusal.status.as_u16())
        };
        assert_eq!(with("Bearer secret"), Ok(()));
        for wrong in [
            "Bearer secrex",
            "Bearer secre",
            "Bearer secrets",
            "Bearer ",
            "secret",
            "Basic secret",
            "bearer secret",
        ] {
            assert_eq!(with(wrong), Err(403), "{wrong}");
        }
        assert!(check_token(&HeaderMap::new(), "secret").is_err());
    }

    #[test]
    fn an_object_has_a_bucket_and_a_plain_key() {
        let of = |text: &str| {
            let uri: Uri = text.parse().expect("an address");
            key(&uri).map(str::to_owned).map_err(|refusal| refusal.code)
        };
        assert_eq!(of("/stellar/a/b-1.x").as_deref(), Ok("a/b-1.x"));
        let long = format!("/stellar/{}", "k".repeat(1_025));
        for (text, code) in [
            ("/", "MethodNotAllowed"),
            ("/stellar", "MethodNotAllowed"),
            ("/stellar/", "MethodNotAllowed"),
            ("/other/a", "NoSuchBucket"),
            ("/stellar/a?uploads", "NotImplemented"),
            ("/stellar/a%20b", "InvalidURI"),
            (long.as_str(), "KeyTooLongError"),
        ] {
            assert_eq!(of(text), Err(code), "{text}");
        }
    }

    #[test]
    fn a_body_is_announced_with_its_length() {
        let of = |name: &'static str, value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, HeaderValue::from_static(value));
            length(&headers).map_err(|refusal| refusal.code)
        };
        assert_eq!(of("content-length", "12"), Ok(12));
        assert_eq!(of("content-length", "-1"), Err("MissingContentLength"));
        assert_eq!(of("transfer-encoding", "chunked"), Err("NotImplemented"));
        assert_eq!(
            of("x-amz-content-sha256", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"),
            Err("NotImplemented")
        );
    }
}
