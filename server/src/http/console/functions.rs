//! `/functions`: the list of functions, searched, filtered, sorted and paged without asking the database.

use axum::Extension;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use hearth_web::format;
use hearth_web::live::Values;
use hearth_web::pages::{self, FunctionRow, FunctionsPage, FunctionsTable, ListQuery, ListView};
use hearth_web::respond;
use serde::Deserialize;

use crate::http::App;
use crate::http::problem::Problem;
use crate::live::{Board, Row};
use crate::model::Right;

use super::guard::is_htmx;
use super::session::Viewer;
use super::view;

/// Functions of one page: what a person scrolls through, and what the stream sends the numbers of.
const PAGE: usize = 100;

/// `?notice=…`: set by the redirect after a change.
#[derive(Debug, Default, Deserialize)]
pub struct DeletedNotice {
    #[serde(default)]
    notice: String,
}

impl DeletedNotice {
    /// What to say about the change.
    pub fn in_words(&self) -> Option<String> {
        (self.notice == "deleted").then(|| "Function deleted.".to_owned())
    }
}

/// The query of the URL. Invalid parts are ignored.
#[derive(Debug, Default, Deserialize)]
pub struct FunctionsQuery {
    #[serde(default)]
    q: String,
    #[serde(default)]
    state: String,
    #[serde(default)]
    sort: String,
    #[serde(default)]
    page: String,
}

impl FunctionsQuery {
    /// The query with defaults.
    pub fn query(&self) -> ListQuery {
        let known = |list: &[&str], value: &str| list.contains(&value).then(|| value.to_owned());
        let (descending, sort) = match self.sort.strip_prefix('-') {
            Some(sort) => (true, sort),
            None => (false, self.sort.as_str()),
        };
        let sort = known(&pages::SORTS.map(|(sort, ..)| sort), sort);
        ListQuery {
            search: self.q.trim().chars().take(64).collect(),
            state: known(&pages::STATE_FILTERS.map(|(state, _)| state), &self.state)
                .unwrap_or_default(),
            descending: descending && sort.is_some(),
            sort: sort.unwrap_or_else(|| "name".to_owned()),
            page: self.page.parse().unwrap_or(1).max(1),
        }
    }
}

/// `GET /functions`: the page, or for htmx the table alone.
pub async fn page(
    State(app): State<App>,
    Extension(viewer): Extension<Viewer>,
    Query(query): Query<FunctionsQuery>,
    Query(notice): Query<DeletedNotice>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    viewer.needs(Right::Read)?;
    let mut chrome = viewer.chrome();
    let list = view(&app.live.board_now(), query.query());
    if is_htmx(&headers) {
        return Ok(respond::partial(&FunctionsTable { chrome, list }));
    }
    chrome.notice = notice.in_words();
    let page = FunctionsPage { chrome, list };
    Ok(respond::page(StatusCode::OK, &page))
}

/// The part of the board that is asked for.
fn view(board: &Board, mut query: ListQuery) -> ListView {
    let rows = select(board, &query);
    let matching = rows.len();
    let pages = matching.div_ceil(PAGE).max(1);
    query.page = query.page.min(pages);
    let shown: Vec<&Row> = rows
        .into_iter()
        .skip((query.page - 1) * PAGE)
        .take(PAGE)
        .collect();
    let mut live = Values::default();
    for row in &shown {
        put(row, &mut live);
    }
    let rows = shown
        .into_iter()
        .map(|row| FunctionRow {
            name: row.summary.name.clone(),
            runtime: view::runtime(row.summary.runtime),
            copy_of: row.summary.copy_of.clone(),
            max_concurrency: row.summary.max_concurrency,
        })
        .collect();
    ListView {
        query,
        rows,
        live,
        matching,
        all: board.rows.len(),
        pages,
    }
}

/// The rows that match, in order.
fn select<'b>(board: &'b Board, query: &ListQuery) -> Vec<&'b Row> {
    let search = query.search.to_lowercase();
    let mut rows: Vec<&Row> = board
        .rows
        .iter()
        .filter(|row| search.is_empty() || row.summary.name.contains(&search))
        .filter(|row| query.state.is_empty() || view::state(row.summary.state).label == query.state)
        .collect();
    // The board is by name, and the sort is stable: equals stay in that order.
    match query.sort.as_str() {
        "instances" => rows.sort_by_key(|row| {
            let instances = row.summary.instances;
            instances.idle + instances.busy + instances.starting
        }),
        "rate" => rows.sort_by(|a, b| a.rate.requests.total_cmp(&b.rate.requests)),
        "errors" => rows.sort_by(|a, b| error_share(a).total_cmp(&error_share(b))),
        "p50" => rows.sort_by_key(|row| row.recent.p50_us),
        "p99" => rows.sort_by_key(|row| row.recent.p99_us),
        _ => {}
    }
    if query.descending {
        rows.reverse();
    }
    rows
}

fn error_share(row: &Row) -> f64 {
    row.recent.errors as f64 / row.recent.count.max(1) as f64
}

