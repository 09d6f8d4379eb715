//! `/ingress`: packets at the node's interfaces, and the lists of networks.

use axum::Extension;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use hearth_web::pages::{
    FieldErrors, IngressKernelPartial, IngressListsPartial, IngressPage, IngressSourcesPartial,
    IngressTrafficPartial, LIST_EXPIRIES, LIST_EXPIRY, ListForm,
};
use hearth_web::respond;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use crate::http::App;
use crate::http::ingress::{enlist, listable, listed, unlist as take_off};
use crate::http::problem::Problem;
use crate::http::spec::{Fields, Input, invalid};
use crate::ingress::{Ingress, ListedPrefix};
use crate::model::{InvalidField, Right, parse_prefix};

use super::form::{Form, Submitted};
use super::guard::{go, is_htmx, sentence};
use super::ingress_view::{kernel, lists, sources, traffic};
use super::session::Viewer;

/// Which part is refreshed, what the last change did, and a source for the form.
#[derive(Debug, Default, Deserialize)]
pub struct IngressQuery {
    #[serde(default)]
    part: String,
    #[serde(default)]
    notice: String,
    #[serde(default)]
    source: String,
}

/// `GET /ingress`: the page, or for htmx one of its parts.
pub async fn page(
    State(app): State<App>,
    Extension(viewer): Extension<Viewer>,
    Query(query): Query<IngressQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    viewer.needs(Right::Admin)?;
    let ingress = app.engine.ingress();
    if is_htmx(&headers) {
        return part(ingress, &viewer, &query.part).await;
    }
    let mut page = view(ingress, &viewer).await;
    page.adding = !query.source.is_empty();
    page.form.prefix = query.source;
    page.chrome.notice = match query.notice.as_str() {
        "listed" => Some("Network added.".to_owned()),
        "replaced" => Some("Entry replaced.".to_owned()),
        "removed" => Some("Network removed.".to_owned()),
        "gone" => Some("The network was not listed any more.".to_owned()),
        _ => None,
    };
    Ok(respond::page(StatusCode::OK, &page))
}

async fn part(ingress: &Ingress, viewer: &Viewer, part: &str) -> Result<Response, Problem> {
    let missing = || Problem::not_found("part of this page");
    Ok(match part {
        "traffic" => respond::partial(&IngressTrafficPartial {
            traffic: traffic(ingress).ok_or_else(missing)?,
        }),
        "sources" => respond::partial(&IngressSourcesPartial {
            sources: sources(ingress),
        }),
        "lists" => respond::partial(&IngressListsPartial {
            lists: lists(ingress.listed().await, viewer.chrome().csrf),
        }),
        "kernel" => respond::partial(&IngressKernelPartial {
            kernel: kernel(ingress),
        }),
        _ => return Err(missing()),
    })
}

/// `POST /ingress/lists`.
pub async fn list(State(app): State<App>, submitted: Submitted) -> Result<Response, Problem> {
    let Submitted {
        viewer,
        form,
        headers,
        ..
    } = submitted;
    viewer.needs(Right::Admin)?;
    let ingress = app.engine.ingress();
    let outcome = match read(ingress, &form, Timestamp::now()) {
        Ok(entry) => enlist(&app, viewer.audit(), entry).await?,
        Err(error) => Err(error),
    };
    match outcome {
        Ok(true) => Ok(go(&headers, "/ingress?notice=listed")),
        Ok(false) => Ok(go(&headers, "/ingress?notice=replaced")),
        Err(error) => {
            let mut page = view(ingress, &viewer).await;
            page.errors = FieldErrors::one(&error.field, sentence(&error.rule));
            page.form = typed(&form);
            page.adding = true;
            Ok(respond::page(StatusCode::UNPROCESSABLE_ENTITY, &page))
        }
    }
}

/// `POST /ingress/lists/remove`.
pub async fn unlist(State(app): State<App>, submitted: Submitted) -> Result<Response, Problem> {
    let viewer = &submitted.viewer;
    viewer.needs(Right::Admin)?;
    let prefix = submitted.form.trimmed("prefix");
    let network = parse_prefix(&prefix).map_err(|error| InvalidField {
        field: "prefix".into(),
        value: prefix.clone(),
        rule: error.to_string(),
    })?;
    // It may have expired while somebody looked.
    let notice = match take_off(&app, viewer.audit(), network).await? {
        true => "removed",
        false => {
            viewer.audit().nothing_changed();
            "gone"
        }
    };
    Ok(go(&submitted.headers, &format!("/ingress?notice={notice}")))
}

async fn view(ingress: &Ingress, viewer: &Viewer) -> IngressPage {
    let chrome = viewer.chrome();
    IngressPage {
        traffic: traffic(ingress),
        sources: sources(ingress),
        lists: lists(ingress.listed().await, chrome.csrf.clone()),
        kernel: kernel(ingress),
        chrome,
        form: ListForm {
            expires: LIST_EXPIRY.to_owned(),
            ..ListForm::default()
        },
        adding: false,
        errors: FieldErrors::default(),
    }
}

fn typed(form: &Form) -> ListForm {
    ListForm {
        prefix: form.trimmed("prefix"),
        verdict: form.trimmed("verdict"),
        expires: form.trimmed("expires"),
        note: form.trimmed("note"),
    }
}

/// The form as the API's request would say it.
fn read(ingress: &Ingress, form: &Form, now: Timestamp) -> Result<ListedPrefix, InvalidField> {
    let network = listable(ingress, &form.trimmed("prefix"))?;
    let mut fields = Fields::default();
    for name in ["verdict", "note"] {
        fields.add(name.to_owned(), Input::Text(form.trimmed(name)))?;
    }
    if let Some(end) = expiry(&form.trimmed("expires"), now)? {
        fields.add("expires_at".to_owned(), Input::Text(end.to_string()))?;
    }
    listed(network, &fields, now)
}

/// The end of the chosen time.
fn expiry(seconds: &str, now: Timestamp) -> Result<Option<Timestamp>, InvalidField> {
    if seconds.is_empty() {
        return Ok(None);
    }
    let offered = LIST_EXPIRIES.iter().any(|(offer, _)| *offer == seconds);
    let end = match seconds.parse() {
        Ok(seconds) if offered => now.checked_add(SignedDuration::from_secs(seconds)).ok(),
        _ => None,
    };
    end.map(Some)
        .ok_or_else(|| invalid("expires_at", &seconds.into(), "must be one of the options"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_ends_when_it_says() {
        let now = Timestamp::UNIX_EPOCH;
        for (seconds, _) in LIST_EXPIRIES {
            let end = expiry(seconds, now).expect(seconds);
            let end = end.map(|end| end.as_second().to_string());
            assert_eq!(end.unwrap_or_default(), seconds);
        }
        for wrong in ["1", "-600", "x"] {
            assert!(expiry(wrong, now).is_err(), "{wrong}");
        }
    }
}
