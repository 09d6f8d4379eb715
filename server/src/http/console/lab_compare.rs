//! `/lab/compare`: two runs side by side.

use std::collections::{HashMap, VecDeque};

use axum::Extension;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use hearth_lab::overhead::layers::LAYERS;
use hearth_lab::plot::forest::percent;
use hearth_web::pages::{ComparedPlot, ComparedRun, ExperimentComparePage, ResultTable};
use hearth_web::respond;
use serde::Deserialize;
use serde_json::Value;

use crate::http::App;
use crate::http::experiments::id_of;
use crate::http::problem::Problem;
use crate::model::{ExperimentDetail, Right};

use super::experiment_files::{Plot, plots, shown};
use super::experiment_view::{card, ns, result, verdict};
use super::session::Viewer;

/// Most pairs of plots on a page.
const PAIRS_MAX: usize = 12;

/// Which two.
#[derive(Debug, Deserialize)]
pub struct CompareQuery {
    #[serde(default)]
    first: String,
    #[serde(default)]
    second: String,
}

/// `GET /lab/compare?first=1&second=2`.
pub async fn page(
    State(app): State<App>,
    Extension(viewer): Extension<Viewer>,
    Query(query): Query<CompareQuery>,
) -> Result<Response, Problem> {
    viewer.needs(Right::Read)?;
    let first = app.lab.get(id_of(&query.first)?).await?;
    let second = app.lab.get(id_of(&query.second)?).await?;
    let are_alike = first.view.kind == second.view.kind;
    let mut pairs = pairs(plots(&first.files), plots(&second.files), are_alike);
    let left = pairs.split_off(pairs.len().min(PAIRS_MAX));
    let mut shown = Vec::new();
    for [one, two] in pairs {
        shown.push([
            cell(&app, &first, one, "First").await?,
            cell(&app, &second, two, "Second").await?,
        ]);
    }
    let page = ExperimentComparePage {
        chrome: viewer.chrome(),
        differences: differences(result_of(&first), result_of(&second), are_alike),
        nothing: match (&first.view.result, &second.view.result) {
            (Some(_), Some(_)) => "Nothing of the same name.",
            (None, Some(_)) => "The first run has no result.",
            (Some(_), None) => "The second run has no result.",
            (None, None) => "Neither run has a result.",
        },
        runs: [&first, &second].map(|found| ComparedRun {
            card: card(&found.view),
            result: result(&found.view),
        }),
        plots: shown,
        plots_left: left.iter().flatten().flatten().count(),
    };
    Ok(respond::page(StatusCode::OK, &page))
}

fn result_of(found: &ExperimentDetail) -> &Value {
    found.view.result.as_ref().unwrap_or(&Value::Null)
}

async fn cell(
    app: &App,
    run: &ExperimentDetail,
    plot: Option<Plot>,
    which: &str,
) -> Result<ComparedPlot, Problem> {
    let which_lower = which.to_lowercase();
    let Some(mut plot) = plot else {
        return Ok(ComparedPlot {
            plot: None,
            missing: format!("The {which_lower} run has no such plot."),
        });
    };
    plot.name = format!("{which}: {}", plot.name);
    let missing = format!("{} is too large to be shown.", plot.path);
    let plot = shown(app, run.view.id, plot).await?;
    Ok(ComparedPlot { plot, missing })
}

/// What has the same name, in order, beside each other, and then what only the second has.
fn by_name<T>(first: Vec<T>, second: Vec<T>, name: impl Fn(&T) -> &str) -> Vec<[Option<T>; 2]> {
    let mut same: HashMap<String, VecDeque<usize>> = HashMap::new();
    for (index, one) in second.iter().enumerate() {
        same.entry(name(one).to_owned())
            .or_default()
            .push_back(index);
    }
    let mut second: Vec<Option<T>> = second.into_iter().map(Some).collect();
    let mut pairs = Vec::new();
    for one in first {
        let other = same.get_mut(name(&one)).and_then(VecDeque::pop_front);
        let other = other.and_then(|index| second[index].take());
        pairs.push([Some(one), other]);
    }
    pairs.extend(
        second
            .into_iter()
            .flatten()
            .map(|other| [None, Some(other)]),
    );
    pairs
}

