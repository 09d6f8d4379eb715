//! Calls from pages of other origins.

use reqwest::Method;
use serde_json::{Value, json};

use crate::support::{Answer, Browser, Client, Server, TOKEN, encoded, settings_form};

/// Sets CORS headers of its own.
const CODE: &str = "\
def handler(event, context):
    return {'statusCode': 200, 'headers': {'Access-Control-Allow-Origin': 'https://own.example', 'Access-Control-Max-Age': '1',
        'X-Own': '1', 'Vary': 'accept'}, 'body': event['requestContext']['http']['method']}
";
const PAGE: &str = "https://page.example";

fn cors() -> Value {
    json!({
        "allow_origins": [PAGE, "https://other.example"], "allow_methods": ["GET", "PUT"],
        "allow_headers": ["authorization", "x-own"], "expose_headers": ["x-own"], "allow_credentials": true, "max_age_s": 600,
    })
}

async fn preflight(client: &Client, path: &str, origin: &str) -> Answer {
    let request = client
        .request(Method::OPTIONS, path)
        .header("origin", origin)
        .header("access-control-request-method", "PUT")
        .header("access-control-request-headers", "authorization");
    client.send(request).await
}

fn family(answer: &Answer) -> Vec<(String, String)> {
    let mut headers: Vec<_> = answer
        .headers
        .iter()
        .filter(|(name, _)| name.as_str().starts_with("access-control-"))
        .map(|(name, value)| (name.to_string(), value.to_str().expect("text").to_owned()))
        .collect();
    headers.sort();
    headers
}

#[tokio::test]
async fn a_private_functions_preflight_is_answered_and_the_call_that_follows_too() {
    let server = Server::start_with(&[("HEARTH_FUNCTIONS_LISTEN", "127.0.0.1:0")]);
    let (client, nobody) = (server.client(), server.client_with(None));
    client.deploy("f", CODE, json!({"cors": cors()})).await;
    let elsewhere = Client::at(&server.functions_url(), None);
    for (who, path) in [
        (&nobody, "/fn/f"),
        (&nobody, "/fn/f/a?b=c"),
        (&elsewhere, "/fn/f"),
    ] {
        let answer = preflight(who, path, PAGE).await.expect(204);
        let pair = |name: &str, value: &str| (format!("access-control-{name}"), value.to_owned());
        assert_eq!(
            family(&answer),
            [
                pair("allow-credentials", "true"),
                pair("allow-headers", "authorization, x-own"),
                pair("allow-methods", "GET, PUT"),
                pair("allow-origin", PAGE),
                pair("max-age", "600"),
            ]
        );
        assert!(answer.header("vary").contains("origin") && answer.bytes.is_empty());
        let foreign = preflight(who, path, "https://stranger.example").await;
        assert_eq!(family(&foreign.expect(204)), []);
    }
    let put = client.request(Method::PUT, "/fn/f").header("origin", PAGE);
    let answer = client.send(put).await.expect(200);
    assert_eq!(answer.text(), "PUT");
    assert_eq!(answer.header("access-control-allow-origin"), PAGE);
    assert_eq!(answer.header("access-control-allow-credentials"), "true");
    assert_eq!(answer.header("access-control-expose-headers"), "x-own");
    assert_eq!(
        answer.header("access-control-max-age"),
        "",
        "the function's own is replaced"
    );
    let vary: Vec<_> = answer.headers.get_all("vary").iter().collect();
    assert_eq!(vary, ["accept", "origin"]);

    // Refusals can be read by the page, and say no more to anybody else than before.
    let refused = nobody
        .send(nobody.request(Method::PUT, "/fn/f").header("origin", PAGE))
        .await;
    assert_eq!(refused.header("access-control-allow-origin"), PAGE);
    refused.problem(401, "unauthorized");
    let foreign = client
        .request(Method::PUT, "/fn/f")
        .header("origin", "https://stranger.example");
    assert_eq!(family(&client.send(foreign).await.expect(200)), []);
    // A preflight is no invocation.
    let history = client.get("/api/v1/functions/f/invocations").await.json();
    assert_eq!(
        history["items"].as_array().expect("items").len(),
        2,
        "{history}"
    );
    preflight(&nobody, "/fn/nobody", PAGE)
        .await
        .problem(401, "unauthorized");
}

#[tokio::test]
async fn a_function_without_the_setting_speaks_for_itself() {
    let server = Server::start();
    let client = server.client();
    client.deploy("f", CODE, json!({"public": true})).await;
    client.deploy("private", CODE, json!({})).await;
    let nobody = server.client_with(None);
    let answer = preflight(&nobody, "/fn/f", PAGE).await.expect(200);
    assert_eq!(answer.text(), "OPTIONS");
    assert_eq!(
        answer.header("access-control-allow-origin"),
        "https://own.example"
    );
    preflight(&nobody, "/fn/private", PAGE)
        .await
        .problem(401, "unauthorized");
}

#[tokio::test]
async fn the_setting_is_kept_changed_and_taken_away() {
    let server = Server::start();
    let client = server.client();
    let path = "/api/v1/functions/f";
    let made = client.deploy("f", CODE, json!({"cors": cors()})).await;
    assert_eq!(made["cors"], cors());
    client
        .patch(path, &json!({"memory_mb": 64}))
        .await
        .expect(200);
    let server = server.restart();
    let client = server.client();
    assert_eq!(client.get(path).await.json()["cors"], cors());
    for (wrong, field) in [
        (json!("*"), "cors"),
        (
            json!({"allow_origins": ["page.example"]}),
            "cors.allow_origins",
        ),
        (
            json!({"allow_origins": ["*"], "allow_credentials": true}),
            "cors.allow_credentials",
        ),
        (
            json!({"allow_origins": ["*"], "AllowMethods": []}),
            "cors.AllowMethods",
        ),
    ] {
        let refused = client.patch(path, &json!({ "cors": wrong })).await;
        assert_eq!(refused.problem(422, "invalid_field")["field"], field);
    }
    let browser = Browser::logged_in(&server, TOKEN).await;
    let page = browser
        .get("/functions/f/settings")
        .await
        .expect(200)
        .text();
    assert!(
        page.contains(&format!("value=\"{PAGE}, https://other.example\"")),
        "{page}"
    );
    let submit = async |origins: &str, credentials: &str| {
        let fields = settings_form(&[
            ("csrf", browser.csrf()),
            ("cors_origins", origins),
            ("cors_methods", "GET PUT"),
            ("cors_headers", "*"),
            ("cors_max_age_s", "60"),
            ("cors_credentials", credentials),
        ]);
        let post = browser.post("/functions/f/settings");
        browser.send(encoded(post, &fields)).await
    };
    let said = submit("*", "true").await.expect(422).text();
    assert!(said.contains("list the origins"), "{said}");
    submit("http://localhost:3000,https://a.example", "")
        .await
        .expect(303);
    let now = client.get(path).await.json();
    assert_eq!(
        now["cors"],
        json!({
            "allow_origins": ["http://localhost:3000", "https://a.example"], "allow_methods": ["GET", "PUT"],
            "allow_headers": ["*"], "expose_headers": [], "allow_credentials": false, "max_age_s": 60,
        })
    );
    let none = client.patch(path, &json!({"cors": null})).await.expect(200);
    assert_eq!(none.json()["cors"], Value::Null);
}
