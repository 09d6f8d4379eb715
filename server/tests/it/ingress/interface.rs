//! The programs at an interface, and how long they are there.

use hearth_testkit::namespaces::Namespace;
use serde_json::json;

use super::world::{ADDRESS, INTERFACE, World};
use super::{PATIENCE, deploy, fetch};
use crate::support::{eventually, skip};

/// What `ip` tells of the programs at an interface.
fn attached(namespace: &Namespace) -> String {
    let link = namespace.look("ip", &["-details", "link", "show", INTERFACE]);
    let link = link.expect("ip runs");
    let programs = link.lines().filter(|line| line.contains("prog/xdp"));
    programs.collect()
}

#[tokio::test]
async fn the_ingress_counts_at_an_interface_and_is_gone_with_the_server() {
    let world = World::enter();
    let server = world.server();
    let client = server.client();
    let node = client.get("/api/v1/node").await.expect(200).json();
    assert_eq!(node["capabilities"]["xdp"]["available"], true);
    let interfaces = &node["ingress"]["interfaces"];
    assert_eq!(interfaces[0]["name"], INTERFACE);
    assert_eq!(interfaces[0]["mode"], "native", "{interfaces}");
    assert_ne!(attached(&world.host), "");
    deploy(&client, "f", &[9000]).await;
    for _ in 0..3 {
        let answer = world.outside.within(|| fetch(ADDRESS, "GET / HTTP/1.1"));
        let (head, _) = answer.expect("an answer");
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    }
    let view = client
        .get("/api/v1/functions/f/ingress")
        .await
        .expect(200)
        .json();
    let received = &view["received"];
    assert_eq!(received["starts"], 3, "{view}");
    assert!(received["packets"].as_u64() > Some(9), "{view}");
    assert!(received["bytes"].as_u64() > Some(500), "{view}");
    if interfaces[0]["not_counting_sent"].is_null() {
        assert!(view["sent"]["packets"].as_u64() > Some(6), "{view}");
    } else {
        skip("what functions send is not counted before Linux 6.6");
    }
    assert_eq!(
        view["ports"],
        json!([{"protocol": "tcp", "port": 9000, "by": "steered", "failed": null}])
    );
    // Another server finds the place taken, and says by whom.
    let second = tempfile::tempdir().expect("a directory");
    let output = crate::support::command(&second.path().join("data"))
        .env("HEARTH_XDP_INTERFACE", INTERFACE)
        .output()
        .expect("started");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && said.contains("already has the XDP program ingress"),
        "{said}"
    );
    // SIGKILL.
    drop(server);
    eventually("the program is gone", PATIENCE, || async {
        attached(&world.host).is_empty().then_some(())
    })
    .await;
}
