//! Whether the host process lets the server's threads go first.

use std::time::Duration;

use hearth_testkit::processes::{priorities, priority};
use hearth_testkit::wait::eventually;
use serde_json::json;

use super::Client;

/// Calls come seldom at this pace.
const PACE: Duration = Duration::from_millis(300);

/// Whether a thread of this process goes before this one's.
pub fn goes_first(process: u32) -> bool {
    let ordinary = priority(std::process::id()).expect("this process runs");
    let mut all = priorities(process).into_iter();
    all.any(|priority| priority < ordinary)
}

/// Calls a function now and then until the server's threads go first for it.
pub async fn called_seldom(client: &Client, function: &str, serve: u32, limit: Duration) {
    eventually("threads are prioritized", limit, || async {
        client.invoke(function, &json!(1)).await.expect(200);
        let mut pace = tokio::time::interval(PACE);
        // The first one is at once.
        pace.tick().await;
        pace.tick().await;
        goes_first(serve).then_some(())
    })
    .await;
}
