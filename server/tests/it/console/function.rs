//! All that is done to a function on its pages, in one life.

use reqwest::Method;
use reqwest::multipart::Form;
use serde_json::json;

use super::ONE;
use crate::support::{Browser, Server, TOKEN, settings_form};

#[tokio::test]
async fn a_function_lives_and_dies_without_a_script() {
    let server = Server::start();
    let browser = Browser::logged_in(&server, TOKEN).await;
    assert!(
        browser
            .get("/")
            .await
            .text()
            .contains("id=\"no-functions\"")
    );

    let bad = browser
        .submit(
            "/new",
            &[
                ("name", "Bad"),
                ("runtime", "python3"),
                ("code", ONE),
                ("env_name", "A"),
                ("env_value", "b<"),
            ],
        )
        .await
        .expect(422)
        .text();
    assert!(
        bad.contains("value=\"Bad\"") && bad.contains("value=\"b&#60;\""),
        "what was typed stays: {bad}"
    );
    assert!(bad.contains("id=\"error-name\">Must be 1 to 64"));

    let broken = browser
        .submit(
            "/new",
            &[
                ("name", "one"),
                ("runtime", "python3"),
                ("code", "import nope_nope\n"),
            ],
        )
        .await
        .expect(422)
        .text();
    assert!(
        broken.contains("ModuleNotFoundError") && broken.contains("main.py"),
        "{broken}"
    );

    let made = browser
        .submit(
            "/new",
            &[
                ("name", "one"),
                ("runtime", "python3"),
                ("code", ONE),
                ("env_name", "SECRET"),
                ("env_value", "s3cr3t"),
            ],
        )
        .await
        .expect(303);
    assert_eq!(made.header("location"), "/functions/one?notice=created");

    let invoked = browser
        .submit("/functions/one/invoke", &[("event", "{}")])
        .await
        .expect(200)
        .text();
    for part in [
        "id=\"result-status\">succeeded",
        "id=\"result-body\"",
        ">1</pre>",
        "id=\"stage-bar\"",
        "counting",
        "fork",
    ] {
        assert!(invoked.contains(part), "{part} in {invoked}");
    }
    let refused = browser
        .submit("/functions/one/invoke", &[("event", "{")])
        .await
        .expect(200)
        .text();
    assert!(refused.contains("The event is not valid JSON"), "{refused}");

    let page = browser.get("/functions/one").await.expect(200).text();
    assert!(page.contains("<code>started_for_request</code>"), "{page}");
    let id = page
        .split_once("data-invocation=\"")
        .and_then(|(_, rest)| rest.split_once('"'))
        .map(|(id, _)| id.to_owned())
        .expect("a row of the history");
    let details = browser
        .get(&format!("/functions/one/invocations/{id}"))
        .await
        .expect(200)
        .text();
    for part in [
        "counting",
        "id=\"invocation-event\"",
        &format!("?event={id}"),
    ] {
        assert!(details.contains(part), "{part} in {details}");
    }
    let listed = browser
        .get("/functions/one/invocations?status=succeeded&max_ms=60000&start=")
        .await
        .expect(200)
        .text();
    assert!(listed.contains(&id) && listed.contains("value=\"succeeded\" selected"));
    let none = browser
        .get("/functions/one/invocations?status=failed")
        .await;
    assert!(none.text().contains("No matching invocations"));
    let wrong = browser
        .get("/functions/one/invocations?min_ms=soon")
        .await
        .expect(200)
        .text();
    assert!(
        wrong.contains("Min ms must be a number of milliseconds"),
        "{wrong}"
    );
    let request = browser
        .request(
            Method::GET,
            "/functions/one/invocations?status=succeeded&before=",
        )
        .header("hx-request", "true");
    let part = browser.send(request).await.expect(200);
    assert_eq!(
        part.header("hx-push-url"),
        "/functions/one/invocations?status=succeeded"
    );
    assert!(!part.text().contains("<html"));
    browser.get("/functions/nope/invocations").await.expect(404);
    browser
        .get("/functions/one/invocations?before=x")
        .await
        .expect(422);

    let settings = browser
        .get("/functions/one/settings")
        .await
        .expect(200)
        .text();
    assert!(settings.contains("<code>SECRET</code>") && !settings.contains("s3cr3t"));
    let saved = browser
        .submit(
            "/functions/one/settings",
            &settings_form(&[("env_remove", "SECRET")]),
        )
        .await
        .expect(303);
    assert_eq!(
        saved.header("location"),
        "/functions/one/settings?notice=saved"
    );
    let function = server
        .client()
        .get("/api/v1/functions/one")
        .await
        .expect(200)
        .json();
    assert_eq!(function["memory_mb"], 64);
    assert_eq!(function["env"], json!({}));

    let file =
        reqwest::multipart::Part::bytes(b"def handler(event, context):\n    return 2\n".to_vec())
            .file_name("main.py");
    let form = Form::new()
        .text("csrf", browser.csrf.clone())
        .text("code_source", "file")
        .part("code_file", file);
    browser
        .send(browser.post("/functions/one/code").multipart(form))
        .await
        .expect(303);
    let two = browser
        .submit("/functions/one/invoke", &[("event", "null")])
        .await
        .text();
    assert!(two.contains(">2</pre>"), "{two}");
    browser
        .submit("/functions/one/versions/1/activate", &[])
        .await
        .expect(303);
    let one = browser
        .submit("/functions/one/invoke", &[("event", "null")])
        .await
        .text();
    assert!(one.contains(">1</pre>"), "{one}");

    browser
        .submit("/functions/one/delete", &[("confirm", "two")])
        .await
        .expect(422);
    browser
        .submit("/functions/one/delete", &[("confirm", "one")])
        .await
        .expect(303);
    server
        .client()
        .get("/api/v1/functions/one")
        .await
        .expect(404);
}
