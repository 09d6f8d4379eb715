//! The console in a real browser, as a person uses it. One file an area.

mod accessibility;
mod devtools;
mod driver;
mod matrix;

mod deploying;
mod history;
mod pages;

use driver::Browser;

use crate::support::{Server, TOKEN};

/// A handler that prints and answers.
const CODE: &str = "def handler(event, context):\n    print('asked for', event['name'])\n    return {'greeting': 'Hello, ' + event['name']}\n";

/// Logs in with the admin token.
async fn log_in(browser: &Browser, server: &Server) {
    browser
        .client
        .goto(&format!("{}/", server.url))
        .await
        .expect("the console");
    browser.fill("#login-token", TOKEN).await;
    browser.click("#login-submit").await;
    browser.find("#logout").await;
}