/// The numbers of a row.
fn put(row: &Row, values: &mut Values) {
    let name = &row.summary.name;
    let instances = row.summary.instances;
    let recent = &row.recent;
    let mut cell = |key: &str, text: String| values.set(format!("{name}/{key}"), text);
    cell(
        "instances",
        format::count(u64::from(
            instances.idle + instances.busy + instances.starting,
        )),
    );
    cell("rate", format::rate(row.rate.requests));
    let errors = match recent.count {
        0 => "–".to_owned(),
        _ => format::percent(error_share(row)),
    };
    cell("errors", errors);
    for (key, per_mille, us) in [("p50", 500, recent.p50_us), ("p99", 990, recent.p99_us)] {
        let shown = view::percentile(per_mille, recent.count, us);
        values.set_titled(format!("{name}/{key}"), shown.text(), shown.title());
    }
    let badge = pages::badge(
        view::state(row.summary.state),
        row.summary.state_reason.as_deref(),
    );
    values.set_html(format!("{name}/state"), badge);
}

/// The list as a stream follows it: the functions of one page as it was when the stream began.
pub struct Followed {
    query: ListQuery,
    /// The names on the page, sorted.
    names: Vec<String>,
    matching: usize,
}

impl Followed {
    /// From now on.
    pub fn new(board: &Board, query: &FunctionsQuery) -> Self {
        let list = view(board, query.query());
        let mut names: Vec<String> = list.rows.into_iter().map(|row| row.name).collect();
        names.sort_unstable();
        Self {
            query: list.query,
            names,
            matching: list.matching,
        }
    }

    /// The numbers of its functions, and whether the page lacks some or has too many. That functions overtake each other
    /// does not make the page stale: rows that jump under the hand are worse than an order of a minute ago.
    pub fn values(&self, board: &Board) -> (Values, bool) {
        let mut values = Values::default();
        let mut found = 0;
        for row in &board.rows {
            if self.names.binary_search(&row.summary.name).is_ok() {
                found += 1;
                put(row, &mut values);
            }
        }
        let stale = found < self.names.len() || select(board, &self.query).len() != self.matching;
        (values, stale)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Summary;
    use crate::history::Recent;
    use crate::live::Rate;
    use crate::model::{FunctionState, InstanceCounts, Runtime};

    fn row(name: &str, state: FunctionState, p99_us: u64) -> Row {
        Row {
            summary: Summary {
                id: 1,
                name: name.to_owned(),
                runtime: Runtime::Python3,
                copy_of: None,
                state,
                state_reason: None,
                instances: InstanceCounts::default(),
                queued: 0,
                max_concurrency: 8,
            },
            rate: Rate::default(),
            recent: Recent {
                count: u64::from(p99_us > 0) * 100,
                p99_us: (p99_us > 0).then_some(p99_us),
                ..Recent::default()
            },
        }
    }

    fn board() -> Board {
        Board {
            rows: vec![
                row("alpha", FunctionState::Ready, 10),
                row("beta", FunctionState::Failed, 0),
                row("gamma", FunctionState::Ready, 900),
            ],
        }
    }

    fn names(query: &FunctionsQuery) -> Vec<String> {
        let list = view(&board(), query.query());
        list.rows.into_iter().map(|row| row.name).collect()
    }

    fn wanted(q: &str, state: &str, sort: &str) -> FunctionsQuery {
        FunctionsQuery {
            q: q.into(),
            state: state.into(),
            sort: sort.into(),
            page: String::new(),
        }
    }

    #[test]
    fn lists_are_searched_filtered_and_sorted() {
        assert_eq!(names(&wanted("", "", "")), ["alpha", "beta", "gamma"]);
        assert_eq!(names(&wanted(" ALP ", "", "")), ["alpha"]);
        assert_eq!(names(&wanted("", "failed", "")), ["beta"]);
        assert_eq!(names(&wanted("", "", "-p99")), ["gamma", "alpha", "beta"]);
        assert_eq!(names(&wanted("", "", "-name")), ["gamma", "beta", "alpha"]);
        // Invalid values are ignored.
        assert_eq!(names(&wanted("", "no", "-no")), ["alpha", "beta", "gamma"]);
        assert!(names(&wanted("nothing", "", "")).is_empty());
    }

    #[test]
    fn a_page_beyond_the_last_is_the_last() {
        let rows = (0..250)
            .map(|n| row(&format!("f-{n:03}"), FunctionState::Ready, 0))
            .collect();
        let board = Board { rows };
        let mut asked = wanted("", "", "");
        asked.page = "99".into();
        let list = view(&board, asked.query());
        assert_eq!((list.query.page, list.pages, list.rows.len()), (3, 3, 50));
        assert_eq!(list.rows[0].name, "f-200");
        assert_eq!(list.live.cell("f-200", "p99"), "–");
        let why = list.live.cell_title("f-200", "p99");
        assert_eq!(why, "needs 100 samples, has 0");
    }

    #[test]
    fn a_followed_list_is_stale_when_its_functions_change_and_not_when_their_order_does() {
        let mut board = board();
        let followed = Followed::new(&board, &wanted("", "", "-p99"));
        board.rows[0].recent.p99_us = Some(5_000);
        let (values, stale) = followed.values(&board);
        assert_eq!(values.cell("alpha", "p99"), "5.00 ms");
        assert!(!stale);
        let gone = board.rows.pop().expect("a row");
        assert!(followed.values(&board).1);
        board.rows.push(gone);
        board.rows.push(row("delta", FunctionState::Ready, 1));
        assert!(followed.values(&board).1);
    }
}
