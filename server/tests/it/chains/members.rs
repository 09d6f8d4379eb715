//! The functions that a chain has as members.

use serde_json::json;

use super::{CHAINS, SHOP, named, settings, with_shop};
use crate::support::{Browser, TOKEN};

#[tokio::test]
async fn a_member_s_function_stays_until_no_chain_has_it() {
    let (server, client) = with_shop().await;
    client.post(CHAINS, &named("other")).await.expect(201);
    let path = "/api/v1/functions/payment";
    let refused = client.delete(path).await.problem(409, "function_in_use");
    let detail = refused["detail"].as_str().unwrap();
    assert!(detail.contains("other, shop"), "{detail}");
    let browser = Browser::logged_in(&server, TOKEN).await;
    let form = [("confirm", "payment"), ("revision", "")];
    let page = browser
        .submit("/functions/payment/delete", &form)
        .await
        .expect(422)
        .text();
    assert!(page.contains("is a member of other, shop"), "{page}");
    client.get(path).await.expect(200);

    client.delete("/api/v1/chains/other").await.expect(204);
    let mut without = settings();
    without["members"] = json!({"cart": {"function": "cart"}});
    without["routes"] = json!({"checkout": ["cart"]});
    client.put(SHOP, &without).await.expect(200);
    client.delete(path).await.expect(204);

    // An earlier version that needs it cannot be activated any more.
    let back = client
        .post(&format!("{SHOP}/versions/1/activate"), &json!(null))
        .await;
    let refused = back.problem(422, "invalid_field");
    assert_eq!(refused["field"], "members.pay.function");
    assert_eq!(
        client.get(SHOP).await.expect(200).json()["active_version"],
        2
    );
}
