//! A client of the REST API, for tests.

use std::time::Duration;

use reqwest::header::HeaderMap;
use reqwest::multipart::{Form, Part};
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};

/// Speaks with one server as one token. Cheap to clone.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    url: String,
    token: Option<String>,
}

/// An answer, read whole.
#[derive(Debug)]
pub struct Answer {
    /// HTTP status.
    pub status: StatusCode,
    /// Headers.
    pub headers: HeaderMap,
    /// The body as it came.
    pub bytes: Vec<u8>,
}

impl Answer {
    /// The body as JSON; a test fails here when it is not.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes)
            .unwrap_or_else(|error| panic!("not JSON ({error}): {}", self.text()))
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// Checks the status.
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status.as_u16(), status, "{}", self.text());
        self
    }

    /// Checks that it is the problem with this status and code, and returns the document.
    #[track_caller]
    pub fn problem(self, status: u16, code: &str) -> Value {
        assert_eq!(self.status.as_u16(), status, "{}", self.text());
        assert_eq!(
            self.header("content-type"),
            "application/problem+json",
            "{}",
            self.text()
        );
        let problem = self.json();
        assert_eq!(problem["code"], code, "{problem}");
        assert_eq!(problem["status"], status, "{problem}");
        for field in ["type", "title", "detail", "request_id"] {
            assert!(
                problem[field].as_str().is_some_and(|text| !text.is_empty()),
                "{field} is missing: {problem}"
            );
        }
        problem
    }

    /// A header's text, or "".
    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }
}

/// An HTTP client that goes straight to the server, and uses no connection that the server may be closing: it closes those that
/// were idle for 75 s.
pub(super) fn http() -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .no_proxy()
        .pool_idle_timeout(Duration::from_secs(30))
}

impl Client {
    /// A client of a listener other than the console's.
    pub fn at(url: &str, token: Option<&str>) -> Self {
        Self::new(url, token)
    }

    pub(super) fn new(url: &str, token: Option<&str>) -> Self {
        let http = http().build().expect("a client");
        Self {
            http,
            url: url.into(),
            token: token.map(Into::into),
        }
    }

    /// A request with the token, to be completed by the test.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.url));
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// Sends a completed request and reads the answer.
    pub async fn send(&self, request: RequestBuilder) -> Answer {
        let response = request.send().await.expect("the server answers");
        let (status, headers) = (response.status(), response.headers().clone());
        let bytes = response
            .bytes()
            .await
            .expect("the answer is whole")
            .to_vec();
        Answer {
            status,
            headers,
            bytes,
        }
    }

    /// GET.
    pub async fn get(&self, path: &str) -> Answer {
        self.send(self.request(Method::GET, path)).await
    }

    /// Deploys a Python function of these files.
    pub async fn deploy_files(&self, name: &str, files: &[(&str, &[u8])]) {
        let zip = super::archive(files);
        let form = deploy_form(name, &format!("{name}.zip"), zip);
        let request = self.request(Method::POST, "/api/v1/functions");
        self.send(request.multipart(form)).await.expect(201);
    }

    /// DELETE.
    pub async fn delete(&self, path: &str) -> Answer {
        self.send(self.request(Method::DELETE, path)).await
    }

    /// POST with a JSON body.
    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(self.request(Method::POST, path).json(body)).await
    }

    /// PATCH with a JSON body.
    pub async fn patch(&self, path: &str, body: &Value) -> Answer {
        self.send(self.request(Method::PATCH, path).json(body))
            .await
    }

    /// PUT with a JSON body.
    pub async fn put(&self, path: &str, body: &Value) -> Answer {
        self.send(self.request(Method::PUT, path).json(body)).await
    }

    /// Deploys a Python function with further settings (a JSON object).
    pub async fn try_deploy(&self, name: &str, code: &str, settings: Value) -> Answer {
        let mut body = json!({ "name": name, "runtime": "python3", "code": { "inline": code } });
        for (key, value) in settings.as_object().expect("settings are an object") {
            body[key] = value.clone();
        }
        self.post("/api/v1/functions", &body).await
    }

    /// Deploys a Python function; the test fails when it is refused.
    pub async fn deploy(&self, name: &str, code: &str, settings: Value) -> Value {
        self.try_deploy(name, code, settings)
            .await
            .expect(201)
            .json()
    }

    /// Invokes a function with an event.
    pub async fn invoke(&self, name: &str, event: &Value) -> Answer {
        self.post(&format!("/api/v1/functions/{name}/invoke"), event)
            .await
    }

    /// One invocation's record.
    pub async fn invocation(&self, id: &str) -> Value {
        self.get(&format!("/api/v1/invocations/{id}"))
            .await
            .expect(200)
            .json()
    }
}

/// `curl -F name=… -F runtime=python3 -F code=@…`
pub fn deploy_form(name: &str, file_name: &str, code: Vec<u8>) -> Form {
    Form::new()
        .text("name", name.to_owned())
        .text("runtime", "python3")
        .part("code", Part::bytes(code).file_name(file_name.to_owned()))
}
