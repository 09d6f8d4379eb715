//! Chains in the console, without scripts: workloads, the chain's page, routes and settings, versions, a request.

use reqwest::Method;
use serde_json::{Value, json};

use super::{SHOP, with_functions};
use crate::ports::free;
use crate::support::{Browser, Server, TOKEN, hidden};

/// The fields of a chain's form with some of them changed.
fn form<'a>(others: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let usual = [
        ("members", "cart: cart x2\npay: payment version 1"),
        ("routes", "checkout: cart, pay"),
        ("edges", ""),
        ("block_kb", "16"),
        ("blocks", "64"),
        ("transport", "auto"),
        ("timeout_ms", "3000"),
        ("cpu", "proportional"),
        ("cpu_us", "cart: 120\r\npay: 9"),
    ];
    let is_other = |name: &str| others.iter().any(|(other, _)| *other == name);
    let mut fields: Vec<_> = usual
        .into_iter()
        .filter(|(name, _)| !is_other(name))
        .collect();
    fields.extend_from_slice(others);
    fields
}

#[tokio::test]
async fn a_chain_lives_and_dies_without_a_script() {
    let (server, client) = with_functions().await;
    let browser = Browser::logged_in(&server, TOKEN).await;
    let empty = browser.get("/chains").await.expect(200).text();
    assert!(empty.contains("id=\"no-chains\"") && empty.contains("id=\"deploy-parking\""));

    let wrong = form(&[("name", "shop"), ("routes", "checkout: cart, nobody")]);
    let wrong = browser
        .submit("/new-chain", &wrong)
        .await
        .expect(422)
        .text();
    assert!(
        wrong.contains("Routes.checkout[1]: must be a member of the chain"),
        "{wrong}"
    );
    assert!(
        wrong.contains("pay: payment version 1"),
        "what was typed stays"
    );
    let wrong = form(&[("name", "shop"), ("payload_kb", "20")]);
    let wrong = browser
        .submit("/new-chain", &wrong)
        .await
        .expect(422)
        .text();
    assert!(
        wrong.contains("Pool.payload_kb: must be a multiple of block_kb"),
        "{wrong}"
    );
    let made = browser
        .submit(
            "/new-chain",
            &form(&[("name", "shop"), ("payload_kb", "256")]),
        )
        .await
        .expect(303);
    assert_eq!(made.header("location"), "/chains/shop?notice=created");
    let settings = browser.get("/chains/shop/settings").await.expect(200);
    let settings = settings.text();
    assert!(settings.contains("value=\"256\"") && settings.contains("cart: 120\npay: 9"));
    let taken = browser
        .submit("/new-chain", &form(&[("name", "shop")]))
        .await
        .expect(422);
    assert!(taken.text().contains("There is a chain of this name."));

    let page = browser.get("/chains/shop").await.expect(200).text();
    assert!(page.contains("id=\"chain-state\">ready<"), "{page}");
    assert!(page.contains("cart → pay") && !page.contains("id=\"own-ports\""));
    let port = free();
    let line = format!("udp {port} batch 2 wait 3 route checkout");
    let nowhere = form(&[("triggers", "udp 9000 route nowhere")]);
    let nowhere = browser.submit("/chains/shop/settings", &nowhere).await;
    let said = "Triggers[0].route: must be a route of the chain: one of checkout";
    let nowhere = nowhere.expect(422).text();
    assert!(nowhere.contains(said), "{nowhere}");
    let limited = form(&[("limit_total_rate", "5")]);
    let limited = browser.submit("/chains/shop/settings", &limited).await;
    assert!(limited.expect(422).text().contains("HEARTH_XDP_INTERFACE"));
    let opened = form(&[("triggers", &line)]);
    browser
        .submit("/chains/shop/settings", &opened)
        .await
        .expect(303);
    let page = browser.get("/chains/shop").await.expect(200).text();
    assert!(
        page.contains(&format!("udp {port}")) && page.contains("up to 2 at once"),
        "{page}"
    );
    let settings = browser
        .get("/chains/shop/settings")
        .await
        .expect(200)
        .text();
    assert!(settings.contains("cart: cart x2") && settings.contains("pay: payment version 1"));
    assert!(settings.contains(&line), "{settings}");
    let revision = hidden(&settings, "revision");

    client
        .patch(SHOP, &json!({"timeout_ms": 4000}))
        .await
        .expect(200);
    let fields = form(&[("revision", &revision), ("edges", "cart -> pay")]);
    let late = browser
        .submit("/chains/shop/settings", &fields)
        .await
        .expect(422)
        .text();
    assert!(late.contains("has changed since"), "{late}");
    let revision = hidden(&late, "revision");
    let fields = form(&[("revision", &revision), ("edges", "cart -> pay")]);
    browser
        .submit("/chains/shop/settings", &fields)
        .await
        .expect(303);
    let now = client.get(SHOP).await.expect(200).json();
    assert_eq!(
        (&now["active_version"], &now["edges"]),
        (&json!(4), &json!([["cart", "pay"]]))
    );

    let activate = [("revision", "")];
    let back = browser
        .submit("/chains/shop/versions/1/activate", &activate)
        .await;
    assert_eq!(
        back.expect(303).header("location"),
        "/chains/shop?notice=activated"
    );
    let unsure = browser
        .submit("/chains/shop/delete", &[("confirm", "sho")])
        .await
        .expect(422);
    assert!(unsure.text().contains("Type the chain&#39;s name"));
    browser
        .submit("/chains/shop/delete", &[("confirm", "shop")])
        .await
        .expect(303);
    browser.get("/chains/shop").await.expect(404);
}

