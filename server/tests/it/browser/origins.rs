//! A function that wants to be the console: its pages, reached in every way there is while somebody is logged in.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::driver::{Browser, DESKTOP};
use super::log_in;
use crate::support::{Server, eventually};

/// A page that tries to read the console and to make a token, and writes into its title how far it came.
///
/// It is an honest attack: with the console's origin it works (`the_attack_works_in_the_consoles_origin`).
const ATTACK: &str = r#"
(async () => {
    const console_ = 'CONSOLE';
    const reached = [];
    const attempt = async (name, work) => {
        try { if (await work()) reached.push(name); } catch (error) {}
    };
    let csrf = '';
    await attempt('read', async () => {
        const page = await (await fetch(console_ + '/account', {credentials: 'include'})).text();
        csrf = (page.match(/name="csrf" value="([^"]+)"/) || [])[1] || '';
        return csrf !== '';
    });
    await attempt('token', async () => {
        const body = new URLSearchParams({csrf, name: 'stolen', rights: 'admin', password: 'PASSWORD'});
        const answer = await fetch(console_ + '/tokens', {method: 'POST', credentials: 'include', body});
        return answer.ok && (await answer.text()).includes('hth_');
    });
    await attempt('blind', async () => {
        await fetch(console_ + '/tokens', {method: 'POST', mode: 'no-cors', credentials: 'include',
            body: new URLSearchParams({name: 'stolen', rights: 'admin'})});
        return false;
    });
    await attempt('opener', () => window.opener && window.opener.document.body.innerHTML.length > 0);
    await attempt('parent', () => window.parent !== window && window.parent.document.body.innerHTML.length > 0);
    await attempt('cookies', () => /hearth_/.test(document.cookie));
    await attempt('storage', () => { localStorage.setItem('evil', '1'); return console_ === location.origin; });
    await attempt('worker', async () => {
        const worker = await navigator.serviceWorker.register(location.pathname + '?worker');
        return console_ === location.origin && !!worker;
    });
    await attempt('frame', () => new Promise((done) => {
        const frame = document.createElement('iframe');
        frame.src = console_ + '/account';
        frame.onload = () => {
            try { done(/csrf/.test(frame.contentDocument.documentElement.innerHTML)); } catch (error) { done(false); }
        };
        setTimeout(() => done(false), 1000);
        document.body.append(frame);
    }));
    await attempt('popup', () => new Promise((done) => {
        const popup = window.open(console_ + '/account');
        if (!popup) { done(false); return; }
        setTimeout(() => {
            try { done(/csrf/.test(popup.document.documentElement.innerHTML)); } catch (error) { done(false); }
            popup.close();
        }, 1000);
    }));
    document.title = 'reached: ' + (reached.join(' ') || 'nothing') + ' as ' + self.origin;
})();
"#;

/// Answers with the attack as a page; with `?again` by a page that first leads to itself.
const EVIL: &str = "PAGE = '''<!doctype html><body>evil<script>ATTACK</script>'''\n\
AGAIN = '''<!doctype html><body>first<script>location.replace(location.pathname)</script>'''\n\
def handler(event, context):\n    \
    page = AGAIN if 'again' in event.get('rawQueryString', '') else PAGE\n    \
    return {'statusCode': 200, 'headers': {'content-type': 'text/html', 'nel': '{}', \
        'content-security-policy': 'sandbox allow-scripts allow-same-origin allow-popups'}, 'body': page}\n";

fn evil(console: &str) -> String {
    let attack = ATTACK.replace("CONSOLE", console).replace('\\', "\\\\");
    EVIL.replace("ATTACK", &attack)
}

/// Another site: answers every request with this page.
async fn other_site(page: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("bound").port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let page = page.clone();
            tokio::spawn(async move {
                let _ = stream.read(&mut [0; 8192]).await;
                let head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                    page.len()
                );
                let _ = stream.write_all((head + &page).as_bytes()).await;
            });
        }
    });
    // Chromium resolves it to the loopback address itself.
    format!("http://other.localhost:{port}/")
}

/// Waits until the attack has been tried in this window and says how far it came.
async fn outcome(browser: &Browser) -> String {
    browser
        .wait_until(
            "the attack is over",
            "return document.title.startsWith('reached: ');",
        )
        .await;
    browser.client.title().await.expect("a title")
}

async fn no_token_was_made(server: &Server) {
    let tokens = server.client().get("/api/v1/tokens").await.expect(200);
    assert!(!tokens.text().contains("stolen"), "{}", tokens.text());
}

