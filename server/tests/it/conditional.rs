//! `ETag`, `If-Match` and `If-None-Match`; and the console's forms, which carry what they were filled in on.

use reqwest::multipart::{Form, Part};
use reqwest::{Method, header};
use serde_json::{Value, json};

use crate::support::{Answer, Browser, Client, Server, TOKEN};

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

/// The value of a hidden field of a page.
fn hidden(page: &str, name: &str) -> String {
    let (_, rest) = page
        .split_once(&format!("name=\"{name}\" value=\""))
        .expect(name);
    let (value, _) = rest.split_once('"').expect("its end");
    value.replace("&#34;", "\"").replace("&quot;", "\"")
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
    let typed = |revision: &str| {
        [
            ("loaded", loaded.clone()),
            ("revision", revision.to_owned()),
            ("handler", "main.handler".to_owned()),
            ("memory_mb", "128".to_owned()),
            ("timeout_ms", "7777".to_owned()),
            ("max_concurrency", "8".to_owned()),
            ("idle_timeout_s", "300".to_owned()),
            ("min_instances", "0".to_owned()),
            ("template_idle_timeout_s", "3600".to_owned()),
            ("start", "auto".to_owned()),
            ("network", "none".to_owned()),
        ]
    };
    let submit = async |revision: &str, partial: bool| {
        let mut form = Form::new().text("csrf", browser.csrf().to_owned());
        for (name, value) in typed(revision) {
            form = form.text(name, value);
        }
        let mut request = browser.post(path).multipart(form);
        if partial {
            request = request.header("hx-request", "true");
        }
        browser.send(request).await
    };
    let revision = hidden(&page, "revision");
    for partial in [true, false] {
        let said = submit(&revision, partial).await.expect(422).text();
        assert!(
            said.contains("Version 2 became the active one meanwhile. Nothing was saved."),
            "{said}"
        );
        assert!(
            said.contains("memory_mb from 128 MiB to 512 MiB, start from auto to boot, env.A from not set to set"),
            "{said}"
        );
        // What was typed stays: in the page, or because the partial leaves the form alone.
        assert_eq!(said.contains("value=\"7777\""), !partial);
        assert_eq!(hidden(&said, "revision"), "2");
        assert_eq!(client.get(FUNCTION).await.json()["active_version"], 2);
    }
    // Who saves again means it: just what was changed by hand.
    submit("2", false).await.expect(303);
    let now = client.get(FUNCTION).await.json();
    assert_eq!(
        (&now["memory_mb"], &now["start"], &now["timeout_ms"]),
        (&json!(512), &json!("boot"), &json!(7777))
    );
    assert_eq!(now["env"], json!({"A": null}));
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
        said.contains("Somebody else changed these settings meanwhile. Nothing was saved."),
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
    let upload = async |base: String| {
        let part = Part::bytes(ECHO.as_bytes().to_vec()).file_name("main.py");
        let form = Form::new()
            .text("csrf", browser.csrf().to_owned())
            .text("base", base)
            .text("edits", "[]")
            .text("code_source", "file")
            .part("code_file", part);
        browser
            .send(browser.post("/functions/echo/code").multipart(form))
            .await
    };
    let said = upload(hidden(&page, "base")).await.expect(422).text();
    assert!(
        said.contains("Version 2 was deployed meanwhile. Nothing was changed."),
        "{said}"
    );
    assert_eq!(client.get(FUNCTION).await.json()["active_version"], 2);
    upload(2.to_string()).await.expect(303);
}
