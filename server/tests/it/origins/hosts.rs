//! Which hosts are answered, what is on each, and who says what the client asked for.

use reqwest::Method;
use serde_json::json;

use super::{isolated, policies};
use crate::support::{Browser, Client, Server, TOKEN, encoded, exchange};

/// A request by hand; the lines of its head after the first.
async fn raw(server: &Server, first: &str, lines: &[&str]) -> (u16, String) {
    let mut request = format!("{first} HTTP/1.1\r\n");
    for line in lines {
        request.push_str(line);
        request.push_str("\r\n");
    }
    request.push_str("Connection: close\r\n\r\n");
    let answer = exchange(&server.url, request.as_bytes()).await;
    (
        answer.status,
        String::from_utf8_lossy(&answer.body).into_owned(),
    )
}

#[tokio::test]
async fn only_hosts_that_are_ours_are_answered_and_only_one() {
    let server = Server::start_with(&[("HEARTH_HOSTS", "console.example.com, Other.example.")]);
    let client = server.client();
    client
        .deploy(
            "f",
            "def handler(e, c):\n    return 1\n",
            json!({"public": true}),
        )
        .await;
    let port = server.url.rsplit(':').next().expect("a port");
    let machine = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("a name");
    let token = format!("Authorization: Bearer {TOKEN}");
    let targets = [
        "GET /",
        "GET /api/v1/functions",
        "GET /fn/f",
        "POST /api/v1/functions/f/invoke",
        "GET /nope",
    ];
    for target in targets {
        for ours in [
            "localhost".to_owned(),
            format!("LocalHost.:{port}"),
            format!("127.0.0.1:{port}"),
            "203.0.113.9".to_owned(),
            "[::1]:80".to_owned(),
            "console.example.com:8443".to_owned(),
            "other.example".to_owned(),
            machine.trim().to_owned(),
        ] {
            let host = format!("Host: {ours}");
            let (status, body) = raw(&server, target, &[&host, &token]).await;
            assert!(
                ![400, 421].contains(&status),
                "{target} {ours}: {status} {body}"
            );
        }
        for (lines, status, code) in [
            (&["Host: evil.example"][..], 421, "misdirected_request"),
            (
                &["Host: console.example.com.evil.example"],
                421,
                "misdirected_request",
            ),
            (&["Host: a.localhost"], 421, "misdirected_request"),
            (&[], 400, "invalid_host"),
            (&["Host: localhost", "Host: localhost"], 400, "invalid_host"),
            (
                &["Host: localhost", "Host: evil.example"],
                400,
                "invalid_host",
            ),
            (&["Host: localhost, localhost"], 400, "invalid_host"),
            (&["Host:"], 400, "invalid_host"),
            // Nobody's word for another host.
            (
                &["Host: evil.example", "X-Forwarded-Host: localhost"],
                421,
                "misdirected_request",
            ),
        ] {
            let lines: Vec<&str> = lines.iter().copied().chain([token.as_str()]).collect();
            let (got, body) = raw(&server, target, &lines).await;
            assert_eq!(got, status, "{target} {lines:?}: {body}");
            assert!(body.contains(code), "{body}");
        }
    }
    // The target's host counts where it names one.
    let evil = "GET http://evil.example/api/v1/functions";
    assert_eq!(
        raw(&server, evil, &["Host: localhost", &token]).await.0,
        421
    );
    let ours = "GET http://localhost/api/v1/functions";
    assert_eq!(
        raw(&server, ours, &["Host: evil.example", &token]).await.0,
        200
    );
    assert_eq!(
        raw(&server, "CONNECT localhost:80", &["Host: localhost"])
            .await
            .0,
        400
    );
    // Whoever watches the server may call it anything.
    for path in ["GET /healthz", "GET /readyz"] {
        assert_eq!(
            raw(&server, path, &["Host: balancer.internal"]).await.0,
            200
        );
        assert_eq!(raw(&server, path, &[]).await.0, 400);
    }
}