#[tokio::test]
async fn a_page_below_fn_never_reaches_the_console() {
    let server = Server::start();
    let client = server.client();
    client
        .deploy("evil", &evil(&server.url), json!({"public": true}))
        .await;
    let target = format!("{}/fn/evil", server.url);
    let browser = Browser::start(DESKTOP, false).await;
    log_in(&browser, &server).await;

    // Opened as it is, and by itself.
    for path in ["/fn/evil", "/fn/evil?again"] {
        browser
            .client
            .goto(&format!("{}{path}", server.url))
            .await
            .expect("the page");
        assert_eq!(
            outcome(&browser).await,
            "reached: nothing as null",
            "{path}"
        );
    }
    // By a link, a form and a frame of another site, none of which brings the session's cookie.
    for (way, page) in [
        ("link", format!("<a id=go href='{target}'>x</a>")),
        (
            "form",
            format!("<form method=post action='{target}'><button id=go>x</button></form>"),
        ),
        (
            "self-navigating",
            format!("<a id=go href='{target}?again'>x</a>"),
        ),
    ] {
        let site = other_site(page).await;
        browser.client.goto(&site).await.expect("the other site");
        browser.click("#go").await;
        assert_eq!(outcome(&browser).await, "reached: nothing as null", "{way}");
    }
    let site = other_site(format!("<iframe id=f src='{target}'></iframe>")).await;
    browser.client.goto(&site).await.expect("the other site");
    let frame = browser.find("#f").await;
    frame.enter_frame().await.expect("the frame");
    // A frame's title is its document's.
    browser
        .wait_until(
            "the attack is over",
            "return document.title.startsWith('reached: ');",
        )
        .await;
    let title = browser
        .client
        .execute("return document.title;", vec![])
        .await;
    assert_eq!(title.expect("a title"), json!("reached: nothing as null"));
    browser
        .client
        .clone()
        .enter_parent_frame()
        .await
        .expect("the page");

    // In a window that another site opens.
    let site = other_site(format!(
        "<button id=go onclick=\"window.open('{target}')\">x</button>"
    ))
    .await;
    browser.client.goto(&site).await.expect("the other site");
    let before = browser.client.windows().await.expect("windows");
    browser.click("#go").await;
    let opened = eventually("a window", Duration::from_secs(20), || async {
        let windows = browser.client.windows().await.expect("windows");
        windows.into_iter().find(|window| !before.contains(window))
    })
    .await;
    browser
        .client
        .switch_to_window(opened)
        .await
        .expect("the window");
    assert_eq!(
        outcome(&browser).await,
        "reached: nothing as null",
        "window"
    );

    no_token_was_made(&server).await;
    browser.open(&server, "/account").await;
    browser.find("#logout").await;
    browser.close().await;
}

/// What the tests above try is not harmless: the same script in a page of the console's origin gets a token.
#[tokio::test]
async fn the_attack_works_in_the_consoles_origin() {
    let server = Server::start();
    let browser = Browser::start(DESKTOP, false).await;
    log_in(&browser, &server).await;
    browser.open(&server, "/account").await;
    let attack = ATTACK.replace("CONSOLE", &server.url);
    browser
        .client
        .execute(&attack, vec![])
        .await
        .expect("a script");
    let outcome = outcome(&browser).await;
    assert!(outcome.contains("read token"), "{outcome}");
    browser.close().await;
}

#[tokio::test]
async fn the_consoles_pages_take_no_script_from_a_function() {
    let server = Server::start();
    let client = server.client();
    let code = "def handler(event, context):\n    return {'statusCode': 200, 'headers': {'content-type': 'text/javascript'}, \
        'body': 'window.evil = 1; self.onconnect = e => e.ports[0].postMessage(1);'}\n";
    client.deploy("script", code, json!({"public": true})).await;
    let browser = Browser::start(DESKTOP, false).await;
    log_in(&browser, &server).await;
    let script = r"
        const [src, done] = arguments;
        const loaded = [];
        const script = document.createElement('script');
        script.src = src;
        const ended = new Promise((end) => { script.onload = () => { loaded.push('script'); end(); }; script.onerror = end; });
        document.head.append(script);
        const style = document.createElement('link');
        style.rel = 'stylesheet';
        style.href = src;
        const styled = new Promise((end) => { style.onload = () => { loaded.push('style'); end(); }; style.onerror = end; });
        document.head.append(style);
        const worked = new Promise((end) => {
            try {
                const worker = new SharedWorker(src);
                worker.onerror = end;
                worker.port.onmessage = () => { loaded.push('worker'); end(); };
                worker.port.start();
                setTimeout(end, 1000);
            } catch (error) { end(); }
        });
        Promise.all([ended, styled, worked]).then(() => done(loaded.join(' ') + (window.evil ? ' ran' : '')));
    ";
    let loads = async |src: &str| -> Value {
        browser
            .client
            .execute_async(script, vec![json!(src)])
            .await
            .expect("a script")
    };
    assert_eq!(loads("/fn/script").await, json!(""));
    // The console's own files pass both policies.
    let page = client.get("/login").await.text();
    let own = page
        .split("src=\"")
        .nth(1)
        .and_then(|rest| rest.split('"').next());
    let own = own.expect("a script of the console");
    assert_eq!(loads(own).await, json!("script"));
    browser.close().await;
}

