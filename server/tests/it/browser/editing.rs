//! Code in the editor: several files at once, a look at what changes, the line at which an import failed.

use fantoccini::key::Key;
use serde_json::json;

use super::driver::{Browser, DESKTOP, PHONE};
use super::log_in;
use crate::support::{Server, archive};

const MAIN: &[u8] =
    b"from pkg import words\n\n\ndef handler(event, context):\n    return words.greet(event)\n";
const WORDS: &[u8] = b"def greet(name):\n    return 'Hello, ' + str(name)\n";

async fn deploy(server: &Server) {
    let files: [(&str, &[u8]); 4] = [
        ("main.py", MAIN),
        ("pkg/__init__.py", b""),
        ("pkg/words.py", WORDS),
        ("data/table.bin", b"\xff\x00\x01"),
    ];
    server.client().deploy_files("files", &files).await;
}

/// Back to a desktop, and until the page is laid out for it: a click before that would land beside its element.
async fn widen(browser: &Browser) {
    browser.resize(DESKTOP).await;
    browser
        .wait_until("the page is wide again", "return window.innerWidth > 1000;")
        .await;
}

#[tokio::test]
async fn two_files_are_edited_reviewed_and_deployed_together() {
    let server = Server::start();
    deploy(&server).await;
    let browser = Browser::start(DESKTOP, false).await;
    log_in(&browser, &server).await;
    browser.open(&server, "/functions/files/code").await;
    browser.find("#code-editor-box .cm-content").await;
    browser
        .paste(
            "#code-editor",
            "from pkg import words\n\n\ndef handler(event, context):\n    return words.greet(event) + '!'\n",
        )
        .await;
    // The primary action is on the first screen.
    browser
        .wait_until(
            "the button is on the screen",
            "return document.getElementById('review-button').getBoundingClientRect().bottom <= window.innerHeight;",
        )
        .await;
    // A directory is read when it is opened, a file when it is chosen.
    browser
        .click("details.directory:nth-of-type(1) summary")
        .await;
    browser.find("[data-file='data/table.bin']").await;
    browser.click("[data-file='data/table.bin']").await;
    browser.wait_for_text("#file-kept", "not text").await;
    browser
        .click("li:nth-child(2) > details.directory > summary")
        .await;
    browser.click("[data-file='pkg/words.py']").await;
    browser
        .wait_until(
            "the file is in the editor",
            "return document.querySelector('#code-editor-box .cm-content').textContent.includes('Hello');",
        )
        .await;
    browser
        .paste(
            "#code-editor",
            "def greet(name):\n    return 'Good day, ' + str(name)\n",
        )
        .await;
    browser
        .wait_for_text("#edit-summary", "2 files changed")
        .await;
    browser.click("#new-file").await;
    browser.fill("#path", "pkg/note.txt").await;
    browser.paste("#code-editor", "a note\n").await;
    browser
        .wait_for_text("#edit-summary", "3 files changed")
        .await;
    // The editor's own way to a review.
    browser.look("code-edited-desktop-light").await;
    // By keyboard: the focus is on this button when the dialog takes it.
    browser
        .find("#review-button")
        .await
        .send_keys(&Key::Enter)
        .await
        .expect("a key");
    browser
        .wait_for_text("#review-content", "changes 3 files")
        .await;
    browser
        .find("#review[open] [data-diff='pkg/words.py'] .diff-new")
        .await;
    browser.look("code-review-desktop-light").await;
    browser.resize(PHONE).await;
    browser.prefer(true).await;
    browser.look("code-review-phone-dark").await;
    widen(&browser).await;
    browser.prefer(false).await;
    browser
        .wait_until(
            "the button has the focus",
            "return document.activeElement?.id === 'deploy-button';",
        )
        .await;
    browser
        .find("#deploy-button")
        .await
        .send_keys(&Key::Enter)
        .await
        .expect("a key");
    browser.wait_for_text("#notice", "Version 2 is live").await;
    let result = server.client().invoke("files", &json!("Ada")).await;
    assert_eq!(result.expect(200).json(), "Good day, Ada!");
    let pages = [
        ("code", "/functions/files/code"),
        ("code-file", "/functions/files/code?path=pkg%2Fwords.py"),
        ("code-binary", "/functions/files/code?path=data%2Ftable.bin"),
        ("versions", "/functions/files/versions"),
        ("version-diff", "/functions/files/versions/2/diff?against=1"),
        ("version-activate", "/functions/files/versions/1/activate"),
        ("settings", "/functions/files/settings"),
    ];
    browser.pictures(&server.url, &pages).await;
    browser.close().await;
}

