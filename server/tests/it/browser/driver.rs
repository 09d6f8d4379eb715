//! Headless Chromium, driven over WebDriver.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine as _;
use fantoccini::error::CmdError;
use fantoccini::{Client, ClientBuilder, Locator};
use hearth_testkit::processes::descendants;
use hearth_testkit::program::Program;
use hearth_testkit::wait::poll;
use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::support::{eventually, is_alive, mentioning, signal};

/// Browsers at one time in one test process: each is several processes, and more of them only wait for each other.
const MOST_BROWSERS: usize = 2;

/// A permit for each browser that may run.
static BROWSERS: Semaphore = Semaphore::const_new(MOST_BROWSERS);

/// How long an element may take to appear: generous, it asserts nothing.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How often an element that is to be clicked is looked at: until it has been in one place so many times, and no more than so often.
const LOOKS_AT_REST: usize = 3;
const LOOKS_AT_MOST: usize = 60;
const FRAME: Duration = Duration::from_millis(16);

/// A desktop and a phone, in CSS pixels.
pub const DESKTOP: (u32, u32) = (1280, 900);
/// See [`DESKTOP`].
pub const PHONE: (u32, u32) = (360, 740);

/// A browser with a directory of its own; both end with it.
pub struct Browser {
    driver: Program,
    /// The WebDriver session.
    pub client: Client,
    /// Its profile and its temporary files.
    dir: TempDir,
    /// Given back last, when the browser is gone.
    _permit: SemaphorePermit<'static>,
}

/// Whether the page was left for another one while chromedriver looked at it. Chromium 156 tells it with a status that the standard has not.
fn is_left(error: &CmdError) -> bool {
    error.to_string().contains("aborted by navigation")
}

impl Browser {
    /// Starts chromedriver and a browser of this size. `dark` sets `prefers-color-scheme`.
    pub async fn start(size: (u32, u32), dark: bool) -> Self {
        let permit = BROWSERS.acquire().await.expect("it is never closed");
        Self::launch(size, dark, permit).await
    }

    /// Starts two, of these sizes and themes. A test that waited for its second one while it has the first could wait
    /// for another that does the same.
    pub async fn start_two([first, second]: [((u32, u32), bool); 2]) -> (Self, Self) {
        let mut permits = BROWSERS.acquire_many(2).await.expect("it is never closed");
        let permit = permits.split(1).expect("one of two");
        (
            Self::launch(first.0, first.1, permit).await,
            Self::launch(second.0, second.1, permits).await,
        )
    }

    async fn launch(size: (u32, u32), dark: bool, permit: SemaphorePermit<'static>) -> Self {
        let dir = tempfile::Builder::new()
            .prefix("hearth-browser-")
            .tempdir()
            .expect("a directory");
        let mut command = Command::new("chromedriver");
        command
            .arg("--port=0")
            // Chromium leaves directories there whenever it is killed.
            .env("TMPDIR", dir.path())
            .stderr(Stdio::null());
        // It takes a free port of IPv6 and ends if somebody has the same one of IPv4.
        let mut start = || Program::start_and_hear(&mut command, "successfully on port ");
        let (driver, port) = start()
            .or_else(|_| start())
            .or_else(|_| start())
            .expect("chromedriver; `make setup` and `make test` install Debian's chromium and chromium-driver");
        let port = port.trim_end_matches('.');
        let mut args = vec![
            "--headless=new".to_owned(),
            // The tests run as root, where Chromium has no sandbox of its own; it opens nothing but our pages.
            "--no-sandbox".into(),
            "--disable-gpu".into(),
            "--disable-quic".into(),
            "--disable-dev-shm-usage".into(),
            "--no-first-run".into(),
            "--disable-background-networking".into(),
            "--disable-component-update".into(),
            "--disable-sync".into(),
            format!("--window-size={},{}", size.0, size.1),
            format!("--user-data-dir={}", dir.path().join("profile").display()),
        ];
        if dark {
            args.push("--blink-settings=preferredColorScheme=0".into());
        }
        let mut capabilities = serde_json::Map::new();
        capabilities.insert(
            "goog:chromeOptions".into(),
            json!({ "args": args, "binary": "/usr/bin/chromium", "mobileEmulation": phone(size) }),
        );
        capabilities.insert("goog:loggingPrefs".into(), json!({ "browser": "ALL" }));
        let client = ClientBuilder::new(hyper_util::client::legacy::connect::HttpConnector::new())
            .capabilities(capabilities)
            .connect(&format!("http://127.0.0.1:{port}"))
            .await
            .expect("a session with Chromium");
        Self {
            driver,
            client,
            dir,
            _permit: permit,
        }
    }

