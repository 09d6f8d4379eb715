//! The node's ingress: who sends and who is limited is seen as it happens, networks are listed and removed; a function's ports
//! and their limits.

use serde_json::{Value, json};

use super::driver::{Browser, DESKTOP};
use super::log_in;
use crate::ingress::world::{CLIENT, World, answered, is_answered};
use crate::ingress::{ECHO, PATIENCE};
use crate::logins::{PASSWORD, user};
use crate::support::{Client, Server, eventually};

/// An echo by UDP with a limit, and a port for HTTP.
async fn deployed(world: &World) -> (Server, Client) {
    let server = world.server();
    let client = server.client();
    let settings = json!({
        "triggers": [{"protocol": "udp", "port": 9000}, {"protocol": "tcp", "port": 9001}],
        "port_limits": {"per_source": {"per_second": 5, "burst": 5}},
    });
    client.deploy("echo", ECHO, settings).await;
    (server, client)
}

/// A page with the pointer where nothing is held.
async fn open(browser: &Browser, server: &Server, path: &str) {
    browser.open(server, path).await;
    browser.point(1.0, 1.0).await;
}

/// Opens the question in a row and says yes.
async fn remove(browser: &Browser, prefix: &str) {
    let row = format!("#listed tr[data-prefix='{prefix}'] details");
    browser.click(&format!("{row} summary")).await;
    browser.click(&format!("{row} button")).await;
    browser.wait_for_text("#notice", "removed").await;
}

#[tokio::test]
async fn who_sends_is_seen_as_it_happens_and_can_be_denied() {
    let world = World::enter();
    let (server, _) = deployed(&world).await;
    let socket = world.socket();
    let browser = Browser::start(DESKTOP, false).await;
    log_in(&browser, &server).await;
    open(&browser, &server, "/ingress").await;
    browser.wait_for_text("#interfaces", "h0").await;
    browser.wait_for_text("#interfaces", "native").await;
    browser.find("#nobody-limited").await;
    browser.find("#nobody-listed").await;
    // All of this comes to the page that is open.
    let answers = answered(&socket, 50);
    assert!((5..40).contains(&answers), "{answers} of 50");
    browser.wait_for_text("#limited", CLIENT).await;
    browser.wait_for_text("#limited", "echo").await;
    browser
        .wait_until(
            "the drops are counted",
            "return /Limit per source\\s+[1-9]/.test(document.querySelector('#dropped').innerText);",
        )
        .await;
    browser
        .wait_for_text("#maps tr[data-map=ports]", "Ports of functions")
        .await;
    let pages = [
        ("ingress", "/ingress"),
        ("ingress-form", "/ingress?source=192.0.2.1"),
    ];
    browser.pictures(&server.url, &pages).await;

    // From the source to the form.
    open(&browser, &server, "/ingress").await;
    browser.click("#top .row-action a").await;
    let prefix = browser.find("#add-listed[open] #prefix").await;
    let typed = prefix.prop("value").await.expect("a value");
    assert_eq!(typed.as_deref(), Some(CLIENT));
    // What is wrong stands at its field, and what was typed stays.
    browser.fill("#prefix", "192.0.2.1/24").await;
    browser.fill("#note", "a flood").await;
    browser.click("#list-button").await;
    browser.wait_for_text("#error-prefix", "bits set").await;
    browser.fill("#prefix", CLIENT).await;
    browser.click("#expires_at option[value='600']").await;
    browser.click("#list-button").await;
    browser.wait_for_text("#notice", "added").await;
    let row = "#listed tr[data-prefix='192.0.2.1/32']";
    for said in ["deny", "min", "a flood"] {
        browser.wait_for_text(row, said).await;
    }
    assert!(!is_answered(&socket), "denied");
    browser
        .pictures(&server.url, &[("ingress-listed", "/ingress")])
        .await;
    open(&browser, &server, "/ingress").await;
    remove(&browser, "192.0.2.1/32").await;
    browser.find("#nobody-listed").await;
    eventually("answered again", PATIENCE, || async {
        is_answered(&socket).then_some(())
    })
    .await;
    browser.close().await;
}

