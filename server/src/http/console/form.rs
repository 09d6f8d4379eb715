//! Submitted forms, URL-encoded or multipart, and the check that the session's own page submitted them.

mod shape;

use std::marker::PhantomData;

use axum::extract::multipart::{Multipart, MultipartError};
use axum::extract::{FromRequest, Request};
use axum::http::HeaderMap;

use crate::http::App;
use crate::http::auth::X_CSRF_TOKEN;
use crate::http::body;
use crate::http::csrf;
use crate::http::problem::{self, Problem};
use crate::uploads::{Upload, UploadSpace, Uploads};

use self::shape::SETTINGS;
use super::session::Viewer;

pub use self::shape::{CodeFields, Event, Experiment, Kind, LOGIN, Settings, Shape};

/// Bytes of a field before the session's token has come: it stands first in every form.
const UNPROVEN_BYTES: usize = 4 << 10;

/// The hidden field with the session's CSRF token, for browsers without scripts.
pub(super) const CSRF_FIELD: &str = "csrf";

/// A file of a form.
#[derive(Debug, Clone)]
pub struct Chosen {
    /// Its name as the browser gave it.
    pub name: String,
    /// Its content.
    pub content: Upload,
}

/// The fields of a form, in order; repeated names are kept.
#[derive(Debug, Default)]
pub struct Form {
    fields: Vec<(String, String)>,
    /// The chosen file, if one was.
    pub file: Option<Chosen>,
    /// What the fields take in memory.
    _held: Option<UploadSpace>,
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

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
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
        let form = read_proving(request, &K::SHAPE, &app.uploads, unproven).await?;
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
        problem::ProblemCode::Forbidden,
        "the form belongs to another session; reload the page and try again",
    )
}

/// Reads a form of either encoding, as far as it has its shape.
pub async fn read(request: Request, shape: &Shape, uploads: &Uploads) -> Result<Form, Problem> {
    read_proving(request, shape, uploads, None).await
}