#[tokio::test]
async fn an_upload_tells_how_far_it_is() {
    let server = Server::start();
    deploy(&server).await;
    let browser = Browser::start(DESKTOP, false).await;
    log_in(&browser, &server).await;
    browser.open(&server, "/functions/files/code").await;
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("large.zip");
    // Incompressible, so that there is something to send.
    let mut seed = 7_u32;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 24) as u8
    })
    .take(4 << 20)
    .collect();
    let zip = archive(&[
        (
            "main.py",
            b"def handler(event, context):\n    return 'uploaded'\n",
        ),
        ("noise.bin", &noise),
    ]);
    std::fs::write(&file, zip).expect("a file");
    browser.click("#code-from-file").await;
    let input = browser.find("#code-file").await;
    let path = file.to_str().expect("text");
    input.send_keys(path).await.expect("a file to choose");
    let slow = json!({"offline": false, "latency": 0, "downloadThroughput": -1, "uploadThroughput": 1 << 20});
    browser.devtools("Network.enable", json!({})).await;
    browser
        .devtools("Network.emulateNetworkConditions", slow)
        .await;
    browser.click("#upload-button").await;
    browser.wait_for_text(".progress-text", "Uploading").await;
    browser.find(".progress-bar:not([hidden])").await;
    browser.wait_for_text("#notice", "Version 2 is live").await;
    let result = server.client().invoke("files", &json!(1)).await;
    assert_eq!(result.expect(200).json(), "uploaded");
    browser.close().await;
}

#[tokio::test]
async fn an_import_error_is_shown_at_its_line() {
    let server = Server::start();
    deploy(&server).await;
    let browser = Browser::start(DESKTOP, true).await;
    log_in(&browser, &server).await;
    browser
        .open(&server, "/functions/files/code?path=pkg%2Fwords.py")
        .await;
    browser.find("#code-editor-box .cm-content").await;
    browser
        .paste(
            "#code-editor",
            "x = 1\nimport nowhere_at_all\n\n\ndef greet(name):\n    return name\n",
        )
        .await;
    // Another file is in the editor when the answer comes.
    browser.click("[data-file='main.py']").await;
    browser.click("#review-button").await;
    browser.find("#review[open]").await;
    // The dialog gives the focus back to the button that opened it: that button's address must not become the form's.
    let again = "const [dialog, button] = ['review', 'review-button'].map((id) => document.getElementById(id)); \
        dialog.close(); button.focus(); dialog.showModal();";
    browser
        .client
        .execute(again, vec![])
        .await
        .expect("a script");
    browser.click("#review[open] #deploy-button").await;
    browser
        .wait_for_text("#form-outcome", "ModuleNotFoundError")
        .await;
    browser
        .wait_for_text("#problem-place", "pkg/words.py")
        .await;
    browser
        .wait_until(
            "the editor shows the line",
            "return document.getElementById('path').value === 'pkg/words.py' \
             && document.querySelector('.cm-lint-marker-error') !== null \
             && document.querySelector('.cm-activeLine')?.textContent === 'import nowhere_at_all';",
        )
        .await;
    // The message and the way to deploy are both in sight, without a scroll.
    browser
        .wait_until(
            "the message is on the screen",
            "const inside = (id) => { const box = document.getElementById(id).getBoundingClientRect(); \
                 return box.top >= 0 && box.bottom <= window.innerHeight; }; \
             return inside('review-button') && inside('problem-place');",
        )
        .await;
    // 422 is what was asked for; the browser notes every such answer.
    browser.console().await;
    browser.picture("code-failed-deploy-desktop-dark").await;
    browser.look("code-import-error-desktop-dark").await;
    browser.resize(PHONE).await;
    browser.look("code-import-error-phone-dark").await;
    widen(&browser).await;
    // Nothing typed is lost, and mended it is deployed.
    browser
        .paste("#code-editor", "def greet(name):\n    return 'mended'\n")
        .await;
    browser.click("#review-button").await;
    browser.click("#review[open] #deploy-button").await;
    browser.wait_for_text("#notice", "Version 2 is live").await;
    let result = server.client().invoke("files", &json!(1)).await;
    assert_eq!(result.expect(200).json(), "mended");
    browser.close().await;
}
