//! Replays of requests to a function's URL: copies get by invoke what the handler got.

use reqwest::Method;
use serde_json::{Value, json};

use crate::experiments::{agent, ended};
use crate::support::{Client, Server};

/// Raises if the event is not that of a request, or lacks what the runtime adds to it.
const SHOWN: &str = "\
def handler(event, context):
    assert event['isBase64Encoded'] is False
    assert event['requestContext']['http']['path'] == '/items'
    number = int(event['queryStringParameters']['x'])
    assert event.get('body') == (f'number={number}' if number % 2 else None)
    return {'statusCode': 201, 'body': str(number)}
";

/// Requests: fewer than the history keeps the events of in a second.
const REQUESTS: usize = 12;
/// Those of them that have a cookie.
const WITH_COOKIE: usize = 3;

async fn requested(client: &Client) {
    client.deploy("shown", SHOWN, json!({"public": true})).await;
    for number in 0..REQUESTS {
        let path = format!("/fn/shown/items?x={number}");
        let mut request = match number % 2 {
            0 => client.request(Method::GET, &path),
            _ => client
                .request(Method::POST, &path)
                .header("content-type", "application/x-www-form-urlencoded")
                .body(format!("number={number}")),
        };
        if number < WITH_COOKIE {
            request = request.header("cookie", "login=s3cr3t");
        }
        let answer = client.send(request).await.expect(201);
        assert_eq!(answer.text(), number.to_string());
    }
}

/// By chance a version differs from itself.
fn result_of(found: &Value) -> &Value {
    let state = found["state"].as_str().expect("a state");
    assert!(["succeeded", "fell_short"].contains(&state), "{found}");
    &found["result"]
}

#[tokio::test]
async fn requests_to_the_url_are_replayed_with_their_events() {
    let server = Server::start();
    let client = server.client();
    requested(&client).await;
    let _agent = agent(&server);
    let config = json!({"kind": "replay", "first": "shown", "speed": 100});
    let found = ended(&client, &config).await;
    let result = result_of(&found);
    let replayed = &result["replayed"];
    assert_eq!(
        (&replayed["arrivals"], &replayed["own_events"]),
        (&json!(REQUESTS), &json!(REQUESTS)),
        "{found}"
    );
    let source = replayed["source"].as_str().expect("a source");
    let hidden = format!(", credentials of {WITH_COOKIE} hidden");
    assert!(source.ends_with(&hidden), "{found}");
    let benchmarks = result["benchmarks"].as_array().expect("benchmarks");
    assert_eq!(
        (&benchmarks[0]["trials"], &benchmarks[0]["failed"]),
        (&json!(REQUESTS), &json!(0)),
        "{found}"
    );
    // Without its credentials a request is not the one that was recorded.
    assert_eq!(
        (&benchmarks[1]["title"], &benchmarks[1]["trials"]),
        (&json!("recorded"), &json!(REQUESTS - WITH_COOKIE)),
        "{found}"
    );

    let config = json!({"kind": "duet", "first": "shown@1", "recorded": REQUESTS, "calls": 4, "invocations": 2});
    let found = ended(&client, &config).await;
    let benchmarks = result_of(&found)["benchmarks"].as_array().expect("events");
    assert_eq!(benchmarks.len(), REQUESTS, "{found}");
    let title = |one: &&Value| {
        let title = one["title"].as_str().expect("a title");
        title.ends_with(" (credentials hidden)")
    };
    assert_eq!(benchmarks.iter().filter(title).count(), WITH_COOKIE);
    for one in benchmarks {
        assert_eq!(one["failed"], 0, "{found}");
    }
}