/// Plots of the same name beside each other, and of runs that are alike those, too, that are the only ones of their kind.
fn pairs(first: Vec<Plot>, second: Vec<Plot>, are_alike: bool) -> Vec<[Option<Plot>; 2]> {
    let mut pairs = by_name(first, second, |plot| &plot.name);
    if !are_alike {
        return pairs;
    }
    // Which pair has the plot that the other lacks, by kind and run.
    let mut lone: HashMap<String, [Vec<usize>; 2]> = HashMap::new();
    for (index, pair) in pairs.iter().enumerate() {
        if let [Some(plot), None] | [None, Some(plot)] = pair {
            let of_kind = lone.entry(kind(plot).to_owned()).or_default();
            of_kind[usize::from(pair[0].is_none())].push(index);
        }
    }
    let lone = lone.into_values().filter_map(|[ones, others]| {
        let ([one], [other]) = (ones.as_slice(), others.as_slice()) else {
            return None;
        };
        Some((*one, *other))
    });
    for (one, other) in lone.collect::<Vec<_>>() {
        pairs[one][1] = pairs[other][1].take();
    }
    pairs.retain(|pair| pair.iter().any(Option::is_some));
    pairs
}

/// What a plot shows, whatever of: its file's name, or all of its path where nothing else has it.
fn kind(plot: &Plot) -> &str {
    plot.path
        .rsplit_once('/')
        .map_or(&plot.path, |(_, file)| file)
}

/// What both have, line by line, and of runs that are alike the only lines of both whatever their names. Nothing where they have nothing
/// in common.
fn differences(first: &Value, second: &Value, are_alike: bool) -> ResultTable {
    if let (Some(ones), Some(twos)) = (
        first["benchmarks"].as_array(),
        second["benchmarks"].as_array(),
    ) {
        return findings(first, ones, second, twos);
    }
    let (ones, twos) = (latencies(first), latencies(second));
    let pairs = match are_alike && ones.len() == 1 && twos.len() == 1 {
        true => ones
            .into_iter()
            .zip(twos)
            .map(|(one, two)| [Some(one), Some(two)])
            .collect(),
        false => by_name(ones, twos, |(title, _)| title),
    };
    let row = |pair: [Option<(String, [Value; 2])>; 2]| {
        let [Some((title, one)), Some((other, two))] = pair else {
            return None;
        };
        let title = match title == other {
            true => title,
            false => format!("{title} / {other}"),
        };
        let cells = one.iter().zip(&two).flat_map(|(one, two)| {
            let change = match (one.as_f64(), two.as_f64()) {
                (Some(one), Some(two)) if one > 0.0 => percent(two / one - 1.0),
                _ => "–".to_owned(),
            };
            [ns(one), ns(two), change]
        });
        Some((title, String::new(), cells.collect()))
    };
    ResultTable {
        headings: vec![
            "",
            "p50, first",
            "p50, second",
            "Change of p50",
            "p99, first",
            "p99, second",
            "Change of p99",
        ],
        rows: pairs.into_iter().filter_map(row).collect(),
    }
}

/// The median and the 99th percentile of each row, at the client.
fn latencies(result: &Value) -> Vec<(String, [Value; 2])> {
    let title = |row: &Value| row["title"].as_str().unwrap_or_default().to_owned();
    if let Some(rows) = result["overhead"].as_array() {
        let row = |row: &Value| {
            let client = &row["layers"][LAYERS - 1]["through"];
            (
                title(row),
                ["p50_ns", "p99_ns"].map(|name| client[name].clone()),
            )
        };
        return rows.iter().map(row).collect();
    }
    let rows = result["rows"].as_array().into_iter().flatten();
    let row = |row: &Value| {
        let tail = &row["latency_ns"];
        (title(row), ["median", "p99"].map(|name| tail[name].clone()))
    };
    rows.map(row).collect()
}

