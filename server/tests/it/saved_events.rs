//! Events that are saved for a function, samples, and calls by URL from the test panel.

use serde_json::json;

use crate::experiments::{agent, ended, refused};
use crate::support::{Browser, Server, TOKEN};

const ECHO: &str = "def handler(event, context):\n    return event\n";

#[tokio::test]
async fn events_are_saved_chosen_replaced_and_deleted() {
    let server = Server::start();
    server.client().deploy("echo", ECHO, json!({})).await;
    let browser = Browser::logged_in(&server, TOKEN).await;
    let save = |name: &'static str, event: &'static str| {
        let browser = &browser;
        async move {
            let fields = [("event_name", name), ("event", event)];
            browser.submit("/functions/echo/events", &fields).await
        }
    };
    let saved = save("Ada", "{\"name\": \"Ada\"}").await.expect(303);
    let page = saved.header("location").to_owned();
    let key = page
        .split_once("pick=")
        .expect("the event's key")
        .1
        .to_owned();
    let shown = browser.get(&page).await.expect(200).text();
    assert!(
        shown.contains("{&#34;name&#34;: &#34;Ada&#34;}") && shown.contains("data-explicit"),
        "{shown}"
    );
    // The command calls with exactly this event.
    assert!(
        shown.contains("-d &#39;{&#34;name&#34;: &#34;Ada&#34;}&#39;</code>"),
        "{shown}"
    );
    let event = format!("/functions/echo/event?pick={key}");
    assert_eq!(
        browser.get(&event).await.expect(200).text(),
        "{\"name\": \"Ada\"}"
    );

    let again = save("Ada", "{\"name\": \"Grace\"}").await.expect(303);
    assert_eq!(again.header("location"), page, "the name has one event");
    assert_eq!(
        browser.get(&event).await.expect(200).text(),
        "{\"name\": \"Grace\"}"
    );

    for (name, event) in [("", "{}"), ("bad", "{"), ("two\nlines", "{}")] {
        save(name, event).await.expect(422);
    }
    // The page starts with what was saved first.
    let shown = browser.get("/functions/echo").await.expect(200).text();
    assert!(
        shown.contains("{&#34;name&#34;: &#34;Grace&#34;}"),
        "{shown}"
    );

    browser
        .submit("/functions/echo/events/delete", &[("pick", &key)])
        .await
        .expect(303);
    browser.get(&event).await.expect(404);
    browser
        .submit("/functions/echo/events/delete", &[("pick", &key)])
        .await
        .expect(404);
    browser
        .submit("/functions/echo/events/delete", &[("pick", "sample-http")])
        .await
        .expect(404);
}

#[tokio::test]
async fn samples_can_be_invoked_with() {
    let server = Server::start();
    server.client().deploy("echo", ECHO, json!({})).await;
    let browser = Browser::logged_in(&server, TOKEN).await;
    for key in ["empty", "http", "scheduled", "list"] {
        let path = format!("/functions/echo/event?pick=sample-{key}");
        let event = browser.get(&path).await.expect(200).text();
        let shown = browser
            .submit("/functions/echo/invoke", &[("event", &event)])
            .await
            .expect(200)
            .text();
        assert!(
            shown.contains("id=\"result-status\">succeeded"),
            "{key}: {shown}"
        );
    }
    browser
        .get("/functions/echo/event?pick=sample-nope")
        .await
        .expect(404);
    let picked = browser
        .submit("/functions/echo/events/pick", &[("pick", "sample-http")])
        .await
        .expect(303);
    let page = browser
        .get(picked.header("location"))
        .await
        .expect(200)
        .text();
    assert!(
        page.contains("&#34;rawPath&#34;: &#34;/items/7&#34;"),
        "{page}"
    );
}

#[tokio::test]
async fn an_earlier_calls_event_is_called_with_again() {
    let server = Server::start();
    let client = server.client();
    client.deploy("echo", ECHO, json!({})).await;
    client.deploy("other", ECHO, json!({})).await;
    let called = client.invoke("echo", &json!({"from": "earlier"})).await;
    let id = called
        .expect(200)
        .header("x-hearth-invocation-id")
        .to_owned();
    let browser = Browser::logged_in(&server, TOKEN).await;
    let page = |function: &str| format!("/functions/{function}?event={id}");
    let shown = browser.get(&page("echo")).await.expect(200).text();
    assert!(
        shown.contains("&#34;from&#34;: &#34;earlier&#34;") && shown.contains("data-explicit"),
        "{shown}"
    );
    // It is no other function's.
    let shown = browser.get(&page("other")).await.expect(200).text();
    assert!(!shown.contains("earlier"), "{shown}");
}

