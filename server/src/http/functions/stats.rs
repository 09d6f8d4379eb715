//! `GET /api/v1/functions/{name}/stats`.

use std::time::Duration;

use axum::Json;
use axum::extract::{RawQuery, State};

use super::id_of;
use crate::http::App;
use crate::http::auth::{Allowed, Read};
use crate::http::path::Path;
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::http::spec::invalid;
use crate::model::{InvalidField, Stats};

/// The window when none is named.
pub const DEFAULT_WINDOW: &str = "5m";
/// Statistics are kept by the minute.
const MIN_WINDOW_S: u64 = 60;
/// Rollups are read one by one; a week is seven hundred of them.
const MAX_WINDOW_S: u64 = 7 * 86_400;
const RULE: &str = "must be a number with a unit s, m, h or d, from 60s to 7d, such as 5m";

/// Get counts and latency percentiles of a window.
#[utoipa::path(
    get,
    path = "/api/v1/functions/{name}/stats",
    tag = "history",
    operation_id = "function_stats",
    security(("bearer" = ["read"])),
    params(
        ("name" = String, Path, description = "Name of the function"),
        ("window" = Option<String>, Query, pattern = "^[0-9]+[smhd]$", description = "60s to 7d, 5m by default"),
    ),
    responses((status = 200, description = "The statistics", body = Stats)),
    extensions(("x-errors" = json!(["not_found", "invalid_field"]))),
)]
pub async fn stats(
    _: Allowed<Read>,
    State(app): State<App>,
    Path(name): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Json<Stats>, Problem> {
    let id = id_of(&app, &name)?;
    let query = Query::parse(query.as_deref(), &["window"])?;
    let window = window(query.text("window").unwrap_or(DEFAULT_WINDOW))?;
    Ok(Json(app.history.stats(id, window).await?))
}

/// A window as the API spells it.
pub fn window(text: &str) -> Result<Duration, InvalidField> {
    let refuse = || invalid("window", &text.into(), RULE);
    let unit: u64 = match text.bytes().last() {
        Some(b's') => 1,
        Some(b'm') => 60,
        Some(b'h') => 3600,
        Some(b'd') => 86_400,
        _ => return Err(refuse()),
    };
    let number = &text[..text.len() - 1];
    if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit()) {
        return Err(refuse());
    }
    let seconds = number
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(unit))
        .filter(|seconds| (MIN_WINDOW_S..=MAX_WINDOW_S).contains(seconds))
        .ok_or_else(refuse)?;
    Ok(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_have_a_unit_and_a_range() {
        for (text, seconds) in [("60s", 60), ("5m", 300), ("1h", 3600), ("7d", 604_800)] {
            assert_eq!(window(text).unwrap().as_secs(), seconds);
        }
        for wrong in [
            "",
            "5",
            "m",
            "59s",
            "0m",
            "8d",
            "169h",
            "-5m",
            "1.5h",
            "5M",
            "+5m",
            "5 m",
            "99999999999999999999d",
            "5ä",
        ] {
            assert!(window(wrong).is_err(), "{wrong}");
        }
    }
}
