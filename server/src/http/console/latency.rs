//! `/functions/{name}/latency`: histogram, percentiles, heat map, cold against warm.

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use hearth_web::format;
use hearth_web::live::Values;
use hearth_web::pages::{LatencyPage, PERCENTILES, WINDOWS};
use hearth_web::respond;
use serde::Deserialize;

use crate::http::App;
use crate::http::functions::no_function;
use crate::http::functions::stats::window;
use crate::http::problem::Problem;
use crate::model::{Latency, Percentiles, Right};

use super::session::Viewer;
use super::view;

/// The window that is shown when none is asked for.
const FIRST: &str = "5m";

/// `?window=…`
#[derive(Debug, Default, Deserialize)]
pub struct WindowQuery {
    #[serde(default)]
    window: String,
}

impl WindowQuery {
    /// The window that is asked for; `first` if that is none of those on the page.
    pub(super) fn or(&self, first: &'static str) -> &'static str {
        let mut values = WINDOWS.iter().map(|(value, ..)| *value);
        values.find(|value| *value == self.window).unwrap_or(first)
    }
}

/// `GET /functions/{name}/latency`.
pub async fn page(
    State(app): State<App>,
    Extension(viewer): Extension<Viewer>,
    Path(name): Path<String>,
    Query(query): Query<WindowQuery>,
) -> Result<Response, Problem> {
    viewer.needs(Right::Read)?;
    let function = app.engine.get(&name)?;
    let id = app.engine.id_of(&name).ok_or_else(|| no_function(&name))?;
    let shown = query.or(FIRST);
    let latency = app.history.latency(id, window(shown)?).read().await?;
    let page = LatencyPage {
        chrome: viewer.chrome(),
        head: view::head(&app, &function).await?,
        window: shown,
        live: values(&latency),
    };
    Ok(respond::page(StatusCode::OK, &page))
}

/// The page's numbers.
pub fn values(latency: &Latency) -> Values {
    let mut values = Values::default();
    let stats = &latency.stats;
    let share = |part: u64| format::percent(part as f64 / stats.count.max(1) as f64);
    values.set("count", format::count(stats.count));
    values.set(
        "errors",
        match stats.errors {
            0 => "0".to_owned(),
            errors => format!("{} · {}", format::count(errors), share(errors)),
        },
    );
    let ratio = match stats.tail_to_median {
        Some(ratio) => (format!("{ratio:.1}×"), "p99 divided by p50".to_owned()),
        None => {
            let p99 = view::percentile(990, stats.count, None);
            (p99.text(), p99.title())
        }
    };
    values.set_titled("ratio".to_owned(), ratio.0, ratio.1);
    let known = stats.count - latency.undivided.min(stats.count);
    values.set(
        "cold-share",
        match known {
            0 => "–".to_owned(),
            _ => format::percent(latency.cold.count as f64 / known as f64),
        },
    );
    values.set(
        "since",
        format!("since {}", latency.from.strftime("%Y-%m-%d %H:%M UTC")),
    );
    values.set(
        "undivided",
        match latency.undivided {
            0 => String::new(),
            count => format!(
                "{} from before an update could not be classified.",
                format::plural(count, "invocation")
            ),
        },
    );
    let stages = &stats.stages_us;
    for (name, count, percentiles) in [
        ("total", stats.count, &stats.total_us),
        ("queue", stats.count, &stages.queue),
        ("start", stats.count, &stages.start),
        ("send", stats.count, &stages.send),
        ("run", stats.count, &stages.run),
        ("recv", stats.count, &stages.recv),
        ("warm", latency.warm.count, &latency.warm.total_us),
        ("cold", latency.cold.count, &latency.cold.total_us),
    ] {
        put(&mut values, name, count, percentiles);
    }
    values.set("warm/count", format::count(latency.warm.count));
    values.set("cold/count", format::count(latency.cold.count));
    values
}

fn put(values: &mut Values, name: &str, count: u64, percentiles: &Percentiles) {
    for (key, _) in PERCENTILES {
        let (per_mille, us) = match key {
            "p50" => (500, percentiles.p50),
            "p90" => (900, percentiles.p90),
            "p99" => (990, percentiles.p99),
            "p999" => (999, percentiles.p999),
            // The largest of one sample is that sample.
            _ => (0, percentiles.max),
        };
        let shown = view::percentile(per_mille, count, us);
        values.set_titled(format!("{name}/{key}"), shown.text(), shown.title());
    }
}

#[cfg(test)]
mod tests {
    use hearth_web::pages::STAGES;

    use super::*;

    #[test]
    fn every_cell_of_the_page_has_a_value() {
        let mut latency = Latency::default();
        for count in [0, 10] {
            latency.stats.count = count;
            let values = values(&latency);
            let rows = STAGES
                .iter()
                .map(|(stage, _)| *stage)
                .chain(["warm", "cold"]);
            for row in rows {
                for (key, _) in PERCENTILES {
                    assert!(!values.cell(row, key).is_empty(), "{row}/{key}");
                }
            }
            for key in ["count", "errors", "ratio", "cold-share", "since"] {
                assert!(!values.text(key).is_empty(), "{key}");
            }
        }
    }

    #[test]
    fn too_few_samples_are_a_dash_that_says_how_many_are_needed() {
        let mut latency = Latency::default();
        latency.cold.count = 9;
        latency.cold.total_us.p50 = Some(16_000);
        latency.cold.total_us.max = Some(16_300);
        let values = values(&latency);
        let cell = |key| (values.cell("cold", key), values.cell_title("cold", key));
        assert_eq!(cell("p50"), ("16.0 ms", ""));
        assert_eq!(cell("p90"), ("–", "needs 10 samples, has 9"));
        assert_eq!(cell("p99"), ("–", "needs 100 samples, has 9"));
        assert_eq!(cell("p999"), ("–", "needs 1,000 samples, has 9"));
        assert_eq!(cell("max"), ("16.3 ms", ""));
        assert_eq!(values.text("ratio"), "–");
        assert_eq!(values.title("ratio"), "needs 100 samples, has 0");
    }

    #[test]
    fn every_window_is_one_the_api_takes() {
        for (value, ..) in WINDOWS {
            assert!(window(value).is_ok(), "{value}");
        }
        assert!(WINDOWS.iter().any(|(value, ..)| *value == FIRST));
    }
}
