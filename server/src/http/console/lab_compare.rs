//! `/lab/compare`: two runs side by side.

use std::collections::HashMap;

use axum::Extension;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use hearth_web::pages::{ComparedPlot, ComparedRun, ExperimentComparePage};
use hearth_web::respond;
use serde::Deserialize;
use serde_json::Value;

use crate::http::App;
use crate::http::experiments::id_of;
use crate::http::problem::Problem;
use crate::model::{ExperimentDetail, Right};

use super::experiment_files::{Plot, plots, shown};
use super::experiment_table::result;
use super::experiment_view::card;
use super::lab_differences::{agreement, by_name, differences};
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
        agreement: agreement(result_of(&first), result_of(&second)),
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

#[cfg(test)]
mod tests {
    use super::*;

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
