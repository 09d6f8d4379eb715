//! Errors as the API answers them: RFC 9457 `application/problem+json`.
//!
//! A handler returns a [`Problem`]; the outermost layer ([`super::finish`]) renders it, because only there the request
//! id is known. [`convert`] maps every module's errors to problems.

mod catalogue;
mod convert;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value};

pub use catalogue::ProblemCode;

/// The media type of a rendered problem.
pub const MEDIA_TYPE: HeaderValue = HeaderValue::from_static("application/problem+json");

/// An error answer.
#[derive(Debug, Clone)]
pub struct Problem {
    inner: Box<Inner>,
}

#[derive(Debug, Clone)]
struct Inner {
    code: ProblemCode,
    detail: String,
    members: Map<String, Value>,
    headers: HeaderMap,
    /// For the server's log, never for the client.
    cause: Option<String>,
}

impl Problem {
    /// A problem with the sentence that explains this occurrence.
    pub fn new(code: ProblemCode, detail: impl Into<String>) -> Self {
        Self {
            inner: Box::new(Inner {
                code,
                detail: detail.into(),
                members: Map::new(),
                headers: HeaderMap::new(),
                cause: None,
            }),
        }
    }

    /// A 500 whose cause goes to the log only.
    pub fn internal(cause: impl std::fmt::Display) -> Self {
        let mut problem = Self::new(
            ProblemCode::Internal,
            "unexpected error; see the server log for this request id",
        );
        problem.inner.cause = Some(cause.to_string());
        problem
    }

    /// 404.
    pub fn not_found(what: impl std::fmt::Display) -> Self {
        Self::new(ProblemCode::NotFound, format!("there is no {what}"))
    }

    /// Adds an extension member.
    #[must_use]
    pub fn with(mut self, member: &str, value: impl Into<Value>) -> Self {
        self.inner.members.insert(member.to_owned(), value.into());
        self
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.inner.headers.insert(name, value);
        self
    }

    /// Its code.
    pub fn code(&self) -> ProblemCode {
        self.inner.code
    }

    /// The sentence about this occurrence.
    pub fn detail(&self) -> &str {
        &self.inner.detail
    }

    /// After how many seconds to come back, if that is known.
    pub fn retry_after(&self) -> Option<u32> {
        let value = self.inner.headers.get(header::RETRY_AFTER)?;
        value.to_str().ok()?.parse().ok()
    }

    /// What the log should say beyond the detail.
    pub fn cause(&self) -> Option<&str> {
        self.inner.cause.as_deref()
    }

    /// The document, with the request's id.
    pub fn document(&self, request_id: &str) -> Map<String, Value> {
        let code = self.inner.code;
        let mut document = self.inner.members.clone();
        document.insert("type".into(), code.type_uri().into());
        document.insert("title".into(), code.title().into());
        document.insert("status".into(), code.status().as_u16().into());
        document.insert("detail".into(), self.inner.detail.as_str().into());
        document.insert("code".into(), code.name().into());
        document.insert("request_id".into(), request_id.into());
        document
    }

    /// The finished body.
    pub fn body(&self, request_id: &str) -> Body {
        Body::from(Value::Object(self.document(request_id)).to_string())
    }
}

/// A response that carries its problem as an extension; the body is still empty.
impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.inner.code.status().into_response();
        *response.headers_mut() = self.inner.headers.clone();
        response
            .headers_mut()
            .insert(header::CONTENT_TYPE, MEDIA_TYPE);
        response.extensions_mut().insert(self);
        response
    }
}
