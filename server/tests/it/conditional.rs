//! `ETag`, `If-Match` and `If-None-Match`; and the console's forms, which carry what they were filled in on.

use reqwest::{Method, header};
use serde_json::{Value, json};

use crate::support::{Answer, Browser, Client, Server, TOKEN, encoded, hidden, settings_form};

const ECHO: &str = "def handler(event, context):\n    return event\n";
const FUNCTION: &str = "/api/v1/functions/echo";

async fn echo() -> (Server, Client) {
    let server = Server::start();
    let client = server.client();
    client.deploy("echo", ECHO, json!({})).await;
    (server, client)
}

async fn on_condition(
    client: &Client,
    method: Method,
    path: &str,
    tag: &str,
    body: Value,
) -> Answer {
    let request = client.request(method, path).header(header::IF_MATCH, tag);
    client.send(request.json(&body)).await
}

async fn tag_of(client: &Client, path: &str) -> String {
    let answer = client.get(path).await.expect(200);
    let tag = answer.header("etag").to_owned();
    assert!(tag.starts_with('"') && tag.ends_with('"'), "{tag:?}");
    tag
}

#[tokio::test]
async fn an_answer_that_the_client_has_is_not_sent_again() {
    let (_server, client) = echo().await;
    for path in [FUNCTION, "/api/v1/retention"] {
        let tag = tag_of(&client, path).await;
        let ask = |tag: &str| {
            client
                .request(Method::GET, path)
                .header(header::IF_NONE_MATCH, tag)
        };
        let same = client.send(ask(&tag)).await.expect(304);
        assert!(same.bytes.is_empty());
        assert_eq!(same.header("etag"), tag);
        client.send(ask("*")).await.expect(304);
        client.send(ask("\"another\"")).await.expect(200);
        // Figures that change on their own are a part of the answer.
        client.invoke("echo", &json!(1)).await.expect(200);
        if path == FUNCTION {
            let live = client.send(ask(&tag)).await.expect(200);
            assert_eq!(live.json()["instances"]["idle"], 1);
            let nothing = json!({"timeout_ms": 30_000});
            let kept = on_condition(&client, Method::PATCH, path, &tag, nothing).await;
            kept.expect(200);
        }
    }
}

#[tokio::test]
async fn a_change_is_made_to_what_it_is_meant_for_or_not_at_all() {
    let (_server, client) = echo().await;
    let first = tag_of(&client, FUNCTION).await;
    let code = format!("{FUNCTION}/code");
    let activate = format!("{FUNCTION}/versions/1/activate");
    let settings = json!({"memory_mb": 256});
    let second = on_condition(&client, Method::PATCH, FUNCTION, &first, settings.clone()).await;
    let second = second.expect(200).header("etag").to_owned();
    for (method, path, body) in [
        (Method::PATCH, FUNCTION, settings.clone()),
        (Method::PUT, &code, json!({"code": {"inline": ECHO}})),
        (Method::POST, &activate, json!({})),
        (Method::DELETE, FUNCTION, json!({})),
    ] {
        for tag in [
            first.as_str(),
            "\"nonsense\"",
            "nonsense",
            &format!("W/{second}"),
        ] {
            let refused = on_condition(&client, method.clone(), path, tag, body.clone()).await;
            let present = refused.header("etag").trim_matches('"').to_owned();
            assert!(
                second.starts_with(&format!("\"{present}-")),
                "{present} {second}"
            );
            refused.problem(412, "precondition_failed");
        }
    }
    let now = client.get(FUNCTION).await.json();
    assert_eq!(
        (&now["active_version"], &now["memory_mb"]),
        (&json!(2), &json!(256))
    );
    let body = json!({"code": {"inline": ECHO}});
    let third = on_condition(&client, Method::PUT, &code, &second, body).await;
    let third = third.expect(200).header("etag").to_owned();
    let among = format!("{first}, {third}");
    let back = on_condition(&client, Method::POST, &activate, &among, json!({})).await;
    back.expect(200);
    // Version 1 is what was seen first: nobody's change would be undone.
    let fourth = on_condition(&client, Method::PATCH, FUNCTION, &first, settings).await;
    fourth.expect(200);
    on_condition(
        &client,
        Method::PATCH,
        FUNCTION,
        "*",
        json!({"memory_mb": 512}),
    )
    .await
    .expect(200);
    let last = tag_of(&client, FUNCTION).await;
    on_condition(&client, Method::DELETE, FUNCTION, &last, json!({}))
        .await
        .expect(204);
    on_condition(&client, Method::DELETE, FUNCTION, &last, json!({}))
        .await
        .problem(404, "not_found");
    // The same name is another function.
    let anew = client.try_deploy("echo", ECHO, json!({})).await.expect(201);
    assert_ne!(anew.header("etag"), first);
    on_condition(&client, Method::DELETE, FUNCTION, &first, json!({}))
        .await
        .problem(412, "precondition_failed");
}