#[tokio::test]
async fn a_reader_chooses_but_saves_nothing() {
    let server = Server::start();
    server.client().deploy("echo", ECHO, json!({})).await;
    let body = json!({"name": "caller", "rights": ["read", "invoke"]});
    let token = server
        .client()
        .post("/api/v1/tokens", &body)
        .await
        .expect(201)
        .json();
    let browser = Browser::logged_in(&server, token["token"].as_str().expect("a token")).await;
    let page = browser.get("/functions/echo").await.expect(200).text();
    assert!(
        page.contains("id=\"pick\"") && !page.contains("id=\"save-event\""),
        "{page}"
    );
    let fields = [("event_name", "x"), ("event", "{}")];
    browser
        .submit("/functions/echo/events", &fields)
        .await
        .expect(403);
}

#[tokio::test]
async fn a_function_is_called_as_by_its_url() {
    let server = Server::start();
    let code = "import json\ndef handler(event, context):\n    print('called by', event['requestContext']['http']['method'])\n    \
        return {'statusCode': 418, 'headers': {'content-type': 'application/json', 'x-kind': 'tea'}, 'body': json.dumps({\n        \
        'path': event['rawPath'], 'query': event.get('queryStringParameters'), 'header': event['headers'].get('x-a'), 'body': event.get('body')})}\n";
    server.client().deploy("tea", code, json!({})).await;
    let browser = Browser::logged_in(&server, TOKEN).await;
    let fields = [
        ("method", "PUT"),
        ("path", "pots/a b"),
        ("query", "size=2"),
        ("headers", "X-A: 1\r\ncontent-type: text/plain"),
        ("body", "hot"),
    ];
    let page = browser
        .submit("/functions/tea/call", &fields)
        .await
        .expect(200)
        .text();
    for part in [
        "HTTP 418",
        "&#34;path&#34;: &#34;/pots/a%20b&#34;",
        "&#34;size&#34;: &#34;2&#34;",
        "&#34;header&#34;: &#34;1&#34;",
        "&#34;body&#34;: &#34;hot&#34;",
        "<dt>x-kind</dt><dd>tea</dd>",
        "called by PUT",
        "started by fork",
        "id=\"stage-bar\"",
        // The form is as it was typed.
        "value=\"pots/a b\"",
    ] {
        assert!(page.contains(part), "{part} in {page}");
    }
    let refused = browser
        .submit(
            "/functions/tea/call",
            &[("method", "GET"), ("path", "/"), ("headers", "no colon")],
        )
        .await
        .expect(200)
        .text();
    assert!(refused.contains("invalid_field"), "{refused}");
    let history = server
        .client()
        .get("/api/v1/functions/tea/invocations")
        .await
        .json();
    assert_eq!(history["items"][0]["trigger"], "http");
}

#[tokio::test]
async fn a_duet_compares_with_events_that_were_saved() {
    let server = Server::start();
    let client = server.client();
    let code = "def handler(event, context):\n    return sum(range(event['size']))\n";
    client.deploy("summed", code, json!({})).await;
    let saved = "/api/v1/functions/summed/saved-events";
    for (name, size) in [("small", 1_000), ("a/b%20c", 2_000), ("other", 1)] {
        let path = format!("{saved}/{}", name.replace('/', "%2F"));
        let put = client.put(&path, &json!({ "size": size })).await;
        put.expect(201);
    }
    let duet = |saved: serde_json::Value| json!({"kind": "duet", "first": "summed@1", "saved": saved, "calls": 4, "invocations": 2});
    refused(
        &client,
        &duet(json!(["small", "none"])),
        "saved: there is no saved event \"none\" of summed",
    )
    .await;
    refused(&client, &duet(json!(["small", "small"])), "each once").await;
    let _agent = agent(&server);
    let found = ended(&client, &duet(json!(["a/b c", "small"]))).await;
    // By chance it differs from itself.
    let state = found["state"].as_str().expect("a state");
    assert!(["succeeded", "fell_short"].contains(&state), "{found}");
    let benchmarks = found["result"]["benchmarks"].as_array().expect("events");
    let titles: Vec<&serde_json::Value> = benchmarks.iter().map(|one| &one["title"]).collect();
    assert_eq!(titles, ["a/b c", "small"], "{found}");
    for one in benchmarks {
        assert_eq!((&one["trials"], &one["failed"]), (&json!(12), &json!(0)));
    }
}