/// The same, but reads nothing large before the CSRF token is verified.
async fn read_proving(
    request: Request,
    shape: &Shape,
    uploads: &Uploads,
    unproven: Option<&Viewer>,
) -> Result<Form, Problem> {
    match body::media_type(request.headers()).as_str() {
        "multipart/form-data" => {
            let request = body::sipped(request, shape.total)?;
            let form = Multipart::from_request(request, &())
                .await
                .map_err(|e| Problem::new(problem::ProblemCode::InvalidMultipart, e.body_text()))?;
            multipart(form, shape, uploads, unproven).await
        }
        "application/x-www-form-urlencoded" => {
            let limit = shape.total.min(SETTINGS.total);
            let bytes = body::read(request.into_body(), limit).await?;
            let fields: Vec<_> = form_urlencoded::parse(&bytes).into_owned().collect();
            if fields.len() > shape.fields {
                return Err(too_many(shape));
            }
            Ok(Form {
                fields,
                ..Form::default()
            })
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
    uploads: &Uploads,
    mut unproven: Option<&Viewer>,
) -> Result<Form, Problem> {
    let mut read = Form::default();
    let (mut texts, mut held) = (0, uploads.in_memory());
    while let Some(mut field) = form.next_field().await.map_err(|e| malformed(&e, shape))? {
        if read.fields.len() >= shape.fields {
            return Err(too_many(shape));
        }
        let name = field.name().unwrap_or_default().to_owned();
        if let Some(file) = field.file_name().map(str::to_owned) {
            let mut spool = uploads.spool();
            while let Some(chunk) = field.chunk().await.map_err(|e| malformed(&e, shape))? {
                check_length(spool.len() + chunk.len(), shape.file, unproven)?;
                spool.write(&chunk).await?;
            }
            // Browsers send an empty name for a file that was not chosen. The forms have one file each; of more, the last
            // is meant.
            if !(file.is_empty() && spool.is_empty()) {
                read.file = Some(Chosen {
                    name: file,
                    content: spool.finish().await?,
                });
            }
            continue;
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = field.chunk().await.map_err(|e| malformed(&e, shape))? {
            check_length(bytes.len() + chunk.len(), shape.text, unproven)?;
            texts += chunk.len();
            if texts > shape.total - shape.file {
                return Err(body::too_large(shape.total - shape.file));
            }
            held.grow_to(texts)?;
            bytes.extend_from_slice(&chunk);
        }
        let text = String::from_utf8(bytes).map_err(|_| {
            Problem::new(
                problem::ProblemCode::InvalidMultipart,
                "a field is not UTF-8",
            )
        })?;
        if let Some(viewer) = unproven.take_if(|_| name == CSRF_FIELD) {
            check_csrf(viewer, text.as_bytes())?;
        }
        read.fields.push((name, text));
    }
    Ok(Form {
        _held: Some(held),
        ..read
    })
}

fn check_length(length: usize, limit: usize, unproven: Option<&Viewer>) -> Result<(), Problem> {
    if unproven.is_some() && length > UNPROVEN_BYTES {
        return Err(not_of_this_session());
    }
    if length > limit {
        return Err(body::too_large(limit));
    }
    Ok(())
}

fn malformed(error: &MultipartError, shape: &Shape) -> Problem {
    body::malformed(error, shape.total)
}

fn too_many(shape: &Shape) -> Problem {
    Problem::new(
        problem::ProblemCode::InvalidMultipart,
        format!("the form has more than {} fields", shape.fields),
    )
}

/// The form that a URL-encoded body is.
#[cfg(test)]
pub async fn encoded<K: Kind>(body: &str) -> Form {
    let request = Request::builder()
        .method("POST")
        .header("content-type", "application/x-www-form-urlencoded")
        .body(axum::body::Body::from(body.to_owned()))
        .expect("a request");
    let read = read(request, &K::SHAPE, &Uploads::for_tests()).await;
    read.expect("a form")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::body::Body;
    use jiff::Timestamp;

    use super::shape::{CODE, EVENT, EXPERIMENT};
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
            &Uploads::for_tests(),
        )
        .await
        .expect("a form");
        let parts = "--b\r\ncontent-disposition: form-data; name=\"name\"\r\n\r\na b\r\n\
            --b\r\ncontent-disposition: form-data; name=\"env_name\"\r\n\r\nX\r\n\
            --b\r\ncontent-disposition: form-data; name=\"env_name\"\r\n\r\nY\r\n\
            --b\r\ncontent-disposition: form-data; name=\"code\"\r\n\r\n1\r\n2\r\n\
            --b\r\ncontent-disposition: form-data; name=\"code_file\"; filename=\"\"\r\n\r\n\r\n--b--\r\n";
        let parts = request("multipart/form-data; boundary=b", parts);
        let multipart = read(parts, &CODE, &Uploads::for_tests())
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
        let uploads = Uploads::for_tests();
        let problem = read(request("text/plain", "name=a"), &LOGIN, &uploads)
            .await
            .expect_err("refused");
        assert_eq!(problem.code(), problem::ProblemCode::UnsupportedMediaType);
        let junk = request("multipart/form-data; boundary=b", "junk");
        let problem = read(junk, &LOGIN, &uploads).await.expect_err("refused");
        assert_eq!(problem.code(), problem::ProblemCode::InvalidMultipart);
    }

    /// A form of (field, file name or "", bytes), whose length is not known beforehand.
    async fn submitted(shape: &Shape, parts: &[(&str, &str, usize)]) -> Result<Form, Problem> {
        let mut pieces = Vec::new();
        for (name, file, bytes) in parts {
            let file = match *file {
                "" => String::new(),
                file => format!("; filename=\"{file}\""),
            };
            let head =
                format!("--b\r\ncontent-disposition: form-data; name=\"{name}\"{file}\r\n\r\n");
            pieces.push(bytes::Bytes::from(head));
            pieces.push(vec![b'x'; *bytes].into());
            pieces.push("\r\n".into());
        }
        pieces.push("--b--\r\n".into());
        let pieces = pieces.into_iter().map(Ok::<_, std::io::Error>);
        let request = Request::builder()
            .method("POST")
            .header("content-type", "multipart/form-data; boundary=b")
            .body(Body::from_stream(futures_util::stream::iter(pieces)))
            .expect("a request");
        read(request, shape, &Uploads::for_tests()).await
    }

    #[tokio::test]
    async fn every_form_has_its_own_limits() {
        let too_large = problem::ProblemCode::PayloadTooLarge;
        for (shape, name) in [
            (LOGIN, "log-in"),
            (SETTINGS, "settings"),
            (EVENT, "event"),
            (EXPERIMENT, "experiment"),
            (CODE, "code"),
        ] {
            // As large as its fields may be, and one byte more.
            let form = submitted(&shape, &[("a", "", shape.text)]).await;
            assert_eq!(form.expect(name).text("a").len(), shape.text, "{name}");
            let refused = submitted(&shape, &[("a", "", shape.text + 1)]).await;
            assert_eq!(refused.expect_err(name).code(), too_large, "{name}");
            // Each field is good, and all of them are too much.
            let texts = shape.total - shape.file;
            let many = vec![("a", "", shape.text); texts / shape.text + 1];
            let refused = submitted(&shape, &many).await;
            assert_eq!(refused.expect_err(name).code(), too_large, "{name}");
            // Small, and too many.
            let many = vec![("a", "", 0); shape.fields + 1];
            let refused = submitted(&shape, &many).await.expect_err(name).code();
            let expected = match shape.fields * 52 > shape.total {
                true => too_large,
                false => problem::ProblemCode::InvalidMultipart,
            };
            assert_eq!(refused, expected, "{name}");
            // A file is for the form that has one.
            let file = submitted(&shape, &[("f", "a.zip", 1 << 20)]).await;
            match shape.file {
                0 => assert_eq!(file.expect_err(name).code(), too_large, "{name}"),
                _ => assert_eq!(file.expect(name).file.expect("one").content.len(), 1 << 20),
            }
        }
    }

    #[tokio::test]
    async fn a_url_encoded_form_is_never_larger_than_settings() {
        for shape in [LOGIN, SETTINGS, EVENT, EXPERIMENT, CODE] {
            let limit = shape.total.min(SETTINGS.total);
            for (bytes, taken) in [(limit, true), (limit + 1, false)] {
                let body = format!("a={}", "x".repeat(bytes - 2));
                let request = request("application/x-www-form-urlencoded", &body);
                let form = read(request, &shape, &Uploads::for_tests()).await;
                assert_eq!(form.is_ok(), taken, "{bytes}");
            }
            let fields = "a&".repeat(shape.fields + 1);
            if fields.len() <= limit {
                let request = request("application/x-www-form-urlencoded", &fields);
                let refused = read(request, &shape, &Uploads::for_tests()).await;
                let code = refused.expect_err("too many").code();
                assert_eq!(code, problem::ProblemCode::InvalidMultipart);
            }
        }
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