#[tokio::test]
async fn a_workload_is_deployed_at_once_and_its_requests_are_shown() {
    let server = Server::start();
    let client = server.client();
    let browser = Browser::logged_in(&server, TOKEN).await;
    let made = browser
        .submit("/chain-workloads/motion", &[])
        .await
        .expect(303);
    assert_eq!(made.header("location"), "/chains/motion?notice=created");
    let again = browser
        .submit("/chain-workloads/motion", &[])
        .await
        .expect(409);
    assert!(again.text().contains("already exists"));
    browser
        .submit("/chain-workloads/nothing", &[])
        .await
        .expect(404);

    let event = json!({"sensor": 114, "start_ms": 5, "end_ms": 850});
    let path = "/api/v1/chains/motion/routes/motion/invoke";
    let answer = client.post(path, &event).await.expect(200);
    assert_eq!(answer.json(), json!({"light": 114, "on": true}));
    let id = answer.header("x-hearth-invocation-id").to_owned();

    let request = browser.request(Method::GET, "/chains/motion?part=requests");
    let part = browser
        .send(request.header("hx-request", "true"))
        .await
        .expect(200)
        .text();
    assert!(
        part.contains(&format!("/chains/motion/requests/{id}")),
        "{part}"
    );
    let request = browser.request(Method::GET, "/chains/motion?part=live");
    let part = browser
        .send(request.header("hx-request", "true"))
        .await
        .expect(200)
        .text();
    assert_eq!(part.matches("class=\"chain-node\"").count(), 3, "{part}");
    let page = browser
        .get(&format!("/chains/motion/requests/{id}"))
        .await
        .expect(200)
        .text();
    assert_eq!(
        page.matches("class=\"stage-run\" x=").count(),
        3,
        "two members, and the stage: {page}"
    );
    browser
        .get(&format!("/chains/other/requests/{id}"))
        .await
        .expect(404);
    // It is no function's.
    browser
        .get(&format!("/functions/motion/invocations/{id}"))
        .await
        .expect(404);
}

#[tokio::test]
async fn workloads_deploy_by_one_call_or_not_at_all() {
    let server = Server::start();
    let client = server.client();
    let list = client
        .get("/api/v1/chain-workloads")
        .await
        .expect(200)
        .json();
    let keys: Vec<_> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["key"])
        .collect();
    assert_eq!(json!(keys), json!(["boutique", "motion", "parking"]));

    // One of its functions is there already: nothing of it is left.
    let code = "def handler(event, context):\n    return event\n";
    client.deploy("parking-persist", code, json!({})).await;
    let deploy = "/api/v1/chain-workloads/parking/deploy";
    client
        .post(deploy, &Value::Null)
        .await
        .problem(409, "already_exists");
    let names = client.get("/api/v1/functions").await.expect(200).json();
    assert_eq!(names["items"].as_array().map(Vec::len), Some(1));
    client
        .delete("/api/v1/functions/parking-persist")
        .await
        .expect(204);

    let made = client.post(deploy, &Value::Null).await.expect(201);
    assert_eq!(made.header("location"), "/api/v1/chains/parking");
    let snapshot = client
        .request(Method::POST, "/chain/parking/new-car")
        .body(vec![7; 3684]);
    let answer = client.send(snapshot).await.expect(200).json();
    assert_eq!(answer["image_bytes"], 3684);
    assert!(
        answer["space"].is_u64() && answer["cents"].is_u64(),
        "{answer}"
    );
    client
        .post("/api/v1/chain-workloads/x/deploy", &Value::Null)
        .await
        .problem(404, "not_found");
}

/// The members that a task of the boutique reaches, in that order: the reference's call sequences.
#[tokio::test]
async fn the_boutiques_tasks_call_as_the_references_do() {
    let server = Server::start();
    let client = server.client();
    let deploy = "/api/v1/chain-workloads/boutique/deploy";
    client.post(deploy, &Value::Null).await.expect(201);
    let path = "/api/v1/chains/boutique/routes/shop/invoke";
    for (event, calls) in [
        (json!({"task": "index"}), "currency productcatalog cart ad"),
        (json!({"task": "setCurrency", "currency": "EUR"}), ""),
        (
            json!({"task": "browseProduct", "product": "L9ECAV7KIM"}),
            "productcatalog currency cart currency recommendation ad",
        ),
        (
            json!({"task": "viewCart"}),
            "currency cart recommendation shipping currency",
        ),
        (
            json!({"task": "addToCart", "product": "L9ECAV7KIM", "quantity": 2}),
            "productcatalog cart",
        ),
        (
            json!({"task": "viewCart"}),
            "currency cart recommendation shipping currency productcatalog currency",
        ),
        (
            json!({"task": "checkout", "currency": "USD"}),
            "checkout cart productcatalog currency shipping currency payment shipping cart email recommendation currency",
        ),
        (
            json!({"task": "viewCart"}),
            "currency cart recommendation shipping currency",
        ),
    ] {
        let answer = client.post(path, &event).await.expect(200);
        let record = client
            .invocation(answer.header("x-hearth-invocation-id"))
            .await;
        let hops = record["chain"]["hops"].as_array().expect("hops");
        let names: Vec<_> = hops
            .iter()
            .filter(|hop| hop["is_call"] == true)
            .map(|hop| hop["member"].as_str().expect("a name"))
            .collect();
        assert_eq!(names.join(" "), calls, "{event}");
        if event["task"] == "checkout" {
            assert_eq!(answer.json()["order"]["total_cents"], 2 * 3645 + 899);
        }
    }
    let page = client
        .get("/chain/boutique/shop/product/L9ECAV7KIM?currency=EUR")
        .await;
    assert_eq!(
        page.expect(200).json()["price"],
        json!({"cents": 3244, "currency": "EUR"})
    );
    client.get("/chain/boutique/shop/nothing").await.expect(404);
}
