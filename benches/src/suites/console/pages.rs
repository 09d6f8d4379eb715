//! The pages.

use serde_json::Value;

use super::database::{BUSY, Data, FREQUENT_WORD, QUIET, RARE_WORD};
use super::{PAGES, PARTIALS};
use crate::server::Server;

/// A page, or a part of one.
pub struct Page {
    /// What the report calls it.
    pub name: String,
    /// Its address.
    pub path: String,
    /// Whether htmx asks, so that a part is answered.
    is_part: bool,
    /// What must be in the answer.
    pub holds: Option<String>,
}

impl Page {
    fn whole(name: &str, path: impl Into<String>) -> Self {
        Self {
            name: name.to_owned(),
            path: path.into(),
            is_part: false,
            holds: None,
        }
    }

    fn part(name: &str, path: impl Into<String>) -> Self {
        Self {
            is_part: true,
            ..Self::whole(name, path)
        }
    }

    fn with(mut self, mark: &str) -> Self {
        self.holds = Some(mark.to_owned());
        self
    }

    /// Where the report shows it.
    pub fn category(&self) -> &'static str {
        if self.is_part { PARTIALS } else { PAGES }
    }

    /// The request.
    pub fn request(&self, cookie: &str) -> Vec<u8> {
        get(&self.path, cookie, self.is_part)
    }
}

/// A browser's request.
pub fn get(path: &str, cookie: &str, htmx: bool) -> Vec<u8> {
    let htmx = if htmx { "hx-request: true\r\n" } else { "" };
    format!(
        "GET {path} HTTP/1.1\r\nhost: localhost\r\naccept: text/html\r\ncookie: {cookie}\r\n{htmx}\r\n"
    )
    .into_bytes()
}

/// Every page, with each filter and window.
pub fn all(server: &Server, data: &Data) -> anyhow::Result<Vec<Page>> {
    let busy = format!("/functions/{BUSY}");
    let list = |query: &str| -> anyhow::Result<Value> {
        server.call("GET", &format!("{busy}/invocations?{query}"), &Value::Null)
    };
    let id = |page: &Value| {
        page["items"][0]["id"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let (one, failed) = (id(&list("limit=1")?), id(&list("limit=1&status=failed")?));
    let middle = &data.middle;
    let mut pages = vec![
        Page::whole("overview", "/"),
        Page::whole("functions", "/functions"),
        Page::whole("functions, search", "/functions?q=fn-05"),
        Page::whole("new function", "/new"),
        Page::whole("test, busy function", busy.clone()),
        Page::whole("test, quiet function", format!("/functions/{QUIET}")),
        Page::whole("code", format!("{busy}/code")),
        Page::whole("versions", format!("{busy}/versions")),
        Page::whole("settings", format!("{busy}/settings")),
        Page::whole("accounts", "/users"),
        Page::whole("tokens", "/tokens"),
        Page::whole("audit", "/audit"),
        Page::whole("account", "/account"),
        Page::whole("retention", "/retention"),
        Page::whole("invocation", format!("{busy}/invocations/{one}")).with("stage-bar"),
        Page::whole(
            "invocation that failed",
            format!("{busy}/invocations/{failed}"),
        )
        .with("Traceback"),
        Page::whole("logs", format!("{busy}/logs")).with("log-stdout"),
    ];
    for window in ["1h", "24h", "7d"] {
        let path = format!("{busy}/latency?window={window}");
        pages.push(Page::whole(&format!("latency, {window}"), path));
    }
    for (name, query) in [
        ("newest", String::new()),
        ("from the middle of the history", format!("before={middle}")),
        ("status failed", "status=failed".into()),
        ("status succeeded", "status=succeeded".into()),
        ("status that never occurs", "status=cancelled".into()),
        ("start warm", "start=warm".into()),
        ("start fork", "start=fork".into()),
        ("start boot, rare", "start=boot".into()),
        ("first version", "version=1".into()),
        ("version that is not there", "version=99".into()),
        ("trigger http", "trigger=http".into()),
        ("trigger that never occurs", "trigger=schedule".into()),
        ("1 s or longer", "min_ms=1000".into()),
        ("20 to 21 ms", "min_ms=20&max_ms=21".into()),
        (
            "a duration that never occurs",
            "min_ms=900&max_ms=901".into(),
        ),
        (
            "failed and warm and 2 ms or longer",
            "status=failed&start=warm&min_ms=2".into(),
        ),
        (
            "failed, trigger that never occurs",
            "status=failed&trigger=schedule".into(),
        ),
    ] {
        let path = format!("{busy}/invocations?{query}");
        pages.push(Page::whole(&format!("invocations, {name}"), path));
    }
    for (name, query) in [
        ("rare word", format!("q={RARE_WORD}")),
        ("frequent word", format!("q={FREQUENT_WORD}")),
        ("word of another function's", "q=elsewhere".into()),
        ("word that is not there", "q=nowhere".into()),
        ("phrase", format!("q=%22{FREQUENT_WORD}+7%22")),
        ("two words", format!("q={FREQUENT_WORD}+customer")),
        (
            "beginning of a rare word",
            format!("q={}*", &RARE_WORD[..4]),
        ),
        ("lines of one invocation", format!("invocation={one}")),
    ] {
        let path = format!("{busy}/logs?{query}");
        pages.push(Page::whole(&format!("log search, {name}"), path));
    }
    pages.extend([
        Page::part("functions", "/functions"),
        Page::part("last calls", format!("{busy}/history")),
        Page::part("invocations", format!("{busy}/invocations")),
        Page::part(
            "invocations, failed",
            format!("{busy}/invocations?status=failed"),
        ),
        Page::part("log search", format!("{busy}/logs?q={FREQUENT_WORD}")),
        Page::part("latency, 1h", format!("{busy}/latency?window=1h")),
        Page::part("retention", "/retention"),
    ]);
    Ok(pages)
}