#[tokio::test]
async fn only_trusted_proxies_say_where_a_request_comes_from() {
    let code = "def handler(event, context):\n    c = event['requestContext']\n    \
        return [c['http']['sourceIp'], c['domainName'], event['headers'].get('x-forwarded-proto', '-')]\n";
    let forwarded = async |trusted: &str, headers: &[(&str, &str)]| {
        let server = Server::start_with(&[
            ("HEARTH_TRUSTED_PROXIES", trusted),
            ("HEARTH_HOSTS", "console.example.com"),
        ]);
        let client = server.client();
        client.deploy("where", code, json!({"public": true})).await;
        let request = |path: &str| {
            let request = client.request(Method::GET, path);
            headers.iter().fold(request, |request, (name, value)| {
                request.header(*name, *value)
            })
        };
        let seen = client.send(request("/fn/where")).await.expect(200).json();
        // The audit log has the same address.
        let body = json!({"name": "t", "rights": ["read"]});
        let made = request("/api/v1/tokens")
            .build()
            .expect("a request")
            .headers()
            .clone();
        let post = client
            .request(Method::POST, "/api/v1/tokens")
            .json(&body)
            .headers(made);
        client.send(post).await.expect(201);
        let audit = client.get("/api/v1/audit").await.expect(200).json();
        let entry = &audit["items"][0];
        assert!(
            entry
                .to_string()
                .contains(&format!("\"{}\"", seen[0].as_str().expect("text"))),
            "{seen}: {entry}"
        );
        seen
    };
    let headers = [
        ("x-forwarded-for", "6.6.6.6, 203.0.113.7, 10.0.0.2"),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-host", "console.example.com"),
    ];
    let nobody = forwarded("", &headers).await;
    assert_eq!((&nobody[0], &nobody[2]), (&json!("127.0.0.1"), &json!("-")));
    let other = forwarded("10.0.0.0/8", &headers).await;
    assert_eq!(other[0], "127.0.0.1");
    let near = forwarded("127.0.0.1", &headers).await;
    assert_eq!(near, json!(["10.0.0.2", "console.example.com", "https"]));
    let both = forwarded("127.0.0.0/8,10.0.0.0/8", &headers).await;
    assert_eq!(both[0], "203.0.113.7");
    let standard = [(
        "forwarded",
        "for=6.6.6.6, for=\"[2001:db8::7]:4711\";proto=https;host=console.example.com",
    )];
    let standard = forwarded("127.0.0.1", &standard).await;
    assert_eq!(
        standard,
        json!(["2001:db8::7", "console.example.com", "https"])
    );
}

#[tokio::test]
async fn over_tls_the_sessions_cookie_is_one_that_no_other_host_can_set() {
    let server = Server::start_with(&[("HEARTH_TRUSTED_PROXIES", "127.0.0.1")]);
    let browser = Browser::new(&server);
    let tls = |request: reqwest::RequestBuilder| request.header("x-forwarded-proto", "https");
    let answer = browser
        .send(encoded(tls(browser.post("/login")), &[("token", TOKEN)]))
        .await
        .expect(303);
    let cookie = answer.header("set-cookie").to_owned();
    assert!(cookie.starts_with("__Host-hearth_session="), "{cookie}");
    for part in ["HttpOnly", "SameSite=Strict", "Path=/;", "Secure"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!cookie.to_ascii_lowercase().contains("domain"), "{cookie}");
    let pair = cookie.split(';').next().expect("a pair");
    let plain = pair.replace("__Host-", "");
    let get = |cookie: &str| {
        browser
            .request(Method::GET, "/account")
            .header("cookie", cookie.to_owned())
    };
    browser.send(tls(get(pair))).await.expect(200);
    // A neighbouring host can set one of the plain name.
    browser.send(tls(get(&plain))).await.expect(303);
    browser.send(get(pair)).await.expect(303);
    let plain_http = browser
        .send(encoded(browser.post("/login"), &[("token", TOKEN)]))
        .await
        .expect(303);
    let cookie = plain_http.header("set-cookie");
    assert!(
        cookie.starts_with("hearth_session=") && !cookie.contains("Secure"),
        "{cookie}"
    );
    let mine = cookie.split(';').next().expect("a pair");
    browser.send(get(mine)).await.expect(200);
    browser
        .send(get(&format!("hearth_session=theirs; {mine}")))
        .await
        .expect(303);
    // Nobody but a trusted proxy says that it was TLS.
    let direct = Server::start();
    let browser = Browser::new(&direct);
    let answer = browser
        .send(encoded(tls(browser.post("/login")), &[("token", TOKEN)]))
        .await
        .expect(303);
    assert!(answer.header("set-cookie").starts_with("hearth_session="));
}

