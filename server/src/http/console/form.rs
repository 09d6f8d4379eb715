//! Submitted forms, URL-encoded or multipart, and the check that the session's own page submitted them.

use std::marker::PhantomData;

use axum::extract::multipart::{Multipart, MultipartError};
use axum::extract::{FromRequest, Request};
use axum::http::HeaderMap;
use bytes::{Bytes, BytesMut};

use crate::http::App;
use crate::http::auth::X_CSRF_TOKEN;
use crate::http::csrf;
use crate::http::problem::{self, Problem};
use crate::http::spec::MAX_CODE_BYTES;
use crate::http::{body, query, uploads};

use super::session::Viewer;

/// What a form may have: enforced while it is read, so that nobody fills the server's memory with what no form of the
/// console sends.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Bytes of the whole body.
    total: usize,
    /// Bytes of one text field.
    text: usize,
    /// Fields.
    fields: usize,
    /// Bytes of a file; 0 where the form has none.
    file: usize,
}

/// A name, a password, a code, and where to go next.
pub const LOGIN: Shape = Shape {
    total: 16 << 10,
    text: 4 << 10,
    fields: 16,
    file: 0,
};
/// Settings with the whole environment, twice: in one-letter variables, of which each row is a name and a value.
const SETTINGS: Shape = Shape {
    total: 256 << 10,
    text: 64 << 10,
    fields: 4096,
    file: 0,
};
/// An event of 6 MiB with the carriage returns that browsers put in, or a request.
const EVENT: Shape = Shape {
    total: 9 << 20,
    text: 8 << 20,
    fields: 64,
    file: 0,
};
/// Settings, and code as text or as a file.
const CODE: Shape = Shape {
    total: MAX_CODE_BYTES + (16 << 20),
    text: 8 << 20,
    fields: 4096,
    file: MAX_CODE_BYTES,
};
/// Bytes of a field before the session's token has come: it stands first in every form.
const UNPROVEN_BYTES: usize = 4 << 10;

/// The form that a handler takes, as a type.
pub trait Kind {
    /// What it may have.
    const SHAPE: Shape;
}

/// [`SETTINGS`].
#[derive(Debug)]
pub struct Settings;
/// [`EVENT`].
#[derive(Debug)]
pub struct Event;
/// [`CODE`].
#[derive(Debug)]
pub struct Code;

impl Kind for Settings {
    const SHAPE: Shape = SETTINGS;
}
impl Kind for Event {
    const SHAPE: Shape = EVENT;
}
impl Kind for Code {
    const SHAPE: Shape = CODE;
}

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
pub struct Submitted<K = Settings> {
    /// Who did.
    pub viewer: Viewer,
    /// What it says.
    pub form: Form,
    /// The request's headers.
    pub headers: HeaderMap,
    /// Which form it is.
    pub kind: PhantomData<K>,
}

impl<K: Kind> FromRequest<App> for Submitted<K> {
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
        let unproven = in_header.is_none().then_some(&viewer);
        let form = read_proving(request, &K::SHAPE, unproven).await?;
        // A form without the field proves nothing.
        if let Some(viewer) = unproven {
            check_csrf(viewer, form.text(CSRF_FIELD).as_bytes())?;
        }
        Ok(Self {
            viewer,
            form,
            headers,
            kind: PhantomData,
        })
    }
}

fn check_csrf(viewer: &Viewer, sent: &[u8]) -> Result<(), Problem> {
    if csrf::fits(sent, viewer.csrf()) {
        return Ok(());
    }
    Err(not_of_this_session())
}

fn not_of_this_session() -> Problem {
    Problem::new(
        problem::Code::Forbidden,
        "the form is not of this session: reload the page and try again",
    )
}

/// Reads a form of either encoding, as far as it has its shape.
pub async fn read(request: Request, shape: &Shape) -> Result<Form, Problem> {
    read_proving(request, shape, None).await
}

