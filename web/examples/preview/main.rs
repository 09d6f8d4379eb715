//! Every page of the console with sample data, without a server behind it: to look at while templates and styles change.
//!
//! `cargo run -p hearth-web --example preview -- 8090`, then open <http://127.0.0.1:8090/preview>.
//! Forms answer with samples too: `/new` refuses a name that holds "bad" and fails to import otherwise.

use axum::Router;
use axum::extract::{Form, Multipart, Path};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use hearth_web::pages::{
    FieldErrors, FormOutcome, FunctionForm, FunctionHeadPartial, FunctionsPage, FunctionsTable,
    HistoryPartial, InvocationPage, InvokeOutcomePartial, ListView, LoginPage,
};
use hearth_web::{assets, respond};

mod samples;

const INDEX: &str = "<!doctype html><title>Preview</title><ul>\
    <li><a href=/login>Login</a> <li><a href=/login/failed>Login failed</a>\
    <li><a href=/>Overview</a> <li><a href=/functions>Functions</a> <li><a href=/empty>No functions</a> <li><a href=/new>New</a> <li><a href=/new/failed>New, failed</a>\
    <li><a href=/functions/hello>Function</a> <li><a href=/functions/hello/invoked>Invoked</a> <li><a href=/functions/hello/raised>Raised</a>\
    <li><a href=/functions/fresh>Never invoked</a>\
    <li><a href=/functions/hello/invocations/1>Invocation</a> <li><a href=/functions/hello/code>Code</a>\
    <li><a href=/functions/hello/settings>Settings</a> <li><a href=/error>Error</a></ul>";

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let port = std::env::args()
        .nth(1)
        .and_then(|port| port.parse().ok())
        .unwrap_or(8090);
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    axum::serve(listener, router()).await
}

fn router() -> Router {
    let ok = StatusCode::OK;
    Router::new()
        .route("/preview", get(|| async { Html(INDEX) }))
        .route(
            "/login",
            get(async || respond::page(StatusCode::OK, &LoginPage::default())),
        )
        .route(
            "/login/failed",
            get(async || respond::page(StatusCode::OK, &samples::login_failed())),
        )
        .route(
            "/",
            get(async || respond::page(StatusCode::OK, &samples::overview())),
        )
        .route("/functions", get(functions))
        .route("/empty", get(async move || respond::page(ok, &empty())))
        .route(
            "/new",
            get(async move || respond::page(ok, &samples::new())).post(deploy),
        )
        .route(
            "/new/failed",
            get(async move || respond::page(ok, &samples::new_failed())),
        )
        .route("/functions/{name}", get(function))
        .route(
            "/functions/{name}/invoked",
            get(async move || {
                let mut page = samples::function("hello", samples::history());
                page.outcome = Some(samples::succeeded());
                respond::page(ok, &page)
            }),
        )
        .route(
            "/functions/{name}/raised",
            get(async move || {
                let mut page = samples::function("hello", samples::history());
                page.outcome = Some(samples::raised());
                respond::page(ok, &page)
            }),
        )
        .route(
            "/functions/{name}/head",
            get(async || {
                respond::partial(&FunctionHeadPartial {
                    head: samples::head("hello"),
                })
            }),
        )
        .route(
            "/functions/{name}/history",
            get(async || {
                respond::partial(&HistoryPartial {
                    history: samples::history(),
                })
            }),
        )
        .route("/functions/{name}/invoke", axum::routing::post(invoke))
        .route(
            "/functions/{name}/invocations/{id}",
            get(async move || {
                let page = InvocationPage {
                    explanation: Default::default(),
                    chrome: samples::chrome(),
                    invocation: samples::invocation(),
                };
                respond::page(ok, &page)
            }),
        )
        .route(
            "/functions/{name}/code",
            get(async move || respond::page(ok, &samples::code())).post(deploy),
        )
        .route(
            "/functions/{name}/versions",
            get(async move || respond::page(ok, &samples::versions())),
        )
        .route(
            "/functions/{name}/settings",
            get(async move || respond::page(ok, &samples::settings())).post(broken),
        )
        .route("/functions/{name}/delete", axum::routing::post(broken))
        .route(
            "/error",
            get(async || respond::page(StatusCode::NOT_FOUND, &samples::error())),
        )
        .merge(assets::router())
}

async fn function(Path(name): Path<String>) -> Response {
    let history = match name.as_str() {
        "fresh" => samples::no_history("fresh"),
        _ => samples::history(),
    };
    respond::page(StatusCode::OK, &samples::function(&name, history))
}

async fn functions(headers: HeaderMap) -> Response {
    if !headers.contains_key("hx-request") {
        return respond::page(StatusCode::OK, &samples::functions());
    }
    let FunctionsPage { chrome, list } = samples::functions();
    respond::partial(&FunctionsTable { chrome, list })
}

fn empty() -> FunctionsPage {
    FunctionsPage {
        list: ListView::default(),
        ..samples::functions()
    }
}

/// Succeeds, or raises when the event says so.
async fn invoke(headers: HeaderMap, mut form: Multipart) -> Response {
    assert!(headers.contains_key("x-csrf-token"), "htmx sends the token");
    let mut event = String::new();
    while let Ok(Some(field)) = form.next_field().await {
        if field.name() == Some("event") {
            event = field.text().await.unwrap_or_default();
        }
    }
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    let outcome = match event.contains("raise") {
        true => samples::raised(),
        false => samples::succeeded(),
    };
    let mut response = respond::partial(&InvokeOutcomePartial { outcome });
    let headers = response.headers_mut();
    headers.insert("hx-trigger", HeaderValue::from_static("invoked"));
    response
}

async fn deploy(mut form: Multipart) -> Response {
    let mut name = String::new();
    while let Ok(Some(field)) = form.next_field().await {
        if field.name() == Some("name") {
            name = field.text().await.unwrap_or_default();
        }
    }
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    let outcome = if name.contains("bad") {
        let rule = "Must be 1 to 64 of a-z, 0-9 and -, starting with a letter.";
        FormOutcome {
            fields: FunctionForm::FIELDS,
            errors: FieldErrors::one("name", rule.to_owned()),
            problem: None,
            revision: None,
        }
    } else {
        FormOutcome {
            fields: FunctionForm::FIELDS,
            errors: FieldErrors::default(),
            problem: Some(samples::import_problem()),
            revision: None,
        }
    };
    let status = StatusCode::UNPROCESSABLE_ENTITY;
    (status, respond::partial(&outcome)).into_response()
}

/// What an error of the server looks like.
async fn broken(_: Form<Vec<(String, String)>>) -> Response {
    let problem = r#"{"title":"The server is shutting down","detail":"Try again in a moment.","request_id":"r-42"}"#;
    let headers = [("content-type", "application/problem+json")];
    (StatusCode::SERVICE_UNAVAILABLE, headers, problem).into_response()
}
