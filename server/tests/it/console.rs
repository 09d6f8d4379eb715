//! The console over HTTP, as a browser without scripts uses it: sessions, rights, forms, and who is refused.

mod function;

use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::support::{Browser, Lines, Server, TOKEN, encoded};

const ONE: &str = "def handler(event, context):\n    print('counting')\n    return 1\n";

#[tokio::test]
async fn strangers_are_sent_to_the_login() {
    let server = Server::start();
    let browser = Browser::new(&server);
    for (path, login) in [
        ("/", "/login"),
        ("/new", "/login?next=%2Fnew"),
        (
            "/functions/a?status=failed",
            "/login?next=%2Ffunctions%2Fa%3Fstatus%3Dfailed",
        ),
    ] {
        let answer = browser.get(path).await.expect(303);
        assert_eq!(answer.header("location"), login);
    }
    // A page that was left open asks by htmx: the whole page goes to the login.
    let request = browser
        .request(Method::GET, "/functions")
        .header("hx-request", "true")
        .header("hx-current-url", format!("{}/", server.url));
    let answer = browser.send(request).await.expect(401);
    // The page stays, and asks for the password over itself.
    assert_eq!(answer.json()["code"], "unauthorized");
    assert_eq!(answer.header("hx-redirect"), "");

    for wrong in ["", "nonsense", "' or 1=1 --"] {
        let form = encoded(browser.post("/login"), &[("token", wrong)]);
        let answer = browser.send(form).await;
        assert!(answer.status.is_client_error());
        assert_eq!(answer.header("set-cookie"), "");
        assert!(answer.text().contains("id=\"login-error\" role=\"alert\">"));
    }
    for (next, location) in [
        ("/new", "/new"),
        ("//evil.example", "/"),
        ("https://evil.example", "/"),
    ] {
        let form = encoded(browser.post("/login"), &[("token", TOKEN), ("next", next)]);
        let answer = browser.send(form).await.expect(303);
        assert_eq!(answer.header("location"), location);
    }
}

#[tokio::test]
async fn a_session_ends_with_its_logout() {
    let server = Server::start();
    let browser = Browser::logged_in(&server, TOKEN).await;
    browser.get("/").await.expect(200);
    let answer = browser.submit("/logout", &[]).await.expect(303);
    assert!(answer.header("set-cookie").contains("Max-Age=0"));
    browser.get("/").await.expect(303);
}

#[tokio::test]
async fn changes_need_the_sessions_own_page() {
    let server = Server::start();
    let browser = Browser::logged_in(&server, TOKEN).await;
    let good = [("csrf", browser.csrf.as_str())];
    let refused = [
        browser.post("/logout"),
        encoded(browser.post("/logout"), &[("csrf", "wrong")]),
        encoded(
            browser.post("/logout").header("x-csrf-token", "wrong"),
            &good,
        ),
        encoded(
            browser
                .post("/logout")
                .header("sec-fetch-site", "cross-site"),
            &good,
        ),
        encoded(
            browser
                .post("/logout")
                .header("sec-fetch-site", "same-site"),
            &good,
        ),
        encoded(
            browser
                .post("/logout")
                .header("origin", "http://evil.example"),
            &good,
        ),
        encoded(browser.post("/logout").header("origin", "null"), &good),
    ];
    for request in refused {
        let answer = browser.send(request).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{}", answer.text());
    }
    let own = encoded(browser.post("/logout").header("origin", &server.url), &good);
    browser.send(own).await.expect(303);
    // The login is a change as well: another site must not log its visitor in as someone else.
    let login = encoded(
        browser
            .post("/login")
            .header("origin", "http://evil.example"),
        &[("token", TOKEN)],
    );
    assert_eq!(
        browser.send(login).await.expect(403).header("set-cookie"),
        ""
    );
}

#[tokio::test]
async fn a_page_gives_what_the_token_does() {
    let server = Server::start();
    server.client().deploy("one", ONE, json!({})).await;
    let body = json!({"name": "reader", "rights": ["read"]});
    let token = server
        .client()
        .post("/api/v1/tokens", &body)
        .await
        .expect(201)
        .json();
    let browser = Browser::logged_in(&server, token["token"].as_str().expect("a token")).await;
    let list = browser.get("/functions").await.expect(200).text();
    assert!(
        list.contains("/functions/one") && !list.contains("/new"),
        "{list}"
    );
    let page = browser.get("/functions/one").await.expect(200).text();
    assert!(!page.contains("id=\"invoke-button\""));
    let page = browser.get("/new").await.expect(403).text();
    assert!(page.contains("lacks the right &#34;write&#34;"), "{page}");
    for (path, button) in [
        ("code", "id=\"review-button\""),
        ("versions", "data-confirm"),
        ("settings", "id=\"save-button\""),
    ] {
        let page = browser
            .get(&format!("/functions/one/{path}"))
            .await
            .expect(200)
            .text();
        assert!(!page.contains(button), "{button} in {page}");
    }
    for path in [
        "/new",
        "/functions/one/invoke",
        "/functions/one/call",
        "/functions/one/events",
        "/functions/one/events/delete",
        "/functions/one/code",
        "/functions/one/code/review",
        "/functions/one/settings",
        "/functions/one/versions/1/activate",
        "/functions/one/delete",
    ] {
        browser
            .submit(path, &[("confirm", "one"), ("event", "1")])
            .await
            .expect(403);
    }
    server
        .client()
        .get("/api/v1/functions/one")
        .await
        .expect(200);
}