#[tokio::test]
async fn an_entry_expires_on_the_open_page_but_not_under_a_question() {
    let world = World::enter();
    let (server, client) = deployed(&world).await;
    let browser = Browser::start(DESKTOP, false).await;
    log_in(&browser, &server).await;
    open(&browser, &server, "/ingress").await;
    browser.find("#nobody-listed").await;
    let path = "/api/v1/ingress/lists/198.51.100.0%2F24";
    let allow = json!({"verdict": "allow", "note": "ours"});
    client.put(path, &allow).await.expect(201);
    browser.wait_for_text("#listed", "never").await;
    let keep = "window.kept = ['lists', 'traffic'].map((part) => document.getElementById(`ingress-${part}`)); \
         window.kept[0].querySelector('details').open = true;";
    browser
        .client
        .execute(keep, vec![])
        .await
        .expect("a script");
    // Two more refreshes of another part.
    let fresh = "return document.getElementById('ingress-traffic') !== window.kept[1];";
    browser.wait_until("a refresh", fresh).await;
    let again = "window.kept[1] = document.getElementById('ingress-traffic');";
    browser
        .client
        .execute(again, vec![])
        .await
        .expect("a script");
    browser.wait_until("another refresh", fresh).await;
    let same = "return document.getElementById('ingress-lists') === window.kept[0];";
    let same = browser
        .client
        .execute(same, vec![])
        .await
        .expect("a script");
    assert_eq!(same, json!(true), "the question is open");
    let close = "window.kept[0].querySelector('details').open = false;";
    browser
        .client
        .execute(close, vec![])
        .await
        .expect("a script");
    let end = jiff::Timestamp::now() + std::time::Duration::from_secs(2);
    let ends = json!({"verdict": "allow", "expires_at": end.to_string()});
    client.put(path, &ends).await.expect(200);
    browser.find("#nobody-listed").await;
    browser.close().await;
}

#[tokio::test]
async fn a_functions_ports_are_live_on_its_page() {
    let world = World::enter();
    let (server, client) = deployed(&world).await;
    let socket = world.socket();
    let node = client.get("/api/v1/node").await.expect(200).json();
    let browser = Browser::start(DESKTOP, false).await;
    log_in(&browser, &server).await;
    open(&browser, &server, "/functions/echo/network").await;
    let interface = &node["ingress"]["interfaces"][0];
    let udp = match interface["not_af_xdp"].as_str() {
        None => "AF_XDP",
        Some(reason) => reason,
    };
    let tcp = match node["ingress"]["steering_missing"].as_str() {
        None => "SK_LOOKUP",
        Some(reason) => reason,
    };
    for said in ["udp 9000", udp, "tcp 9001", tcp] {
        browser.wait_for_text("#ports", said).await;
    }
    browser
        .wait_for_text("#own-ports", "per source 5 a second")
        .await;
    answered(&socket, 50);
    browser.wait_for_text("#port-figures", "50").await;
    browser
        .wait_until(
            "the drops are counted",
            "return /Limit per source\\s+[1-9]/.test(document.querySelector('#port-drops').innerText);",
        )
        .await;
    browser.wait_for_text("#port-sources", CLIENT).await;
    browser
        .pictures(&server.url, &[("ports", "/functions/echo/network")])
        .await;
    browser.close().await;
}

#[tokio::test]
async fn limits_are_set_in_the_settings() {
    let world = World::enter();
    let (server, client) = deployed(&world).await;
    let limits = async || {
        let function = client.get("/api/v1/functions/echo").await.expect(200);
        function.json()["port_limits"].clone()
    };
    let value = async |browser: &Browser, css: &str| {
        let value = browser.find(css).await.prop("value").await;
        value.expect("a value").unwrap_or_default()
    };
    let browser = Browser::start(DESKTOP, false).await;
    log_in(&browser, &server).await;
    let page = "/functions/echo/settings";
    browser.open(&server, page).await;
    assert_eq!(value(&browser, "#limit_source_rate").await, "5");
    browser.fill("#limit_source_rate", "0").await;
    browser.click("#save-button").await;
    browser
        .wait_for_text("#error-limit_source_rate", "from 1 to")
        .await;
    browser.fill("#limit_source_rate", "100").await;
    browser.fill("#limit_source_burst", "").await;
    browser.fill("#limit_total_burst", "900").await;
    browser.click("#save-button").await;
    browser
        .wait_for_text("#error-limit_total_rate", "Must be set")
        .await;
    browser.fill("#limit_total_rate", "500").await;
    let set = json!({
        "per_source": {"per_second": 100, "burst": 100},
        "total": {"per_second": 500, "burst": 900},
    });
    // The command beside the form does the same.
    let command = browser.find("#command-1").await.prop("textContent").await;
    let command = command.expect("text").unwrap_or_default();
    let (_, body) = command.split_once(" -d '").expect("a body");
    let body: Value = serde_json::from_str(body.trim_end_matches('\'')).expect("JSON");
    let mut told = set.clone();
    // Left out, it is as many as in a second.
    told["per_source"]
        .as_object_mut()
        .expect("an object")
        .remove("burst");
    assert_eq!(body, json!({ "port_limits": told }));
    browser.click("#save-button").await;
    browser.wait_for_text("#notice", "version 2").await;
    assert_eq!(limits().await, set);
    assert_eq!(value(&browser, "#limit_source_burst").await, "100");
    assert_eq!(value(&browser, "#limit_total_rate").await, "500");
    browser.console().await;
    browser.pictures(&server.url, &[("limits", page)]).await;
    browser.open(&server, page).await;
    for input in ["source_rate", "source_burst", "total_rate", "total_burst"] {
        browser.fill(&format!("#limit_{input}"), "").await;
    }
    browser.click("#save-button").await;
    browser.wait_for_text("#notice", "version 3").await;
    assert_eq!(limits().await, json!({"per_source": null, "total": null}));
    browser.close().await;
}