#[tokio::test]
async fn of_changes_at_the_same_time_one_is_made() {
    let (_server, client) = echo().await;
    for (path, field, least) in [
        (FUNCTION, "timeout_ms", 1000),
        ("/api/v1/retention", "logs_days", 100),
    ] {
        for round in 0..3 {
            let tag = tag_of(&client, path).await;
            let tries = (0..8).map(|n| {
                let (client, tag) = (client.clone(), tag.clone());
                let body = json!({ field: least + 8 * round + n });
                tokio::spawn(
                    async move { on_condition(&client, Method::PATCH, path, &tag, body).await },
                )
            });
            let mut made = 0;
            for answer in futures_util::future::join_all(tries).await {
                let answer = answer.expect("no panic");
                match answer.status.as_u16() {
                    200 => made += 1,
                    _ => drop(answer.problem(412, "precondition_failed")),
                }
            }
            assert_eq!(made, 1, "{path}");
        }
    }
}

/// The revision of another version of the same function.
fn of_version(revision: &str, version: u32) -> String {
    let (function, _) = revision.split_once('.').expect("function and version");
    format!("{function}.{version}")
}

#[tokio::test]
async fn a_settings_form_does_not_undo_what_somebody_else_saved_meanwhile() {
    let (server, client) = echo().await;
    let browser = Browser::logged_in(&server, TOKEN).await;
    let path = "/functions/echo/settings";
    let page = browser.get(path).await.expect(200).text();
    let others = json!({"memory_mb": 512, "start": "boot", "env": {"A": "b"}});
    client.patch(FUNCTION, &others).await.expect(200);
    let loaded = hidden(&page, "loaded");
    let submit = async |revision: &str, partial: bool| {
        let fields = settings_form(&[
            ("csrf", browser.csrf()),
            ("loaded", &loaded),
            ("revision", revision),
            ("memory_mb", "128"),
            ("timeout_ms", "7777"),
        ]);
        let mut request = encoded(browser.post(path), &fields);
        if partial {
            request = request.header("hx-request", "true");
        }
        browser.send(request).await
    };
    let revision = hidden(&page, "revision");
    for partial in [true, false] {
        let said = submit(&revision, partial).await.expect(422).text();
        assert!(
            said.contains("Version 2 became active in the meantime. Nothing was saved."),
            "{said}"
        );
        assert!(
            said.contains("memory_mb from 128 MiB to 512 MiB, start from auto to boot, env.A from not set to set"),
            "{said}"
        );
        // What was typed stays: in the page, or because the partial leaves the form alone.
        assert_eq!(said.contains("value=\"7777\""), !partial);
        assert_eq!(hidden(&said, "revision"), of_version(&revision, 2));
        assert_eq!(client.get(FUNCTION).await.json()["active_version"], 2);
    }
    // Who saves again means it: just what was changed by hand.
    submit(&of_version(&revision, 2), false).await.expect(303);
    let now = client.get(FUNCTION).await.json();
    assert_eq!(
        (&now["memory_mb"], &now["start"], &now["timeout_ms"]),
        (&json!(512), &json!("boot"), &json!(7777))
    );
    assert_eq!(now["env"], json!({"A": null}));
}

#[tokio::test]
async fn a_function_is_not_deleted_for_what_its_page_did_not_show() {
    let (server, client) = echo().await;
    let browser = Browser::logged_in(&server, TOKEN).await;
    let page = browser.get("/functions/echo/settings").await.expect(200);
    let revision = hidden(&page.text(), "revision");
    let submit = async |revision: &str, confirm: &str, partial: bool| {
        let fields = [
            ("csrf", browser.csrf()),
            ("revision", revision),
            ("confirm", confirm),
        ];
        let mut request = encoded(browser.post("/functions/echo/delete"), &fields);
        if partial {
            request = request.header("hx-request", "true");
        }
        browser.send(request).await
    };
    // A mistyped name is no consent to what came meanwhile.
    let others = json!({"memory_mb": 512});
    client.patch(FUNCTION, &others).await.expect(200);
    let said = submit(&revision, "ech", true).await.expect(422).text();
    assert_eq!(hidden(&said, "revision"), revision);
    let mut present = String::new();
    for partial in [true, false] {
        let said = submit(&revision, "echo", partial).await.expect(422).text();
        let refusal = "Version 2 became active in the meantime. Nothing was deleted. It changed memory_mb from 128 MiB \
                    to 512 MiB. Press Delete again to delete it anyway.";
        assert!(said.contains(refusal), "{said}");
        present = hidden(&said, "revision");
        assert_eq!(present, of_version(&revision, 2));
    }
    client.get(FUNCTION).await.expect(200);
    // One that was made anew under the name is another function, though its version has the same number.
    client.delete(FUNCTION).await.expect(204);
    client.deploy("echo", ECHO, json!({})).await;
    client.patch(FUNCTION, &others).await.expect(200);
    let said = submit(&present, "echo", true).await.expect(422).text();
    assert!(
        said.contains(
            "The function was deleted and created again in the meantime. Nothing was deleted."
        ),
        "{said}"
    );
    submit(&hidden(&said, "revision"), "echo", true)
        .await
        .expect(200);
    client.get(FUNCTION).await.problem(404, "not_found");
}