/// The same; of a viewer who has not proven yet that the form is of this session, nothing large is read before.
async fn read_proving(
    request: Request,
    shape: &Shape,
    unproven: Option<&Viewer>,
) -> Result<Form, Problem> {
    match body::media_type(request.headers()).as_str() {
        "multipart/form-data" => {
            let request = body::sipped(request, shape.total)?;
            let form = Multipart::from_request(request, &())
                .await
                .map_err(|e| Problem::new(problem::Code::InvalidMultipart, e.body_text()))?;
            multipart(form, shape, unproven).await
        }
        "application/x-www-form-urlencoded" => {
            let limit = shape.total.min(SETTINGS.total);
            let bytes = body::read(request.into_body(), limit).await?;
            let fields: Vec<_> = query::pairs(&String::from_utf8_lossy(&bytes)).collect();
            if fields.len() > shape.fields {
                return Err(too_many(shape));
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

async fn multipart(
    mut form: Multipart,
    shape: &Shape,
    mut unproven: Option<&Viewer>,
) -> Result<Form, Problem> {
    let mut read = Form::default();
    while let Some(mut field) = form.next_field().await.map_err(|e| malformed(&e, shape))? {
        if read.fields.len() >= shape.fields {
            return Err(too_many(shape));
        }
        let name = field.name().unwrap_or_default().to_owned();
        let file_name = field.file_name().map(str::to_owned);
        let limit = match file_name {
            Some(_) => shape.file,
            None => shape.text,
        };
        let mut bytes = BytesMut::new();
        let mut held = None;
        while let Some(chunk) = field.chunk().await.map_err(|e| malformed(&e, shape))? {
            let length = bytes.len() + chunk.len();
            if unproven.is_some() && length > UNPROVEN_BYTES {
                return Err(not_of_this_session());
            }
            if length > limit {
                return Err(body::too_large(limit));
            }
            uploads::hold(&mut held, length)?;
            bytes.extend_from_slice(&chunk);
        }
        match file_name {
            // Browsers send an empty name for a file that was not chosen.
            Some(file) if file.is_empty() && bytes.is_empty() => {}
            // The forms have one file each; of more, the last is meant.
            Some(file) => {
                read.file = Some(Upload {
                    name: file,
                    bytes: uploads::kept(bytes.freeze(), held),
                });
            }
            None => {
                let text = String::from_utf8(bytes.into()).map_err(|_| {
                    Problem::new(problem::Code::InvalidMultipart, "a field is not UTF-8")
                })?;
                if let Some(viewer) = unproven.take_if(|_| name == CSRF_FIELD) {
                    check_csrf(viewer, text.as_bytes())?;
                }
                read.fields.push((name, text));
            }
        }
    }
    Ok(read)
}

fn malformed(error: &MultipartError, shape: &Shape) -> Problem {
    body::malformed(error, shape.total)
}

fn too_many(shape: &Shape) -> Problem {
    Problem::new(
        problem::Code::InvalidMultipart,
        format!("the form has more than {} fields", shape.fields),
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
        let encoded = read(
            request(
                "application/x-www-form-urlencoded",
                "name=a+b&env_name=X&env_name=Y&code=1%0D%0A2",
            ),
            &CODE,
        )
        .await
        .expect("a form");
        let parts = "--b\r\ncontent-disposition: form-data; name=\"name\"\r\n\r\na b\r\n\
            --b\r\ncontent-disposition: form-data; name=\"env_name\"\r\n\r\nX\r\n\
            --b\r\ncontent-disposition: form-data; name=\"env_name\"\r\n\r\nY\r\n\
            --b\r\ncontent-disposition: form-data; name=\"code\"\r\n\r\n1\r\n2\r\n\
            --b\r\ncontent-disposition: form-data; name=\"code_file\"; filename=\"\"\r\n\r\n\r\n--b--\r\n";
        let multipart = read(request("multipart/form-data; boundary=b", parts), &CODE)
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
        let problem = read(request("text/plain", "name=a"), &LOGIN)
            .await
            .expect_err("refused");
        assert_eq!(problem.code(), problem::Code::UnsupportedMediaType);
        let problem = read(request("multipart/form-data; boundary=b", "junk"), &LOGIN)
            .await
            .expect_err("refused");
        assert_eq!(problem.code(), problem::Code::InvalidMultipart);
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
