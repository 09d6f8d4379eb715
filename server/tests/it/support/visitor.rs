//! The console without scripts: a cookie, a CSRF token, and forms.

use reqwest::header::HeaderMap;
use reqwest::multipart::{Form, Part};
use reqwest::{Method, RequestBuilder};

use super::{Answer, Client, Server, client};

/// A browser: a cookie and the CSRF token of the pages it has seen. It follows no redirect, so that tests see them.
pub struct Browser {
    client: Client,
    http: reqwest::Client,
    url: String,
    pub cookie: String,
    pub csrf: String,
}

impl Browser {
    pub fn new(server: &Server) -> Self {
        let http = client::http()
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .expect("a client");
        Self {
            client: server.client_with(None),
            http,
            url: server.url.clone(),
            cookie: String::new(),
            csrf: String::new(),
        }
    }

    /// Goes on at another server, or the same after its restart.
    pub fn at(&mut self, server: &Server) {
        self.client = server.client_with(None);
        self.url = server.url.clone();
    }

    /// Logs in with a token.
    pub async fn logged_in(server: &Server, token: &str) -> Self {
        let mut browser = Self::new(server);
        let form = encoded(browser.post("/login"), &[("token", token)]);
        let answer = browser.send(form).await.expect(303);
        browser.enter(&answer).await;
        browser
    }

    /// Logs in as a user.
    pub async fn of_user(server: &Server, name: &str, password: &str) -> Self {
        let mut browser = Self::new(server);
        let answer = browser.try_password(name, password).await.expect(303);
        browser.enter(&answer).await;
        browser
    }

    /// Submits the form for a name and a password.
    pub async fn try_password(&self, name: &str, password: &str) -> Answer {
        let fields = [("name", name), ("password", password)];
        self.send(encoded(self.post("/login"), &fields)).await
    }

    /// Takes the session that an answer opens.
    pub async fn enter(&mut self, answer: &Answer) {
        self.cookie = session(&answer.headers);
        let page = self.get("/account").await.expect(200).text();
        self.csrf = page
            .split_once("name=\"csrf\" value=\"")
            .and_then(|(_, rest)| rest.split_once('"'))
            .map(|(csrf, _)| csrf.to_owned())
            .expect("a page with the session's CSRF token");
    }

    /// The session's CSRF token.
    pub fn csrf(&self) -> &str {
        &self.csrf
    }

    /// A request with the session's cookie.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http
            .request(method, format!("{}{path}", self.url))
            .header("cookie", &self.cookie)
            .header("accept", "text/html")
    }

    /// POST, to be completed.
    pub fn post(&self, path: &str) -> RequestBuilder {
        self.request(Method::POST, path)
    }

    /// Sends a completed request.
    pub async fn send(&self, request: RequestBuilder) -> Answer {
        self.client.send(request).await
    }

    /// GET.
    pub async fn get(&self, path: &str) -> Answer {
        self.send(self.request(Method::GET, path)).await
    }

    /// Deploys a file in place of all files on the code page that showed version `base`.
    pub async fn upload_code(&self, function: &str, base: &str, code: &str) -> Answer {
        let part = Part::bytes(code.as_bytes().to_vec()).file_name("main.py");
        let form = Form::new()
            .text("csrf", self.csrf.clone())
            .text("base", base.to_owned())
            .text("edits", "[]")
            .text("code_source", "file")
            .part("code_file", part);
        let path = format!("/functions/{function}/code");
        self.send(self.post(&path).multipart(form)).await
    }

    /// Submits a form with the session's CSRF token.
    pub async fn submit(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let mut form = Form::new().text("csrf", self.csrf.clone());
        for (name, value) in fields {
            form = form.text((*name).to_owned(), (*value).to_owned());
        }
        self.send(self.post(path).multipart(form)).await
    }
}

/// The fields of a function's settings form: what new functions have, with 64 MiB, and then `others`, of which those that are
/// among them count instead.
pub fn settings_form<'a>(others: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let usual = [
        ("handler", "main.handler"),
        ("memory_mb", "64"),
        ("timeout_ms", "30000"),
        ("max_concurrency", "8"),
        ("idle_timeout_s", "300"),
        ("min_instances", "0"),
        ("template_idle_timeout_s", "3600"),
        ("start", "auto"),
        ("body", "base64"),
        ("network", "none"),
    ];
    let is_other = |name: &str| others.iter().any(|(other, _)| *other == name);
    let mut fields: Vec<_> = usual
        .into_iter()
        .filter(|(name, _)| !is_other(name))
        .collect();
    fields.extend_from_slice(others);
    fields
}

/// The value of a hidden field of a page.
pub fn hidden(page: &str, name: &str) -> String {
    let (_, rest) = page
        .split_once(&format!("name=\"{name}\" value=\""))
        .expect(name);
    let (value, _) = rest.split_once('"').expect("its end");
    value.replace("&#34;", "\"").replace("&quot;", "\"")
}

/// Completes a request with a URL-encoded form, as a browser sends one without files.
pub fn encoded(request: RequestBuilder, fields: &[(&str, &str)]) -> RequestBuilder {
    let encode = |text: &str| -> String {
        text.bytes()
            .map(|byte| match byte.is_ascii_alphanumeric() {
                true => char::from(byte).to_string(),
                false => format!("%{byte:02X}"),
            })
            .collect()
    };
    let pairs: Vec<String> = fields
        .iter()
        .map(|(name, value)| format!("{}={}", encode(name), encode(value)))
        .collect();
    request
        .header("content-type", "application/x-www-form-urlencoded")
        .body(pairs.join("&"))
}

/// The session of an answer's cookie.
pub fn session(headers: &HeaderMap) -> String {
    let cookie = headers["set-cookie"].to_str().expect("a cookie");
    for part in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    cookie.split(';').next().expect("a pair").to_owned()
}
