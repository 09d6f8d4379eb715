//! `/functions/{name}/what-if`: cold starts against memory with other settings.

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hearth_lab::plot::format::number;
use hearth_web::pages::{PlotView, ResultTable, WhatIfPage};
use hearth_web::respond;

use crate::http::App;
use crate::http::functions::stats::window;
use crate::http::functions::what_if::plot;
use crate::http::problem::Problem;
use crate::lab::WhatIfAsked;
use crate::model::{Right, WhatIf, WhatIfCurve};

use super::latency::WindowQuery;
use super::session::Viewer;
use super::view;

/// The window that is shown when none is asked for.
const FIRST: &str = "24h";

/// `GET /functions/{name}/what-if`.
pub async fn page(
    State(app): State<App>,
    Extension(viewer): Extension<Viewer>,
    Path(name): Path<String>,
    Query(query): Query<WindowQuery>,
) -> Result<Response, Problem> {
    viewer.needs(Right::Read)?;
    let function = app.engine.get(&name)?;
    let shown = query.or(FIRST);
    let asked = WhatIfAsked {
        window: window(shown)?,
        ..WhatIfAsked::default()
    };
    let found = app.lab.what_if(&app.history, &name, asked).await?;
    let found = found.as_ref();
    let page = WhatIfPage {
        chrome: viewer.chrome(),
        head: view::head(&app, &function).await?,
        window: shown,
        plot: found.map(|found| {
            let svg = BASE64_STANDARD.encode(plot(found));
            let data = format!("data:image/svg+xml;base64,{svg}");
            PlotView {
                name: "Cold starts against memory with other idle timeouts and minimums".to_owned(),
                address: data.clone(),
                data,
                file: format!("{name}-what-if"),
            }
        }),
        table: found.map(table).unwrap_or_default(),
        remark: found.map(remark).unwrap_or_default(),
    };
    Ok(respond::page(StatusCode::OK, &page))
}

/// A row for each setting, the present ones first.
pub(super) fn table(found: &WhatIf) -> ResultTable {
    let rows = |curve: &WhatIfCurve, is_today: bool| {
        let (min, max) = (curve.min_instances, curve.max_concurrency);
        let today = if is_today { "today: " } else { "" };
        let memory = curve.memory_mib;
        let memory = memory.map_or_else(String::new, |memory| format!(", {memory} MiB"));
        let name = move |timeout: u32| {
            format!("{today}{timeout} s, at least {min}, at most {max}{memory}")
        };
        let row = move |point: &crate::model::WhatIfPoint| {
            let cells = vec![
                number(point.cold as f64),
                format!("{} %", number(point.cold_share * 100.0)),
                number(point.queued as f64),
                number(point.refused as f64),
                format!("{} MiB", number(point.memory_mib)),
                point.most_instances.to_string(),
            ];
            (name(point.idle_timeout_s), String::new(), cells)
        };
        curve.points.iter().map(row).collect::<Vec<_>>()
    };
    let mut all = rows(&found.today, true);
    all.extend(found.curves.iter().flat_map(|curve| rows(curve, false)));
    ResultTable {
        headings: vec![
            "Idle timeout, instances",
            "Cold",
            "Share",
            "Queued",
            "Refused",
            "Memory (mean)",
            "Most instances",
        ],
        rows: all,
    }
}

fn remark(found: &WhatIf) -> String {
    format!(
        "Simulated with the scheduler\u{2019}s own policy: {} calls, {} of them cold when they came. A start takes {} ms, an instance {} MiB. The dot is today\u{2019}s setting.",
        number(found.calls as f64),
        number(found.recorded_cold as f64),
        number(found.start_ms),
        number(found.instance_mib),
    )
}