    /// Waits for an element and clicks it when it has come to rest: the one that is there then, should it be swapped meanwhile.
    pub async fn click(&self, css: &str) {
        let what = format!("{css} is clicked");
        eventually(&what, TIMEOUT, || async {
            match self.click_at_rest(css).await {
                Ok(()) => Some(()),
                Err(error) if error.is_stale_element_reference() || is_left(&error) => None,
                Err(error) => panic!("clicking {css}: {error}"),
            }
        })
        .await;
    }

    /// WebDriver clicks where the element was when it looked. What scrolls just then, since a closing dialog gives the focus back or the
    /// editor has arrived, would be missed without a word.
    async fn click_at_rest(&self, css: &str) -> Result<(), CmdError> {
        // Not by the page's frames: where it may not run scripts, none would come.
        const PLACE: &str =
            "const { x, y } = arguments[0].getBoundingClientRect(); return `${x},${y}`;";
        let element = self.find(css).await;
        let argument = serde_json::to_value(&element).expect("an element");
        let (mut last, mut still) = (Value::Null, 0);
        // What never rests is clicked all the same.
        for _ in 0..LOOKS_AT_MOST {
            let place = self.client.execute(PLACE, vec![argument.clone()]).await?;
            still = if place == last { still + 1 } else { 0 };
            if still == LOOKS_AT_REST {
                break;
            }
            last = place;
            tokio::time::sleep(FRAME).await;
        }
        element.click().await
    }