#[tokio::test]
async fn pages_are_closed_to_everything_foreign() {
    let server = Server::start();
    let browser = Browser::logged_in(&server, TOKEN).await;
    for (path, status) in [
        ("/", 200),
        ("/new", 200),
        ("/functions/nope", 404),
        ("/no/such/page", 404),
    ] {
        let answer = browser.get(path).await.expect(status);
        assert!(
            answer.header("content-type").starts_with("text/html"),
            "{path}"
        );
        assert!(
            answer
                .header("content-security-policy")
                .contains("default-src 'none'; script-src 'self'; style-src 'self';"),
            "{path}"
        );
        assert_eq!(answer.header("cache-control"), "no-store");
        let page = answer.text();
        for asset in page.split("src=\"").skip(1) {
            let asset = asset.split('"').next().expect("an address");
            let answer = browser.get(asset).await.expect(200);
            assert!(
                answer.header("cache-control").contains("immutable"),
                "{asset}"
            );
        }
    }
    // Who does not ask for a page gets a problem.
    let api = server.client().get("/no/such/page").await;
    api.problem(404, "not_found");
}

#[tokio::test]
async fn a_pages_stream_sends_what_changed_and_ends_with_its_session_and_with_the_server() {
    let mut server = Server::start();
    let client = server.client();
    client.deploy("one", ONE, json!({})).await;
    let browser = Browser::logged_in(&server, TOKEN).await;
    let path = "/live?overview=1&list=1&function=one&latency=one&window=1m";
    let mut stream = Lines::open(browser.request(Method::GET, path)).await;
    assert_eq!(stream.response.status(), 200);
    let (first, _) = stream.event().await.expect("an event");
    assert_eq!(first, "hello");
    client.invoke("one", &json!({})).await.expect(200);
    let mut seen = std::collections::BTreeSet::new();
    loop {
        let (name, data) = stream.event().await.expect("the stream goes on");
        let counted = data["count"]["invocations"] == 1;
        seen.insert(name);
        if counted {
            break;
        }
    }
    for name in ["traffic", "latency", "values"] {
        assert!(seen.contains(name), "{name} in {seen:?}");
    }
    // Nothing that did not change is sent again.
    loop {
        let (name, data) = stream.event().await.expect("the stream goes on");
        if name == "values" && data.get("count").is_none() {
            break;
        }
    }

    let other = Browser::logged_in(&server, TOKEN).await;
    let mut ended = Lines::open(other.request(Method::GET, "/live?overview=1")).await;
    ended.event().await.expect("an event");
    other.submit("/logout", &[]).await.expect(303);
    while ended.event().await.is_some() {}

    let anonymous = Browser::new(&server);
    anonymous.get(path).await.expect(303);
    browser.get("/live?latency=nope").await.expect(404);
    browser.get("/live?function=nope").await.expect(404);
    browser.get("/live?latency=one&window=9y").await.expect(422);

    server.terminate();
    while stream.event().await.is_some() {}
    assert!(server.wait().success());
}

#[tokio::test]
async fn the_palette_finds_functions_by_name() {
    let server = Server::start();
    for name in ["thumbnail", "image-thumb", "other"] {
        server.client().deploy(name, ONE, json!({})).await;
    }
    let browser = Browser::logged_in(&server, TOKEN).await;
    let found = browser.get("/palette?q=Thumb").await.expect(200).json();
    let names: Vec<_> = found
        .as_array()
        .into_iter()
        .flatten()
        .map(|function| function["name"].as_str().unwrap_or_default())
        .collect();
    assert_eq!(names, ["thumbnail", "image-thumb"]);
    Browser::new(&server).get("/palette?q=a").await.expect(303);
}

/// Pages are compressed for who takes it, each with another CSRF token; streams and functions' answers are not.
#[tokio::test]
async fn pages_are_compressed_and_nothing_else_is() {
    let server = Server::start();
    let client = server.client();
    let settings = json!({"public": true});
    let code = "def handler(event, context):\n    return {'statusCode': 200, 'headers': {'content-type': 'text/html'}, 'body': '<p>' * 5000}\n";
    client.deploy("long", code, settings).await;
    let mut browser = Browser::logged_in(&server, TOKEN).await;
    let mut tokens = Vec::new();
    for _ in 0..2 {
        let page = browser.get("/functions/long").await.expect(200);
        assert_eq!(page.header("content-encoding"), "");
        assert_eq!(page.header("vary"), "accept-encoding");
        let whole = page.text().len();
        let request = browser
            .request(Method::GET, "/functions/long")
            .header("accept-encoding", "gzip, br");
        let packed = browser.send(request).await.expect(200);
        assert_eq!(packed.header("content-encoding"), "gzip");
        assert_eq!(packed.header("vary"), "accept-encoding");
        assert!(packed.bytes.starts_with(b"\x1f\x8b") && packed.bytes.len() * 2 < whole);
        let text = page.text();
        let token = text
            .split_once("name=\"csrf\" value=\"")
            .expect("a token")
            .1;
        tokens.push(token.split_once('"').expect("its end").0.to_owned());
    }
    // The same session's token is another text each time, and each is good.
    assert_ne!(tokens[0], tokens[1]);
    for token in tokens {
        browser.csrf = token;
        let fields = [("theme", "dark")];
        browser.submit("/theme", &fields).await.expect(303);
    }
    for path in ["/fn/long", "/api/v1/functions"] {
        let request = browser
            .request(Method::GET, path)
            .header("accept-encoding", "gzip");
        let answer = browser.send(request).await.expect(200);
        assert_eq!(answer.header("content-encoding"), "", "{path}");
    }
}
