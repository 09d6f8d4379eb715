//! The console in a real browser, as a person uses it. One file an area.

mod accessibility;
mod accounts;
mod devtools;
mod driver;
mod matrix;
mod origins;

mod chains;
mod changing;
mod commands;
mod deploying;
mod editing;
mod gates;
mod history;
mod ingress;
mod lab;
mod lab_forms;
mod latency;
mod live;
mod network;
mod pages;
mod rows;
mod sessions;
mod tail;
mod testing;

use driver::Browser;

use crate::support::{Server, TOKEN};

/// A handler that prints and answers.
const CODE: &str = "def handler(event, context):\n    print('asked for', event['name'])\n    return {'greeting': 'Hello, ' + event['name']}\n";

/// Logs in with the admin token.
async fn log_in(browser: &Browser, server: &Server) {
    browser.log_in_at(&server.url).await;
}

impl Browser {
    /// Logs in with the admin token at this address, behind which a server is.
    async fn log_in_at(&self, url: &str) {
        self.client
            .goto(&format!("{url}/"))
            .await
            .expect("the console");
        self.fill("#login-token", TOKEN).await;
        self.click("#login-submit").await;
        self.find("#logout").await;
    }
}