/// A page that uses what a page may use, and writes into its title what worked.
const ORDINARY: &str = r#"
(async () => {
    const worked = [];
    const attempt = async (name, work) => {
        try { if (await work()) worked.push(name); } catch (error) { worked.push(name + ': ' + error); }
    };
    await attempt('cookies', () => {
        document.cookie = 'mine=1; path=/';
        return /given=1/.test(document.cookie) && /mine=1/.test(document.cookie);
    });
    await attempt('storage', () => { localStorage.setItem('a', 'b'); return localStorage.getItem('a') === 'b'; });
    await attempt('fetch', async () => {
        const seen = await (await fetch('/data?x=1')).json();
        return seen.path === '/data' && seen.cookies.sort().join() === 'given=1,mine=1';
    });
    await attempt('worker', async () => {
        await navigator.serviceWorker.register('/worker.js');
        await navigator.serviceWorker.ready;
        return true;
    });
    document.title = 'reached: ' + worked.join(' ') + ' as ' + self.origin;
})();
"#;

/// Answers with that page, with what it asks for, and with an empty service worker.
const SHOP: &str = "import json\n\
PAGE = '''<!doctype html><body>shop<script>ORDINARY</script>'''\n\
def handler(event, context):\n    \
    path = event['rawPath']\n    \
    if path == '/data':\n        \
        return {'path': path, 'cookies': event.get('cookies', [])}\n    \
    if path == '/worker.js':\n        \
        return {'statusCode': 200, 'headers': {'content-type': 'text/javascript'}, 'body': '1'}\n    \
    return {'statusCode': 200, 'headers': {'content-type': 'text/html'}, \
        'cookies': ['given=1; Path=/; Domain=localhost'], 'body': PAGE}\n";

#[tokio::test]
async fn on_its_own_host_a_page_is_ordinary_and_still_no_console() {
    // Chromium resolves names below localhost by itself.
    let server = Server::start_with(&[("HEARTH_FUNCTIONS_HOST", "localhost")]);
    let client = server.client();
    let port = server.url.rsplit(':').next().expect("a port").to_owned();
    let shop = SHOP.replace("ORDINARY", &ORDINARY.replace('\\', "\\\\"));
    client.deploy("shop", &shop, json!({"public": true})).await;
    let console = format!("http://localhost:{port}");
    client
        .deploy("evil", &evil(&console), json!({"public": true}))
        .await;
    let browser = Browser::start(DESKTOP, false).await;
    browser.log_in_at(&console).await;

    let shop = format!("http://shop.localhost:{port}");
    browser
        .client
        .goto(&format!("{shop}/"))
        .await
        .expect("the page");
    assert_eq!(
        outcome(&browser).await,
        format!("reached: cookies storage fetch worker as {shop}")
    );
    let evil = format!("http://evil.localhost:{port}");
    browser
        .client
        .goto(&format!("{evil}/any/path"))
        .await
        .expect("the page");
    assert_eq!(
        outcome(&browser).await,
        format!("reached: nothing as {evil}")
    );
    no_token_was_made(&server).await;

    // Its own cookies stayed with it, and nobody was logged out.
    browser
        .client
        .goto(&format!("{console}/account"))
        .await
        .expect("the page");
    browser.find("#logout").await;
    let cookies = browser.client.get_all_cookies().await.expect("cookies");
    let names: Vec<_> = cookies.iter().map(|cookie| cookie.name()).collect();
    assert_eq!(names, ["hearth_session"]);
    browser.close().await;
}

#[tokio::test]
async fn on_the_second_listener_a_page_is_ordinary_and_still_no_console() {
    let server = Server::start_with(&[("HEARTH_FUNCTIONS_LISTEN", "127.0.0.1:0")]);
    let functions = server.functions_url();
    let client = server.client();
    // Its paths are below its name here.
    let ordinary = ORDINARY
        .replace("path=/'", "path=/fn/shop'")
        .replace("'/data", "'/fn/shop/data")
        .replace("seen.path === '/fn/shop/data'", "seen.path === '/data'")
        .replace("'/worker.js'", "'/fn/shop/worker.js'")
        .replace('\\', "\\\\");
    let shop = SHOP.replace("ORDINARY", &ordinary);
    client.deploy("shop", &shop, json!({"public": true})).await;
    client
        .deploy("evil", &evil(&server.url), json!({"public": true}))
        .await;
    let browser = Browser::start(DESKTOP, false).await;
    log_in(&browser, &server).await;
    browser
        .client
        .goto(&format!("{functions}/fn/shop/"))
        .await
        .expect("the page");
    assert_eq!(
        outcome(&browser).await,
        format!("reached: cookies storage fetch worker as {functions}")
    );
    browser
        .client
        .goto(&format!("{functions}/fn/evil/"))
        .await
        .expect("the page");
    assert_eq!(
        outcome(&browser).await,
        format!("reached: nothing as {functions}")
    );
    no_token_was_made(&server).await;
    browser.open(&server, "/account").await;
    browser.find("#logout").await;
    browser.close().await;
}
