//! What WebDriver has no word for: Chromium's DevTools commands and its console.

use fantoccini::wd::WebDriverCompatibleCommand;
use reqwest::{Method, Url};
use serde_json::{Value, json};

use super::driver::Browser;

/// What the browser tells of a wrong URL.
type ParseError = <Url as std::str::FromStr>::Err;

/// A command of chromedriver's own, below the session's address.
#[derive(Debug)]
struct Vendor {
    path: &'static str,
    body: Value,
}

impl WebDriverCompatibleCommand for Vendor {
    fn endpoint(&self, base: &Url, session: Option<&str>) -> Result<Url, ParseError> {
        base.join(&format!(
            "session/{}/{}",
            session.unwrap_or_default(),
            self.path
        ))
    }

    fn method_and_body(&self, _: &Url) -> (Method, Option<String>) {
        (Method::POST, Some(self.body.to_string()))
    }
}

impl Browser {
    /// A command of the DevTools protocol, to the tab that is driven.
    pub async fn devtools(&self, command: &str, parameters: Value) -> Value {
        let answer = self
            .client
            .issue_cmd(Vendor {
                path: "goog/cdp/execute",
                body: json!({ "cmd": command, "params": parameters }),
            })
            .await;
        answer.unwrap_or_else(|error| panic!("{command}: {error}"))
    }

    /// What was written to the console since the last call, the browser's own complaints (blocked by the policy, not
    /// found, a script's error) included.
    pub async fn console(&self) -> Vec<String> {
        let log = self
            .client
            .issue_cmd(Vendor {
                path: "se/log",
                body: json!({ "type": "browser" }),
            })
            .await
            .expect("the browser's log");
        let entries = log.as_array().cloned().unwrap_or_default();
        entries
            .iter()
            .filter(|entry| matches!(entry["level"].as_str(), Some("SEVERE" | "WARNING")))
            .map(|entry| entry["message"].as_str().unwrap_or_default().to_owned())
            .collect()
    }

    /// Fails when the console holds an error or a violation of the content security policy.
    pub async fn check_console(&self, page: &str) {
        let complaints = self.console().await;
        assert!(
            complaints.is_empty(),
            "{page}: the browser complains:\n{}",
            complaints.join("\n")
        );
    }

    /// Makes the window this large, and a phone of it when it is narrow.
    pub async fn resize(&self, (width, height): (u32, u32)) {
        let mobile = width < 500;
        let scale = if mobile { 2 } else { 1 };
        self.devtools(
            "Emulation.setDeviceMetricsOverride",
            json!({ "width": width, "height": height, "deviceScaleFactor": scale, "mobile": mobile }),
        )
        .await;
    }

    /// Sets what the system prefers: `prefers-color-scheme`, and less motion, so that pictures hold no half-way state.
    pub async fn prefer(&self, dark: bool) {
        let scheme = if dark { "dark" } else { "light" };
        self.devtools(
            "Emulation.setEmulatedMedia",
            json!({ "features": [
                { "name": "prefers-color-scheme", "value": scheme },
                { "name": "prefers-reduced-motion", "value": "reduce" },
            ] }),
        )
        .await;
    }

    /// Moves the mouse here, with no button down.
    pub async fn point(&self, x: f64, y: f64) {
        self.mouse("mouseMoved", x, y, "none").await;
    }

    /// Presses the mouse's button here, or lets it go.
    pub async fn press(&self, down: bool, x: f64, y: f64) {
        let kind = if down {
            "mousePressed"
        } else {
            "mouseReleased"
        };
        self.mouse(kind, x, y, "left").await;
    }

    async fn mouse(&self, kind: &str, x: f64, y: f64, button: &str) {
        self.devtools(
            "Input.dispatchMouseEvent",
            json!({ "type": kind, "x": x, "y": y, "button": button, "clickCount": 1 }),
        )
        .await;
    }
}