#[tokio::test]
async fn a_function_has_a_host_of_its_own_with_nothing_else_on_it() {
    let server = Server::start_with(&[("HEARTH_FUNCTIONS_HOST", "fn.example.com")]);
    let client = server.client();
    let code = "import json\ndef handler(event, context):\n    \
        return {'statusCode': 200, 'headers': {'content-type': 'text/html', 'accept-ch': 'DPR', \
        'clear-site-data': '\"cookies\", \"storage\"', 'service-worker-allowed': '/'}, \
        'cookies': ['a=1; Path=/; Domain=example.com', 'hearth_session=x; Domain=example.com'], \
        'body': json.dumps([event['rawPath'], event.get('cookies'), event['requestContext']['domainPrefix']])}\n";
    client.deploy("site", code, json!({"public": true})).await;
    client.deploy("private", code, json!({})).await;
    let at = |host: &str, method: Method, path: &str| {
        client.request(method, path).header("host", host.to_owned())
    };
    let own = "Site.fn.EXAMPLE.com.:8080";
    for path in [
        "/",
        "/account",
        "/api/v1/functions",
        "/fn/site/x",
        "/healthz",
        "/static/a",
        "/login",
    ] {
        let request = at(own, Method::GET, path).header("cookie", "hearth_session=x; b=2");
        let answer = client.send(request).await.expect(200);
        assert!(policies(&answer).is_empty(), "an ordinary page");
        assert_eq!(answer.header("accept-ch"), "DPR");
        assert_eq!(answer.header("service-worker-allowed"), "/");
        assert_eq!(answer.header("clear-site-data"), "\"storage\"");
        let cookies: Vec<_> = answer.headers.get_all("set-cookie").iter().collect();
        assert_eq!(cookies, ["a=1; Path=/"]);
        let seen = answer.json();
        assert_eq!((&seen[0], &seen[1]), (&json!(path), &json!(["b=2"])));
    }
    let invoke = at(own, Method::POST, "/api/v1/functions/site/invoke").body("{}");
    let answer = client.send(invoke).await.expect(200);
    assert_eq!(
        answer.json()[0],
        "/api/v1/functions/site/invoke",
        "the function's own path"
    );
    let worker = at(own, Method::GET, "/sw.js").header("service-worker", "script");
    client.send(worker).await.expect(200);

    let anonymous = server.client_with(None);
    for (host, status) in [
        ("private.fn.example.com", 401),
        ("nobody.fn.example.com", 401),
        ("fn.example.com", 421),
        ("a.site.fn.example.com", 421),
        ("example.com", 421),
    ] {
        let request = anonymous.request(Method::GET, "/").header("host", host);
        assert_eq!(
            anonymous.send(request).await.status.as_u16(),
            status,
            "{host}"
        );
    }
    // Below /fn/ on the console's host it is isolated as ever.
    isolated(&client.get("/fn/site").await.expect(200));
}

#[tokio::test]
async fn the_second_listener_has_functions_and_nothing_else() {
    let server = Server::start_with(&[("HEARTH_FUNCTIONS_LISTEN", "127.0.0.1:0")]);
    let functions = server.functions_url();
    let code = "def handler(event, context):\n    \
        return {'statusCode': 200, 'headers': {'content-type': 'text/html', 'nel': '{}', 'strict-transport-security': 'max-age=1'}, \
        'cookies': ['a=1; Path=/', 'hearth_session=x'], 'body': str(event.get('cookies')) + event['rawPath']}\n";
    let client = server.client();
    let made = client.deploy("site", code, json!({"public": true})).await;
    assert_eq!(
        made["url"],
        format!("{functions}/fn/site"),
        "the best address"
    );
    let listed = client.get("/api/v1/functions").await.expect(200).json();
    assert_eq!(listed["items"][0]["url"], made["url"]);
    let there = Client::at(&functions, Some(TOKEN));
    let request = there.request(Method::GET, "/fn/site/a");
    let request = request.header("cookie", "hearth_session=s; b=2; __Host-hearth_session=t");
    let answer = there.send(request).await.expect(200);
    assert!(policies(&answer).is_empty(), "an ordinary page");
    assert_eq!(answer.text(), "['b=2']/a");
    // The host is the console's: what concerns a host and not an origin is held back.
    assert_eq!(answer.header("nel"), "");
    assert_eq!(answer.header("strict-transport-security"), "");
    let cookies: Vec<_> = answer.headers.get_all("set-cookie").iter().collect();
    assert_eq!(cookies, ["a=1; Path=/fn/site"]);
    for path in [
        "/",
        "/login",
        "/account",
        "/api/v1/functions",
        "/healthz",
        "/metrics",
        "/openapi.json",
        "/fn",
        "/static/x/js/app.js",
    ] {
        there.get(path).await.problem(404, "not_found");
    }
    there
        .invoke("site", &json!({}))
        .await
        .problem(404, "not_found");
    let worker = |path: &str| {
        there
            .request(Method::GET, path)
            .header("service-worker", "script")
    };
    there
        .send(worker("/fn/site"))
        .await
        .problem(403, "forbidden");
    there.send(worker("/fn/site/sw.js")).await.expect(200);
    let foreign = there
        .request(Method::GET, "/fn/site")
        .header("host", "evil.example");
    there
        .send(foreign)
        .await
        .problem(421, "misdirected_request");

    // A port that is taken is one line that says so.
    let taken = server.url.trim_start_matches("http://");
    let dir = tempfile::tempdir().expect("a directory");
    let output = crate::support::command(dir.path())
        .env("HEARTH_FUNCTIONS_LISTEN", taken)
        .output()
        .expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success());
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(
        said.contains("HEARTH_FUNCTIONS_LISTEN") && said.contains(taken),
        "{said}"
    );
}
