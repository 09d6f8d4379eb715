//! `GET /palette`: functions by name for the command palette, best first.

use axum::Extension;
use axum::Json;
use axum::extract::{Query, State};
use serde::{Deserialize, Serialize};

use crate::http::App;
use crate::http::problem::Problem;
use crate::model::Right;

use super::session::Viewer;
use super::view;

/// Functions that are offered: more are not looked through, a longer name is typed.
const OFFERED: usize = 12;
/// Longest text that is compared: names are shorter.
const LONGEST: usize = 64;

/// `?q=…`
#[derive(Debug, Default, Deserialize)]
pub struct PaletteQuery {
    #[serde(default)]
    q: String,
}

/// A function that matches.
#[derive(Debug, Serialize)]
pub struct Found {
    name: String,
    runtime: &'static str,
    state: &'static str,
}

/// `GET /palette`.
pub async fn search(
    State(app): State<App>,
    Extension(viewer): Extension<Viewer>,
    Query(query): Query<PaletteQuery>,
) -> Result<Json<Vec<Found>>, Problem> {
    viewer.needs(Right::Read)?;
    let search: String = query
        .q
        .trim()
        .to_lowercase()
        .chars()
        .take(LONGEST)
        .collect();
    let board = app.live.board_now();
    let mut found: Vec<_> = board
        .rows
        .iter()
        .filter_map(|row| Some((score(&search, &row.summary.name)?, &row.summary)))
        .collect();
    found.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| a.1.name.cmp(&b.1.name)));
    let offered = found.into_iter().take(OFFERED).map(|(_, summary)| Found {
        name: summary.name.clone(),
        runtime: view::runtime(summary.runtime),
        state: view::state(summary.state).label,
    });
    Ok(Json(offered.collect()))
}

/// How well a name matches, less is better; None when the letters are not in it in this order. A beginning is better than
/// a word's beginning, that than the middle, that than letters apart; shorter names first.
fn score(search: &str, name: &str) -> Option<(u8, usize)> {
    let kind = match name.find(search) {
        Some(0) => 0,
        Some(at) if name.as_bytes()[at - 1] == b'-' => 1,
        Some(_) => 2,
        None => {
            let mut letters = name.chars();
            search
                .chars()
                .all(|searched| letters.any(|letter| letter == searched))
                .then_some(3)?
        }
    };
    Some((kind, name.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_begin_so_come_first() {
        let names = [
            "thumbnail",
            "image-thumb",
            "thumb",
            "bluethumb",
            "the-umbrella",
            "other",
        ];
        let mut found: Vec<_> = names
            .iter()
            .filter_map(|name| Some((score("thumb", name)?, *name)))
            .collect();
        found.sort();
        let order: Vec<_> = found.into_iter().map(|(_, name)| name).collect();
        assert_eq!(
            order,
            [
                "thumb",
                "thumbnail",
                "image-thumb",
                "bluethumb",
                "the-umbrella"
            ]
        );
        assert!(score("", "anything").is_some());
        assert_eq!(score("ba", "ab"), None);
    }
}