#[tokio::test]
async fn a_version_is_not_activated_in_place_of_one_that_its_page_did_not_show() {
    let (server, client) = echo().await;
    let settings = json!({"memory_mb": 256});
    client.patch(FUNCTION, &settings).await.expect(200);
    let browser = Browser::logged_in(&server, TOKEN).await;
    let path = "/functions/echo/versions/1/activate";
    let revision = hidden(&browser.get(path).await.expect(200).text(), "revision");
    let link = browser.get("/functions/echo/versions").await.expect(200);
    assert!(
        link.text()
            .contains(&format!("hx-vals='{{\"revision\": \"{revision}\"}}'"))
    );
    let others = json!({"timeout_ms": 7777});
    client.patch(FUNCTION, &others).await.expect(200);
    let refused = browser
        .submit(path, &[("revision", &revision)])
        .await
        .expect(303);
    let asked_again = refused.header("location").to_owned();
    assert_eq!(asked_again, format!("{path}?shown={revision}"));
    assert_eq!(client.get(FUNCTION).await.json()["active_version"], 3);
    let said = browser.get(&asked_again).await.expect(200).text();
    assert!(
        said.contains("Version 3 became active in the meantime. Nothing was changed.")
            && said.contains("It changed timeout_ms from 30000 ms to 7777 ms."),
        "{said}"
    );
    let present = hidden(&said, "revision");
    let done = browser
        .submit(path, &[("revision", &present)])
        .await
        .expect(303);
    assert_eq!(
        done.header("location"),
        "/functions/echo/versions?notice=activated"
    );
    assert_eq!(client.get(FUNCTION).await.json()["active_version"], 1);
    // Only what was done is in the audit log.
    let log = client.get("/api/v1/audit?action=function.activate").await;
    assert_eq!(
        log.json()["items"].as_array().map(Vec::len),
        Some(1),
        "{}",
        log.text()
    );
    let nonsense = [("revision", "\r\nX: 1&\u{e9}")];
    let refused = browser.submit(path, &nonsense).await.expect(303);
    assert_eq!(refused.header("location"), format!("{path}?shown=1"));
    browser.get(refused.header("location")).await.expect(303);
}

#[tokio::test]
async fn a_retention_form_does_not_undo_what_somebody_else_saved_meanwhile() {
    let (server, client) = echo().await;
    let browser = Browser::logged_in(&server, TOKEN).await;
    let page = browser.get("/retention").await.expect(200).text();
    let (loaded, revision) = (hidden(&page, "loaded"), hidden(&page, "revision"));
    client
        .patch("/api/v1/retention", &json!({"logs_days": 3}))
        .await
        .expect(200);
    let submit = async |revision: &str| {
        let fields = [
            ("loaded", loaded.as_str()),
            ("revision", revision),
            ("invocations_days", "77"),
            ("invocations_mib", "2048"),
            ("logs_days", "14"),
            ("logs_mib", "1024"),
            ("statistics_days", "90"),
            ("audit_days", "400"),
            ("event_bytes", "4096"),
            ("result_bytes", "4096"),
        ];
        browser.submit("/retention", &fields).await
    };
    let said = submit(&revision).await.expect(422).text();
    assert!(
        said.contains("Somebody else changed these settings in the meantime. Nothing was saved."),
        "{said}"
    );
    assert!(
        said.contains("logs_days from 14 to 3") && said.contains("value=\"77\""),
        "{said}"
    );
    submit(&hidden(&said, "revision")).await.expect(303);
    let settings = client.get("/api/v1/retention").await.json()["settings"].clone();
    assert_eq!(
        (&settings["logs_days"], &settings["invocations_days"]),
        (&json!(3), &json!(77))
    );
}

#[tokio::test]
async fn an_upload_does_not_replace_code_that_its_page_did_not_show() {
    let (server, client) = echo().await;
    let browser = Browser::logged_in(&server, TOKEN).await;
    let page = browser.get("/functions/echo/code").await.expect(200).text();
    let body = json!({"code": {"inline": format!("{ECHO}# another's\n")}});
    client
        .put(&format!("{FUNCTION}/code"), &body)
        .await
        .expect(200);
    let upload = async |base: &str| browser.upload_code("echo", base, ECHO).await;
    let said = upload(&hidden(&page, "base")).await.expect(422).text();
    assert!(
        said.contains("Version 2 was deployed in the meantime. Nothing was changed."),
        "{said}"
    );
    assert_eq!(client.get(FUNCTION).await.json()["active_version"], 2);
    upload("2").await.expect(303);
}
