//! Invocations' stages from the server's history.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use hyper::Method;
use serde::Deserialize;
use tokio::time::sleep;

use super::layers::Stages;
use crate::platform::client::{Client, ClientError};

/// Invocations of a page.
const PAGE: usize = 1_000;

/// Longest wait for the history, which is written after the answer is sent.
const WITHIN: Duration = Duration::from_secs(10);

/// Between two looks at it.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// What the history has of an invocation.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Record {
    id: String,
    /// How it got its instance.
    pub(super) start: Option<String>,
    /// Where its time went.
    pub(super) stages_us: Stages,
}

#[derive(Deserialize)]
struct Page {
    items: Vec<Record>,
    next: Option<String>,
}

/// The records of these invocations of a function by their ids, as far as the history has them within 10 s.
///
/// # Errors
/// The server refuses, or does not answer.
pub(super) async fn read(
    client: &Client,
    function: &str,
    ids: &HashSet<&str>,
) -> Result<HashMap<String, Record>, ClientError> {
    let began = Instant::now();
    loop {
        let mut found = HashMap::new();
        let mut before = String::new();
        while found.len() < ids.len() {
            let path = format!("/api/v1/functions/{function}/invocations?limit={PAGE}{before}");
            let answer = client.send(Method::GET, &path, None).await?;
            let page: Page = serde_json::from_slice(&answer.body)
                .map_err(|error| ClientError::Transport(path, error.to_string()))?;
            let wanted = page.items.into_iter().filter(|one| ids.contains(&*one.id));
            found.extend(wanted.map(|one| (one.id.clone(), one)));
            match page.next {
                Some(next) => before = format!("&before={next}"),
                None => break,
            }
        }
        if found.len() == ids.len() || began.elapsed() > WITHIN {
            return Ok(found);
        }
        sleep(LOOK_EVERY).await;
    }
}
