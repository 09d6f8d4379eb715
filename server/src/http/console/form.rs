//! Submitted forms, URL-encoded or multipart, and the check that the session's own page submitted them.

use axum::extract::multipart::{Multipart, MultipartError};
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, StatusCode};
use bytes::{Bytes, BytesMut};

use crate::http::App;
use crate::http::auth::X_CSRF_TOKEN;
use crate::http::csrf;
use crate::http::inbound::TooSlow;
use crate::http::problem::{Code, Problem};
use crate::http::spec::MAX_CODE_BYTES;
use crate::http::{body, query};

use super::session::Viewer;

/// Longest text field: an event of 6 MiB with the carriage returns that browsers put in.
const MAX_TEXT_BYTES: usize = 8 << 20;
/// Longest URL-encoded form: settings and environment, nothing large.
const MAX_URLENCODED_BYTES: usize = 256 << 10;
/// Most fields: the settings and an environment of one-letter variables, twice.
const MAX_FIELDS: usize = 4096;
/// The hidden field with the session's CSRF token, for browsers without scripts.
pub(super) const CSRF_FIELD: &str = "csrf";

/// A file of a form.
#[derive(Debug, Clone)]
pub struct Upload {
    /// Its name as the browser gave it.
    pub name: String,
    /// Its content.
    pub bytes: Bytes,
}

/// The fields of a form, in order; repeated names are kept.
#[derive(Debug, Default)]
pub struct Form {
    fields: Vec<(String, String)>,
    /// The chosen file, if one was.
    pub file: Option<Upload>,
}

impl Form {
    /// The first field of this name, or the empty text.
    pub fn text(&self, name: &str) -> &str {
        self.all(name).next().unwrap_or_default()
    }

    /// A number, name or choice: spaces around it were not meant.
    pub fn trimmed(&self, name: &str) -> String {
        self.text(name).trim().to_owned()
    }

    /// Text of several lines. Browsers submit each line end as CR LF; files have LF.
    pub fn lines(&self, name: &str) -> String {
        self.text(name).replace("\r\n", "\n")
    }

    /// All fields, in order.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.fields
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// All fields of this name.
    pub fn all<'f>(&'f self, name: &str) -> impl Iterator<Item = &'f str> {
        self.fields
            .iter()
            .filter(move |(field, _)| field == name)
            .map(|(_, value)| value.as_str())
    }
}

/// A form that the session's own page submitted: the only way for a handler to a changing request's body.
#[derive(Debug)]
pub struct Submitted {
    /// Who did.
    pub viewer: Viewer,
    /// What it says.
    pub form: Form,
    /// The request's headers.
    pub headers: HeaderMap,
}

impl FromRequest<App> for Submitted {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &App) -> Result<Self, Problem> {
        let viewer = request
            .extensions()
            .get::<Viewer>()
            .cloned()
            .ok_or_else(|| Problem::internal("a form outside the console's guard"))?;
        let headers = request.headers().clone();
        let in_header = headers.get(X_CSRF_TOKEN).map(|value| value.as_bytes());
        // A wrong header is refused before the body, which may be large, is read.
        if let Some(sent) = in_header {
            check_csrf(&viewer, sent)?;
        }
        let sent_in_header = in_header.is_some();
        let form = read(request).await?;
        if !sent_in_header {
            check_csrf(&viewer, form.text(CSRF_FIELD).as_bytes())?;
        }
        Ok(Self {
            viewer,
            form,
            headers,
        })
    }
}

fn check_csrf(viewer: &Viewer, sent: &[u8]) -> Result<(), Problem> {
    if csrf::fits(sent, viewer.csrf()) {
        return Ok(());
    }
    Err(Problem::new(
        Code::Forbidden,
        "the form is not of this session: reload the page and try again",
    ))
}

/// Reads a form of either encoding.
pub async fn read(request: Request) -> Result<Form, Problem> {
    match body::media_type(request.headers()).as_str() {
        "multipart/form-data" => {
            let form = Multipart::from_request(request, &())
                .await
                .map_err(|e| Problem::new(Code::InvalidMultipart, e.body_text()))?;
            multipart(form).await
        }
        "application/x-www-form-urlencoded" => {
            let bytes = body::read(request.into_body(), MAX_URLENCODED_BYTES).await?;
            let fields: Vec<_> = query::pairs(&String::from_utf8_lossy(&bytes)).collect();
            if fields.len() > MAX_FIELDS {
                return Err(too_many());
            }
            Ok(Form { fields, file: None })
        }
        // A form without fields: htmx then sends no type.
        "" => Ok(Form::default()),
        other => Err(body::unsupported(
            other,
            "application/x-www-form-urlencoded or multipart/form-data",
        )),
    }
}