/// A page that polls does not while its tab is hidden, and does at once when it is seen again.
async fn nothing_is_asked_for_in_a_hidden_tab(browser: &Browser) {
    let watch = "window.asked = window.turns = 0; \
         document.addEventListener('htmx:configRequest', () => { window.asked += 1; }); \
         setInterval(() => { window.turns += 1; }, 250); \
         setInterval(() => document.querySelectorAll('[data-poll]').forEach((one) => { one.dataset.poll = 1; }), 50);";
    let run = async |script: &str| {
        let ran = browser.client.execute(script, vec![]).await;
        ran.expect("a script");
    };
    run(watch).await;
    browser
        .wait_until("it polls", "return window.asked > 1;")
        .await;
    browser.hide(true).await;
    run("window.asked = window.turns = 0;").await;
    // As many turns of the clock that it polls by as would have made it ask.
    browser
        .wait_until("time has passed", "return window.turns > 4;")
        .await;
    let asked = browser.client.execute("return window.asked;", vec![]);
    assert_eq!(asked.await.expect("a script"), json!(0));
    browser.hide(false).await;
    browser
        .wait_until("it polls again", "return window.asked > 0;")
        .await;
}

#[tokio::test]
async fn without_an_interface_the_page_says_what_to_set_and_viewers_have_none() {
    let server = Server::start();
    let settings = json!({"triggers": [{"protocol": "udp", "port": 39_217}]});
    server.client().deploy("echo", ECHO, settings).await;
    let browser = Browser::start(DESKTOP, false).await;
    log_in(&browser, &server).await;
    browser.click(".main-nav a[href='/ingress']").await;
    browser
        .wait_for_text("#no-interface", "HEARTH_XDP_INTERFACE")
        .await;
    let forms = browser
        .client
        .find_all(fantoccini::Locator::Css("#list-form"));
    assert!(forms.await.expect("forms").is_empty());
    nothing_is_asked_for_in_a_hidden_tab(&browser).await;
    browser
        .pictures(&server.url, &[("ingress-empty", "/ingress")])
        .await;
    browser.open(&server, "/functions/echo/network").await;
    browser
        .wait_for_text("#ports", "AF_XDP needs an interface")
        .await;
    browser.find("#not-counted").await;
    browser.open(&server, "/functions/echo/settings").await;
    browser.fill("#limit_total_rate", "5").await;
    browser.click("#save-button").await;
    browser
        .wait_for_text("#error-port_limits", "HEARTH_XDP_INTERFACE")
        .await;
    browser.click("#user-menu summary").await;
    browser.click("#logout").await;
    user(&server, "ada", "admin").await;
    user(&server, "vera", "viewer").await;
    browser.open(&server, "/login").await;
    browser.fill("#login-name", "vera").await;
    browser.fill("#login-password", PASSWORD).await;
    browser.click("#login-password-submit").await;
    browser.find("#user-menu").await;
    let links = browser
        .client
        .find_all(fantoccini::Locator::Css("a[href='/ingress']"));
    assert!(links.await.expect("links").is_empty());
    browser.open(&server, "/ingress").await;
    browser.wait_for_text("main", "Not allowed").await;
    browser.close().await;
}
