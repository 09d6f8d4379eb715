//! The command palette, shortcuts, theme, menus and messages: by keyboard.

use fantoccini::Locator;
use serde_json::{Value, json};

use super::driver::{Browser, DESKTOP};
use super::log_in;
use crate::support::Server;

const ECHO: &str = "def handler(event, context): return event\n";

/// Keys as WebDriver names them.
const CONTROL: &str = "\u{e009}";
const RELEASE: &str = "\u{e000}";
const ENTER: &str = "\u{e007}";
const ESCAPE: &str = "\u{e00c}";
const TAB: &str = "\u{e004}";
const DOWN: &str = "\u{e015}";

impl Browser {
    /// Types into whatever has the focus.
    async fn keys(&self, keys: &str) {
        let focused = self.client.active_element().await.expect("a focus");
        focused.send_keys(keys).await.expect("keys");
    }

    async fn evaluate(&self, expression: &str) -> Value {
        let script = format!("return {expression};");
        self.client
            .execute(&script, vec![])
            .await
            .expect("a script")
    }

    /// Colour of the page's ground, as the browser resolved it.
    async fn ground(&self) -> Value {
        self.evaluate("getComputedStyle(document.body).backgroundColor")
            .await
    }
}

#[tokio::test]
async fn the_palette_leads_anywhere_by_keyboard_alone() {
    let server = Server::start();
    let client = server.client();
    for name in ["thumbnail", "image-resize", "other"] {
        client.deploy(name, ECHO, json!({})).await;
    }
    let browser = Browser::start(DESKTOP, false).await;
    log_in(&browser, &server).await;
    browser.keys(&format!("{CONTROL}k{RELEASE}")).await;
    browser.find("#palette[open]").await;
    browser.find("#palette-list [role=option]").await;
    browser.look("palette-desktop-light").await;
    // Letters apart find a name as well.
    browser.keys("imrsz").await;
    browser
        .wait_for_text("#palette-list [aria-selected=true]", "image-resize")
        .await;
    assert_eq!(
        browser
            .evaluate("document.getElementById(document.activeElement.getAttribute('aria-activedescendant')).textContent.includes('image-resize')")
            .await,
        true
    );
    browser.keys(ENTER).await;
    browser.wait_for_text("h1", "image-resize").await;

    // What can be done here, chosen by arrows.
    browser.find("#open-palette").await;
    browser.keys(&format!("{CONTROL}k{RELEASE}")).await;
    browser.find("#palette[open]").await;
    browser.keys("image-resize: late").await;
    browser
        .wait_for_text("#palette-list [aria-selected=true]", "Latency")
        .await;
    browser.keys(&format!("{DOWN}{ENTER}")).await;
    browser.find("#latency").await;

    // It goes away with Escape, and the focus is where it was.
    browser
        .evaluate("document.getElementById('tab-test').focus()")
        .await;
    browser.keys(&format!("{CONTROL}k{RELEASE}")).await;
    browser.find("#palette[open]").await;
    // The focus does not leave it.
    for _ in 0..3 {
        browser.keys(TAB).await;
        let inside = "document.activeElement === document.body || document.getElementById('palette').contains(document.activeElement)";
        assert_eq!(browser.evaluate(inside).await, true);
    }
    browser
        .evaluate("document.querySelector('#palette input').focus()")
        .await;
    browser.keys(ESCAPE).await;
    browser
        .wait_until(
            "the palette is closed",
            "return !document.getElementById('palette').open;",
        )
        .await;
    assert_eq!(
        browser.evaluate("document.activeElement.id").await,
        "tab-test"
    );
    browser.keys("?").await;
    browser.find("#shortcuts[open]").await;
    browser.look("shortcuts-desktop-light").await;
    browser.keys(ESCAPE).await;

    // A phone has the button.
    browser.resize((360, 740)).await;
    browser.click("#open-palette").await;
    browser.keys("log out").await;
    browser
        .wait_for_text("#palette-list [aria-selected=true]", "Log out")
        .await;
    browser.look("palette-phone-light").await;
    browser.keys(ENTER).await;
    browser.find("#login-token").await;
    browser.close().await;
}

#[tokio::test]
async fn the_theme_is_the_users_and_stays() {
    let server = Server::start();
    let browser = Browser::start(DESKTOP, false).await;
    log_in(&browser, &server).await;
    let light = browser.ground().await;
    browser.prefer(true).await;
    browser
        .wait_until(
            "the system's dark",
            &format!("return getComputedStyle(document.body).backgroundColor !== {light};"),
        )
        .await;
    let dark = browser.ground().await;
    browser.click("#user-menu summary").await;
    browser.look("user-menu-desktop-dark").await;
    browser.click("#user-menu [name=theme][value=light]").await;
    assert_eq!(browser.ground().await, light);
    browser.keys(ESCAPE).await;
    // The server's own answer is coloured, before any script of the page runs.
    browser.open(&server, "/functions").await;
    assert_eq!(browser.ground().await, light);
    let answer = browser
        .client
        .execute_async(
            "const done = arguments[0]; fetch('/').then((answer) => answer.text()).then(done);",
            vec![],
        )
        .await
        .expect("the page");
    assert!(
        answer
            .as_str()
            .is_some_and(|page| page.contains("data-theme=\"light\"")),
        "the cookie reaches the server"
    );
    browser.click("#user-menu summary").await;
    browser.click("#user-menu [name=theme][value=dark]").await;
    browser.prefer(false).await;
    browser.open(&server, "/").await;
    assert_eq!(browser.ground().await, dark);
    browser.close().await;
}

#[tokio::test]
async fn menus_and_messages_go_away_by_keyboard() {
    let server = Server::start();
    server.client().deploy("one", ECHO, json!({})).await;
    let browser = Browser::start(DESKTOP, false).await;
    log_in(&browser, &server).await;
    browser.open(&server, "/functions").await;
    // The first stop is the way past the navigation.
    browser.keys(TAB).await;
    assert_eq!(
        browser.evaluate("document.activeElement.className").await,
        "skip"
    );
    browser.keys(ENTER).await;
    browser
        .wait_until("the main part", "return location.hash === '#main';")
        .await;
    browser
        .evaluate("document.querySelector('#user-menu summary').focus()")
        .await;
    browser.keys(ENTER).await;
    browser.find("#user-menu[open]").await;
    browser.keys(ESCAPE).await;
    browser.find("#user-menu:not([open])").await;
    assert_eq!(
        browser.evaluate("document.activeElement.localName").await,
        "summary"
    );

    // An error is shown with the request's id, which can be copied.
    browser
        .evaluate("window.htmx.ajax('GET', '/functions/nope/code', { target: '#main' }) && true")
        .await;
    browser.wait_for_text("#toasts .toast", "Request").await;
    let id = browser.text("#toasts .toast code").await;
    assert!(id.len() >= 8, "{id}");
    // That error is meant.
    browser.console().await;
    browser.look("toast-desktop-light").await;
    browser
        .evaluate("document.querySelector('#toasts .toast button').focus()")
        .await;
    browser.keys(ESCAPE).await;
    browser
        .wait_until(
            "the message is gone",
            "return document.querySelector('.toast') === null;",
        )
        .await;
    let left = browser.client.find_all(Locator::Css(".toast")).await;
    assert!(left.expect("a page").is_empty());
    browser.close().await;
}