    /// Waits for an element.
    pub async fn find(&self, css: &str) -> fantoccini::elements::Element {
        let until = Instant::now() + TIMEOUT;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let wait = self.client.wait().at_most(left);
            match wait.for_element(Locator::Css(css)).await {
                Ok(element) => return element,
                Err(error) if is_left(&error) && Instant::now() < until => {
                    tokio::time::sleep(FRAME).await;
                }
                Err(error) => panic!(
                    "no {css}: {error}\n{}",
                    self.client.source().await.unwrap_or_default()
                ),
            }
        }
    }

    /// The text of an element that appears.
    pub async fn text(&self, css: &str) -> String {
        self.find(css).await.text().await.expect("text")
    }

    /// Empties a field and types into it.
    pub async fn fill(&self, css: &str, text: &str) {
        let field = self.find(css).await;
        field.clear().await.expect("an empty field");
        field.send_keys(text).await.expect("a field to type into");
    }

    /// Sets a text area at once, as a paste does.
    pub async fn paste(&self, css: &str, text: &str) {
        let field = self.find(css).await;
        let script = "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input', {bubbles: true}));";
        let field = serde_json::to_value(field).expect("an element");
        self.client
            .execute(script, vec![field, json!(text)])
            .await
            .expect("a script");
    }

    /// Waits until an element has this text.
    pub async fn wait_for_text(&self, css: &str, expected: &str) {
        self.wait_for_any_text(css, &[expected]).await;
    }

    /// Waits until an element has one of these texts.
    pub async fn wait_for_any_text(&self, css: &str, expected: &[&str]) {
        let what = format!("{css} says one of {expected:?}");
        let is_said = || async {
            let said = self.says(css).await?;
            let found = expected.iter().any(|one| said.contains(one));
            found.then_some(())
        };
        // The limit is this one, so that it can tell what is there instead.
        let within = tokio::time::timeout(TIMEOUT, eventually(&what, 2 * TIMEOUT, is_said)).await;
        if within.is_err() {
            let (said, page) = (self.says(css).await, self.says("body").await);
            panic!("{what}: not within {TIMEOUT:?}, but {said:?}; the page: {page:?}");
        }
    }

    /// The text of an element that may be swapped while it is read.
    async fn says(&self, css: &str) -> Option<String> {
        let element = self.client.find(Locator::Css(css)).await.ok()?;
        element.text().await.ok()
    }

    /// The path of the page that is open.
    pub async fn path(&self) -> String {
        let address = self.client.current_url().await.expect("an address");
        address.path().to_owned()
    }

    /// Waits until a script's result is true. The script is the body of a function.
    pub async fn wait_until(&self, what: &str, script: &str) {
        eventually(what, TIMEOUT, || async {
            // It may fail while a page is left for another.
            let result = self.client.execute(script, vec![]).await.ok()?;
            (result == json!(true)).then_some(())
        })
        .await;
    }

    /// Opens an address of the server and waits for its page.
    pub async fn open(&self, server: &crate::support::Server, path: &str) {
        self.client
            .goto(&format!("{}{path}", server.url))
            .await
            .expect("the page");
        self.find("main").await;
    }

    /// Saves a picture of the window for a person to look at, below `target/screenshots`.
    pub async fn picture(&self, name: &str) {
        let png = self.client.screenshot().await.expect("a screenshot");
        save(name, &png);
    }

    /// Saves a picture of the whole page, also of what is below the window's edge.
    pub async fn whole_picture(&self, name: &str) {
        let metrics = self.devtools("Page.getLayoutMetrics", json!({})).await;
        let size = &metrics["cssContentSize"];
        let clip =
            json!({ "x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1 });
        let shot = self
            .devtools(
                "Page.captureScreenshot",
                json!({ "captureBeyondViewport": true, "clip": clip }),
            )
            .await;
        let data = shot["data"].as_str().expect("a picture");
        let png = base64::engine::general_purpose::STANDARD
            .decode(data)
            .expect("base64");
        save(name, &png);
    }

    /// Whether the page is wider than the window: it must not be.
    pub async fn scrolls_sideways(&self) -> bool {
        // Not the window's inner width: a phone makes that as wide as what does not fit.
        let script =
            "return document.documentElement.scrollWidth > document.documentElement.clientWidth;";
        self.client.execute(script, vec![]).await.expect("a script") == json!(true)
    }

    /// Ends the session.
    pub async fn close(self) {
        let _ = self.client.clone().close().await;
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // A test that failed has not closed its browser, a browser outlives a chromedriver that is killed, and some of
        // its processes outlive it. What still writes into the directory would keep it from being removed.
        let mut pids: HashSet<u32> = descendants(self.driver.pid())
            .iter()
            .map(|process| process.pid)
            .collect();
        self.driver.kill();
        let _ = poll(TIMEOUT, Duration::from_millis(10), || {
            pids.extend(mentioning(self.dir.path()));
            pids.retain(|pid| is_alive(*pid));
            for pid in &pids {
                let _ = signal(*pid, Signal::KILL);
            }
            pids.is_empty().then_some(())
        });
    }
}

/// Chromium's window is never narrower than 500 pixels, so a phone must be emulated.
fn phone(size: (u32, u32)) -> serde_json::Value {
    if size.0 < 500 {
        json!({ "deviceMetrics": { "width": size.0, "height": size.1, "pixelRatio": 2.0 } })
    } else {
        json!({})
    }
}

fn save(name: &str, png: &[u8]) {
    let dir = screenshots();
    std::fs::create_dir_all(&dir).expect("the screenshots' directory");
    std::fs::write(dir.join(format!("{name}.png")), png).expect("a file");
}

fn screenshots() -> PathBuf {
    let server = Path::new(env!("CARGO_BIN_EXE_hearth"));
    server
        .ancestors()
        .nth(2)
        .unwrap_or(Path::new("."))
        .join("screenshots")
}