async fn multipart(mut form: Multipart) -> Result<Form, Problem> {
    let mut read = Form::default();
    while let Some(mut field) = form.next_field().await.map_err(|e| malformed(&e))? {
        if read.fields.len() >= MAX_FIELDS {
            return Err(too_many());
        }
        let name = field.name().unwrap_or_default().to_owned();
        let file_name = field.file_name().map(str::to_owned);
        let limit = match file_name {
            Some(_) => MAX_CODE_BYTES,
            None => MAX_TEXT_BYTES,
        };
        let mut bytes = BytesMut::new();
        while let Some(chunk) = field.chunk().await.map_err(|e| malformed(&e))? {
            if bytes.len() + chunk.len() > limit {
                return Err(body::too_large(limit));
            }
            bytes.extend_from_slice(&chunk);
        }
        match file_name {
            // Browsers send an empty name for a file that was not chosen.
            Some(file) if file.is_empty() && bytes.is_empty() => {}
            // The forms have one file each; of more, the last is meant.
            Some(file) => {
                read.file = Some(Upload {
                    name: file,
                    bytes: bytes.freeze(),
                });
            }
            None => {
                let text = String::from_utf8(bytes.into())
                    .map_err(|_| Problem::new(Code::InvalidMultipart, "a field is not UTF-8"))?;
                read.fields.push((name, text));
            }
        }
    }
    Ok(read)
}

fn malformed(error: &MultipartError) -> Problem {
    match error.status() {
        StatusCode::PAYLOAD_TOO_LARGE => body::too_large(MAX_CODE_BYTES),
        _ if TooSlow::among(error).is_some() => body::unreadable(error),
        _ => Problem::new(Code::InvalidMultipart, error.body_text()),
    }
}

fn too_many() -> Problem {
    Problem::new(
        Code::InvalidMultipart,
        format!("the form has more than {MAX_FIELDS} fields"),
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::body::Body;
    use jiff::Timestamp;

    use super::*;
    use crate::http::audit::Audit;
    use crate::model::{Caller, Right, TokenView};
    use crate::store::Session;

    fn request(kind: &str, body: &str) -> Request {
        Request::builder()
            .method("POST")
            .header("content-type", kind)
            .body(Body::from(body.to_owned()))
            .expect("a request")
    }

    #[tokio::test]
    async fn both_encodings_give_the_same_fields() {
        let encoded = read(request(
            "application/x-www-form-urlencoded",
            "name=a+b&env_name=X&env_name=Y&code=1%0D%0A2",
        ))
        .await
        .expect("a form");
        let parts = "--b\r\ncontent-disposition: form-data; name=\"name\"\r\n\r\na b\r\n\
            --b\r\ncontent-disposition: form-data; name=\"env_name\"\r\n\r\nX\r\n\
            --b\r\ncontent-disposition: form-data; name=\"env_name\"\r\n\r\nY\r\n\
            --b\r\ncontent-disposition: form-data; name=\"code\"\r\n\r\n1\r\n2\r\n\
            --b\r\ncontent-disposition: form-data; name=\"code_file\"; filename=\"\"\r\n\r\n\r\n--b--\r\n";
        let multipart = read(request("multipart/form-data; boundary=b", parts))
            .await
            .expect("a form");
        for form in [encoded, multipart] {
            assert_eq!(form.text("name"), "a b");
            assert_eq!(form.all("env_name").collect::<Vec<_>>(), ["X", "Y"]);
            assert_eq!(form.lines("code"), "1\n2");
            assert_eq!(form.text("nothing"), "");
            assert!(form.file.is_none());
        }
    }

    #[tokio::test]
    async fn other_types_are_refused() {
        let problem = read(request("text/plain", "name=a"))
            .await
            .expect_err("refused");
        assert_eq!(problem.code(), Code::UnsupportedMediaType);
        let problem = read(request("multipart/form-data; boundary=b", "junk"))
            .await
            .expect_err("refused");
        assert_eq!(problem.code(), Code::InvalidMultipart);
    }

    #[test]
    fn a_form_needs_the_sessions_token() {
        let viewer = |csrf: &str| {
            let token = TokenView {
                id: 1,
                name: "t".into(),
                rights: vec![Right::Read],
                scope: None,
                created_at: Timestamp::UNIX_EPOCH,
                last_used_at: None,
                expires_at: None,
            };
            let session = Session {
                id: 1,
                caller: Caller::Token(Arc::new(token)),
                csrf: csrf.to_owned(),
            };
            Viewer::new(session, String::new(), Audit::default())
        };
        let sent = csrf::masked("secret");
        assert!(check_csrf(&viewer("secret"), sent.as_bytes()).is_ok());
        assert!(check_csrf(&viewer("secres"), sent.as_bytes()).is_err());
        assert!(check_csrf(&viewer("secret"), b"secret").is_err());
        assert!(check_csrf(&viewer("secret"), b"").is_err());
        assert!(check_csrf(&viewer(""), b"").is_err());
    }
}
