//! What becomes a record and what it says.

use axum::body::Body;
use axum::http::HeaderValue;

use super::*;

fn answered(status: u16) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::from_u16(status).unwrap();
    response
}

fn route(path: &str, pattern: &str) -> Route {
    let request = Request::builder().method("POST").uri(path);
    Route::of(&request.body(Body::empty()).unwrap(), pattern)
}

fn finish(audit: &Audit, response: &Response) -> Option<NewAudit> {
    let route = route("/functions/a%62/settings", "/functions/{name}/settings");
    audit.finish("function.settings", route, response)
}

#[test]
fn what_was_refused_is_no_change() {
    for (status, recorded) in [
        (200, true),
        (204, true),
        (303, true),
        (403, false),
        (422, false),
        (503, false),
    ] {
        let audit = Audit::default();
        assert_eq!(
            finish(&audit, &answered(status)).is_some(),
            recorded,
            "{status}"
        );
        let audit = Audit::default();
        audit.even_if_refused();
        assert!(finish(&audit, &answered(status)).is_some(), "{status}");
        let audit = Audit::default();
        audit.nothing_changed();
        assert!(finish(&audit, &answered(status)).is_none(), "{status}");
    }
    let record = finish(&Audit::default(), &answered(500)).expect("it may be done");
    assert!(record.detail.contains("500"), "{}", record.detail);
}

#[test]
fn a_record_says_what_was_told() {
    let audit = Audit::default();
    audit.by_unauthenticated(&format!("ada\n{}", "x".repeat(100)));
    audit.detail("memory_mb");
    audit.clone().detail("version 2");
    let record = finish(&audit, &answered(303)).unwrap();
    assert_eq!(record.target, "ab");
    assert_eq!(record.action, "function.settings");
    assert_eq!(record.detail, "memory_mb, version 2");
    assert_eq!(record.actor.len(), 64);
    assert!(record.actor.starts_with("adax"));
}

#[test]
fn a_new_function_is_found_where_the_answer_leads() {
    for (header, address) in [
        ("location", "/api/v1/functions/hello"),
        ("location", "/functions/hello?notice=created"),
        ("hx-redirect", "/functions/hello?notice=created"),
    ] {
        let mut response = answered(201);
        response
            .headers_mut()
            .insert(header, HeaderValue::from_static(address));
        let record = Audit::default().finish("function.create", route("/new", "/new"), &response);
        assert_eq!(record.unwrap().target, "hello");
    }
}

#[test]
fn a_route_nobody_listed_is_recorded_with_its_address() {
    let known = actions::of(&axum::http::Method::POST, "/somewhere/{id}");
    assert_eq!(known, Known::Change(actions::OTHER));
    let record = Audit::default()
        .finish(
            actions::OTHER,
            route("/somewhere/7", "/somewhere/{id}"),
            &answered(200),
        )
        .unwrap();
    assert_eq!((record.action, record.target.as_str()), ("other", "7"));
    assert_eq!(record.detail, "POST /somewhere/{id}");
}