/// What two duets say of the same benchmarks.
fn findings(first: &Value, ones: &[Value], second: &Value, twos: &[Value]) -> ResultTable {
    let change = |one: &Value| {
        let estimate = one["change"]["estimate"].as_f64();
        estimate.map_or_else(|| "–".to_owned(), percent)
    };
    fn title<'a>(one: &'a &Value) -> &'a str {
        one["title"].as_str().unwrap_or_default()
    }
    let row = |pair: [Option<&Value>; 2]| {
        let [Some(one), Some(two)] = pair else {
            return None;
        };
        let cells = vec![
            change(one),
            change(two),
            verdict(one, first),
            verdict(two, second),
        ];
        Some((title(&one).to_owned(), String::new(), cells))
    };
    let pairs = by_name(ones.iter().collect(), twos.iter().collect(), title);
    ResultTable {
        headings: vec![
            "",
            "Change, first",
            "Change, second",
            "Verdict, first",
            "Verdict, second",
        ],
        rows: pairs.into_iter().filter_map(row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_both_have_is_compared_line_by_line() {
        let tail = |median: f64, p99: f64| json!({"median": median, "p99": p99});
        let row = |title: &str, latency: Value| json!({"title": title, "latency_ns": latency});
        let first = json!({"rows": [row("warm", tail(1e6, 2e6)), row("cold", tail(3e6, 4e6))]});
        let second = json!({"rows": [row("warm", tail(2e6, 1e6))]});
        let found = differences(&first, &second, true);
        let (title, _, cells) = &found.rows[0];
        assert_eq!((found.rows.len(), title.as_str()), (1, "warm"));
        assert_eq!(cells[..3], ["1 ms", "2 ms", "+100 %"]);
        assert_eq!(cells[3..], ["2 ms", "1 ms", "−50 %"]);
        assert!(differences(&first, &Value::Null, true).rows.is_empty());
        // The only ones are compared, if they are alike.
        let other = json!({"rows": [row("hot", tail(0.0, 1e6))]});
        assert!(differences(&first, &other, true).rows.is_empty());
        assert!(differences(&second, &other, false).rows.is_empty());
        let found = differences(&second, &other, true);
        assert_eq!(found.rows[0].0, "warm / hot");
        assert_eq!(found.rows[0].2[..3], ["2 ms", "0 ns", "−100 %"]);
        assert_eq!(differences(&other, &second, true).rows[0].2[2], "–");
        // The second of a name beside the second.
        let twice = |one: f64, two: f64| json!({"rows": [row("a", tail(one, one)), row("a", tail(two, two))]});
        let found = differences(&twice(1e6, 8e6), &twice(2e6, 4e6), true);
        assert_eq!(found.rows[1].2[..3], ["8 ms", "4 ms", "−50 %"]);

        let duet = |verdict: &str| json!({"benchmarks": [{"title": "a", "change": {"estimate": 0.5}, "verdict": verdict}], "control_changes": 0});
        let found = differences(&duet("slower"), &duet("no_change"), true);
        assert_eq!(found.rows[0].2, ["+50 %", "+50 %", "slower", "no change"]);
        assert!(differences(&duet("slower"), &first, false).rows.is_empty());
    }

    #[test]
    fn plots_of_the_same_name_are_beside_each_other() {
        let names = |first: &[&str], second: &[&str], are_alike| -> Vec<[String; 2]> {
            let plot = |path: &&str| Plot {
                name: (*path).to_owned(),
                path: (*path).to_owned(),
                bytes: 0,
            };
            let plots = |paths: &[&str]| paths.iter().map(plot).collect();
            let found = pairs(plots(first), plots(second), are_alike);
            let name = |one: Option<Plot>| one.map_or_else(String::new, |one| one.name);
            found.into_iter().map(|pair| pair.map(name)).collect()
        };
        let found = names(&["a", "b", "x"], &["c", "b", "d"], true);
        assert_eq!(
            found,
            [["a", ""], ["b", "b"], ["x", ""], ["", "c"], ["", "d"]]
        );
        let (one, two) = (["a/cdf.svg", "a/bars.svg"], ["b/bars.svg", "b/cdf.svg"]);
        let found = names(&one, &two, true);
        assert_eq!(
            found,
            [["a/cdf.svg", "b/cdf.svg"], ["a/bars.svg", "b/bars.svg"]]
        );
        assert_eq!(names(&one, &two, false).len(), 4);
        // Two of a kind: nobody knows which belongs to which.
        let found = names(&one, &["b/cdf.svg", "c/cdf.svg"], true);
        assert_eq!(found.len(), 4, "{found:?}");
    }
}
