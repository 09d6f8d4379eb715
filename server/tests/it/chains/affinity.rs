//! Where members may run: instances move to each other's processors while a chain has one request, and no handler is to notice.

use serde_json::{Value, json};

use super::CHAINS;
use crate::support::{Client, Server};

/// Adds where it may run.
const SAYS: &str = "\
import os

def handler(event, context):
    return event + [sorted(os.sched_getaffinity(0))]
";

/// The same, where it allows itself one processor.
const SETS: &str = "\
import os

os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

def handler(event, context):
    return event + [sorted(os.sched_getaffinity(0))]
";

#[tokio::test]
async fn handlers_find_the_affinity_that_they_have_set() {
    for settings in [&[][..], &[("HEARTH_BUSY_POLL_US", "0")]] {
        let server = Server::start_with(settings);
        let client = server.client();
        client.deploy("says", SAYS, json!({})).await;
        client.deploy("sets", SETS, json!({})).await;
        let (all, one) = (alone(&client, "says").await, alone(&client, "sets").await);
        assert_eq!(one.as_array().map(Vec::len), Some(1), "{one}");
        let chain = json!({
            "name": "round",
            "members": {"says": {"function": "says"}, "sets": {"function": "sets"}, "last": {"function": "says"}},
            "routes": {"r": ["says", "sets", "says", "last", "sets", "last"]},
        });
        client.post(CHAINS, &chain).await.expect(201);
        let expected = json!([all, one, all, all, one, all]);
        for _ in 0..50 {
            let path = "/api/v1/chains/round/routes/r/invoke";
            let answer = client.post(path, &json!([])).await.expect(200).json();
            assert_eq!(answer, expected, "{settings:?}");
        }
    }
}

/// What a function says outside of a chain.
async fn alone(client: &Client, name: &str) -> Value {
    let path = format!("/api/v1/functions/{name}/invoke");
    let answer = client.post(&path, &json!([])).await.expect(200).json();
    answer[0].clone()
}
