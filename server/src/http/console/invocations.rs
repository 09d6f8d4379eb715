//! `/functions/{name}/invocations`: the filtered, paged history, and the recent invocations of the test tab.

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::Response;
use hearth_web::pages::{
    FilterText, HistoryPartial, HistoryView, InvocationsPage, InvocationsPartial, InvocationsView,
    Moment,
};
use hearth_web::respond;
use jiff::Timestamp;
use serde::Deserialize;
use uuid::Uuid;

use crate::http::App;
use crate::http::filter::FilterForm;
use crate::http::functions::no_function;
use crate::http::problem::Problem;
use crate::http::spec;
use crate::model::{InvocationFilter, InvocationRecord, Page, Right};

use super::function;
use super::guard::{is_htmx, push_url};
use super::session::Viewer;
use super::view;

/// Rows of a page.
const ROWS: u32 = 50;
/// Rows of the last calls.
const LAST_CALLS: u32 = 5;
/// Which element made htmx ask.
const HX_TRIGGER: HeaderName = HeaderName::from_static("hx-trigger");
/// The element that refreshes itself.
const LIVE_ELEMENT: &str = "invocations";

/// The page's query.
#[derive(Debug, Default, Deserialize)]
pub struct InvocationsQuery {
    #[serde(flatten)]
    form: FilterForm,
    before: Option<String>,
}

/// `GET /functions/{name}/invocations`: the page, or its table alone for htmx.
pub async fn page(
    State(app): State<App>,
    Extension(viewer): Extension<Viewer>,
    Path(name): Path<String>,
    Query(query): Query<InvocationsQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    viewer.needs(Right::Read)?;
    if !is_htmx(&headers) {
        let function = app.engine.get(&name)?;
        let page = InvocationsPage {
            chrome: viewer.chrome(),
            head: view::head(&app, &function).await?,
            invocations: find(&app, &name, query).await?,
        };
        return Ok(respond::page(StatusCode::OK, &page));
    }
    let invocations = find(&app, &name, query).await?;
    let address = invocations.address(invocations.before.as_deref());
    let mut response = respond::partial(&InvocationsPartial { invocations });
    // What refreshes itself stays where it is; a filter or another page is a place to come back to.
    let is_refresh = headers
        .get(HX_TRIGGER)
        .is_some_and(|element| element == LIVE_ELEMENT);
    if !is_refresh {
        push_url(&headers, &address, &mut response);
    }
    Ok(response)
}

async fn find(app: &App, name: &str, query: InvocationsQuery) -> Result<InvocationsView, Problem> {
    let id = app.engine.id_of(name).ok_or_else(|| no_function(name))?;
    let before = query.before.filter(|before| !before.is_empty());
    let (page, wrong) = match query.form.filter() {
        Ok(filter) => {
            let page = app
                .history
                .list(id, &filter, before.as_deref(), ROWS)
                .await?;
            let page = page.ok_or_else(|| {
                let value = before.as_deref().unwrap_or_default().into();
                spec::invalid(
                    "before",
                    &value,
                    "must be a key returned with an earlier page",
                )
            })?;
            (page, None)
        }
        Err(error) => {
            let nothing = Page {
                items: Vec::new(),
                next: None,
            };
            (nothing, Some((error.field, error.rule)))
        }
    };
    let now = Timestamp::now();
    let form = query.form;
    Ok(InvocationsView {
        function: name.to_owned(),
        filter: FilterText {
            status: form.status,
            start: form.start,
            version: form.version,
            trigger: form.trigger,
            min_ms: form.min_ms,
            max_ms: form.max_ms,
        },
        wrong,
        searched_to: searched_to(&page).map(|at| Moment { at, now }),
        rows: page
            .items
            .into_iter()
            .map(|record| view::history_row(record, now))
            .collect(),
        before,
        next: page.next,
    })
}

/// Admission time of the invocation at which a search stopped before its page was full, from its id.
fn searched_to(page: &Page<InvocationRecord>) -> Option<Timestamp> {
    if page.items.len() >= ROWS as usize {
        return None;
    }
    let id = Uuid::parse_str(page.next.as_deref()?).ok()?;
    let (seconds, nanos) = id.get_timestamp()?.to_unix();
    Timestamp::new(i64::try_from(seconds).ok()?, nanos.cast_signed()).ok()
}

/// `GET /functions/{name}/history`: the last calls alone.
pub async fn last_calls(
    State(app): State<App>,
    Extension(viewer): Extension<Viewer>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if !is_htmx(&headers) {
        return Ok(function::to_page(&name));
    }
    viewer.needs(Right::Read)?;
    let history = recent(&app, &name).await?;
    Ok(respond::partial(&HistoryPartial { history }))
}

/// The last calls of a function.
pub async fn recent(app: &App, name: &str) -> Result<HistoryView, Problem> {
    let id = app.engine.id_of(name).ok_or_else(|| no_function(name))?;
    let filter = InvocationFilter::default();
    let page = app.history.list(id, &filter, None, LAST_CALLS).await?;
    let now = Timestamp::now();
    Ok(HistoryView {
        function: name.to_owned(),
        rows: page
            .into_iter()
            .flat_map(|page| page.items)
            .map(|record| view::history_row(record, now))
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::InvocationId;

    #[test]
    fn a_short_page_says_how_far_it_came() {
        let id = InvocationId::new();
        let page = |next: Option<String>| Page {
            items: Vec::new(),
            next,
        };
        let found = searched_to(&page(Some(id.to_string()))).expect("a time");
        let age = Timestamp::now().as_second() - found.as_second();
        assert!((0..60).contains(&age), "{found}");
        assert_eq!(searched_to(&page(None)), None);
    }
}
