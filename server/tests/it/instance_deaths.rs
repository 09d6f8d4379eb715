//! Instances that die before anybody has heard of it: no request notices.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;

use crate::support::{Server, descendants, eventually, kill, serving, signal, stop, were_asleep};

#[tokio::test]
async fn an_idle_instance_that_just_died_is_not_given_to_a_request() {
    let server = Server::start();
    let client = server.client();
    client
        .deploy(
            "mortal",
            "def handler(event, context):\n    return 1\n",
            json!({}),
        )
        .await;
    for _ in 0..20 {
        let answer = client.invoke("mortal", &json!(0)).await.expect(200);
        assert_eq!(answer.header("x-hearth-start"), "fork");
        let all = descendants(server.pid());
        let forks: Vec<_> = all
            .iter()
            .filter(|process| process.is_fork("mortal"))
            .collect();
        assert!(!forks.is_empty(), "the instance");
        for fork in forks {
            // No pause: the next request is to come before the server has heard of it.
            kill(fork.pid).unwrap();
        }
    }
}

#[tokio::test]
async fn an_instance_that_died_on_its_way_to_a_request_is_replaced() {
    an_instance_dies_unheard(false).await;
}

#[tokio::test]
async fn an_instance_that_is_gone_before_its_ready_is_read_is_replaced() {
    an_instance_dies_unheard(true).await;
}

/// A start whose process dies once it has said that it is ready and before anybody has heard it. With `reaped`, its number
/// is nobody's when it is heard.
async fn an_instance_dies_unheard(reaped: bool) {
    let server = Server::start();
    let client = server.client();
    let code = "def handler(event, context):\n    return 1\n";
    client.deploy("mortal", code, json!({})).await;
    let forks = || {
        let mut all = descendants(server.pid());
        all.retain(|process| process.is_fork("mortal"));
        all
    };
    let all = descendants(server.pid());
    let template = all.iter().find(|process| process.is_template("mortal"));
    let template = template.expect("its template").pid;
    let serving = serving(server.pid()).expect("the server");

    stop(template).unwrap();
    // What was forked ahead would not need the template.
    for ahead in forks() {
        kill(ahead.pid).unwrap();
    }
    let request = {
        let client = client.clone();
        tokio::spawn(async move { client.invoke("mortal", &json!(0)).await })
    };
    let soon = Duration::from_secs(20);
    eventually("its start", soon, || async {
        let function = client.get("/api/v1/functions/mortal").await;
        let function = function.expect(200).json();
        (function["instances"]["starting"] == 1).then_some(())
    })
    .await;
    // Counted before the template is told to fork.
    has_done_what_it_can(serving).await;
    stop(serving).unwrap();
    signal(template, Signal::CONT).unwrap();
    let instance = eventually("it is ready and waits", soon, || async {
        let mut alive = forks();
        alive.retain(|process| !process.is_zombie());
        let waits = alive.iter().find(|process| process.is_asleep())?;
        Some(waits.pid)
    })
    .await;
    if reaped {
        signal(instance, Signal::KILL).unwrap();
        eventually("its template takes its status", soon, || async {
            let is_there = forks().iter().any(|process| process.pid == instance);
            (!is_there).then_some(())
        })
        .await;
        signal(serving, Signal::CONT).unwrap();
    } else {
        // Nobody takes its status, so that its number is still its own when the server opens it.
        stop(template).unwrap();
        kill(instance).unwrap();
        signal(serving, Signal::CONT).unwrap();
        has_done_what_it_can(serving).await;
        signal(template, Signal::CONT).unwrap();
    }
    let answer = request.await.unwrap().expect(200);
    assert_eq!(answer.header("x-hearth-start"), "fork");
}

/// Waits until the server has done all that it can do by itself.
async fn has_done_what_it_can(serving: u32) {
    let limit = Duration::from_secs(20);
    eventually("the server waits for others", limit, || async {
        were_asleep(serving).then_some(())
    })
    .await;
}
