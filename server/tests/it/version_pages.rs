//! The versions page: what each version changed, any two compared, downloads, the way back.

use serde_json::json;

use crate::support::{Browser, Server, TOKEN};

const ONE: &str = "def handler(event, context):\n    return 1\n";
const TWO: &str = "def handler(event, context):\n    return 2\n";

#[tokio::test]
async fn versions_tell_what_they_changed_and_lead_back() {
    let server = Server::start();
    let client = server.client();
    let env = json!({"env": {"KEEP": "s3cr3t-one", "GONE": "s3cr3t-two"}});
    client.deploy("counted", ONE, env).await;
    let patch = json!({"memory_mb": 256, "env": {"KEEP": "s3cr3t-three", "GONE": null}});
    client
        .patch("/api/v1/functions/counted", &patch)
        .await
        .expect(200);
    let code = json!({"code": {"inline": TWO}});
    client
        .put("/api/v1/functions/counted/code", &code)
        .await
        .expect(200);

    let browser = Browser::logged_in(&server, TOKEN).await;
    let page = browser
        .get("/functions/counted/versions")
        .await
        .expect(200)
        .text();
    for part in [
        "Memory: 128 MiB → 256 MiB",
        "env.KEEP: set → set to another value",
        "env.GONE: set → not set",
        "first version",
        "Roll back",
        " by admin",
    ] {
        assert!(page.contains(part), "{part} in {page}");
    }
    let diff = browser
        .get("/functions/counted/versions/3/diff?against=1")
        .await
        .expect(200)
        .text();
    for part in [
        "From version 1 to 3",
        "return 1",
        "return 2",
        "env.KEEP",
        "256 MiB",
    ] {
        assert!(diff.contains(part), "{part} in {diff}");
    }
    for page in [&page, &diff] {
        assert!(!page.contains("s3cr3t"), "a secret in {page}");
    }
    let compare = browser
        .get("/functions/counted/versions/compare?version=2&against=1")
        .await
        .expect(303);
    assert_eq!(
        compare.header("location"),
        "/functions/counted/versions/2/diff?against=1"
    );
    let same = browser
        .get("/functions/counted/versions/1/diff?against=1")
        .await
        .expect(200)
        .text();
    assert!(same.contains("No changes."), "{same}");
    for missing in [
        "9/diff",
        "x/diff",
        "1/diff?against=9",
        "9/code.zip",
        "9/activate",
    ] {
        browser
            .get(&format!("/functions/counted/versions/{missing}"))
            .await
            .expect(404);
    }

    let ask = browser
        .get("/functions/counted/versions/1/activate")
        .await
        .expect(200)
        .text();
    assert!(ask.contains("Activate version 1?") && ask.contains("No request fails"));
    assert_eq!(client.invoke("counted", &json!(0)).await.json(), 2);
    let done = browser
        .submit("/functions/counted/versions/1/activate", &[])
        .await
        .expect(303);
    assert_eq!(
        done.header("location"),
        "/functions/counted/versions?notice=activated"
    );
    assert_eq!(client.invoke("counted", &json!(0)).await.json(), 1);
}

#[tokio::test]
async fn a_download_can_be_deployed_again() {
    let server = Server::start();
    let client = server.client();
    client.deploy("source", ONE, json!({})).await;
    let browser = Browser::logged_in(&server, TOKEN).await;
    let zip = browser
        .get("/functions/source/versions/1/code.zip")
        .await
        .expect(200);
    assert_eq!(
        zip.header("content-disposition"),
        "attachment; filename=\"source-v1.zip\""
    );
    let request = client
        .request(reqwest::Method::PUT, "/api/v1/functions/source/code")
        .header("content-type", "application/zip")
        .body(zip.bytes);
    client.send(request).await.expect(200);
    let versions = client.get("/api/v1/functions/source/versions").await.json();
    assert_eq!(
        versions["items"][0]["code_sha256"],
        versions["items"][1]["code_sha256"]
    );
    client
        .get("/api/v1/functions/source/versions/9/code")
        .await
        .problem(404, "not_found");
    let anonymous = server.client_with(None);
    anonymous
        .get("/api/v1/functions/source/versions/1/code")
        .await
        .problem(401, "unauthorized");
}
