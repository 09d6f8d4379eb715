//! What a restart of the server keeps of images and templates.

use serde_json::json;

use super::{HELLO, TIMEOUT, available, function, image_of, images, kill_template};
use crate::support::{Server, eventually};

#[tokio::test]
async fn images_outlive_the_server_and_damage_is_found() {
    let server = Server::start();
    let client = server.client();
    if !available(&client).await {
        return;
    }
    client.deploy("hello", HELLO, json!({})).await;
    image_of(&client, "hello").await;
    // A half-written image, as a loss of power leaves it.
    std::fs::create_dir_all(server.data_dir().join("images/.new-7/criu")).unwrap();

    let server = server.restart();
    let client = server.client();
    client.invoke("hello", &json!(1)).await.expect(200);
    let image = function(&client, "hello").await["image"].clone();
    assert_eq!(
        (&image["restores"], &image["dumps"]),
        (&json!(1), &json!(0)),
        "{image}"
    );
    assert_eq!(images(&server).len(), 1);

    let pages = images(&server)[0].join("criu/pages-1.img");
    let mut bytes = std::fs::read(&pages).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&pages, bytes).unwrap();
    let server = server.restart();
    let client = server.client();
    client.invoke("hello", &json!(1)).await.expect(200);
    let image = function(&client, "hello").await["image"].clone();
    assert_eq!(image["restores"], 0, "{image}");
    image_of(&client, "hello").await;
    kill_template(&server, &client, "hello").await;
    let answer = client.invoke("hello", &json!(1)).await.expect(200);
    assert_eq!(answer.header("x-hearth-start"), "restore");
}

#[tokio::test]
async fn after_a_restart_functions_are_asleep_until_they_are_called_or_nobody_calls() {
    let code =
        "import time\ndef handler(event, context):\n    time.sleep(event)\n    return event\n";
    let server = Server::start();
    let client = server.client();
    if !available(&client).await {
        return;
    }
    for name in ["called", "uncalled"] {
        client.deploy(name, code, json!({})).await;
    }
    client
        .deploy("kept", code, json!({"min_instances": 1}))
        .await;
    for name in ["called", "uncalled", "kept"] {
        image_of(&client, name).await;
    }
    let server = server.restart();
    let client = server.client();
    client.get("/readyz").await.expect(200);
    let call = tokio::spawn({
        let client = client.clone();
        async move { client.invoke("called", &json!(5)).await }
    });
    eventually("the call", TIMEOUT, || async {
        let busy = function(&client, "called").await["instances"]["busy"].clone();
        (busy == json!(1)).then_some(())
    })
    .await;
    assert_eq!(function(&client, "uncalled").await["state"], "asleep");
    eventually("what has to be up", TIMEOUT, || async {
        let idle = function(&client, "kept").await["instances"]["idle"].clone();
        (idle == json!(1)).then_some(())
    })
    .await;
    let answer = call.await.unwrap().expect(200);
    assert_eq!(answer.header("x-hearth-start"), "restore");
    eventually("nothing else to do", TIMEOUT, || async {
        (function(&client, "uncalled").await["state"] == "ready").then_some(())
    })
    .await;
    let image = function(&client, "uncalled").await["image"].clone();
    assert_eq!(image["restores"], 1, "{image}");
}
