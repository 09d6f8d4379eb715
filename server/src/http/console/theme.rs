//! `POST /theme`: the theme switch for browsers without scripts.

use std::time::Duration;

use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Redirect, Response};
use hearth_web::chrome::Theme;

use crate::http::cookies;
use crate::http::problem::Problem;

use super::form::Submitted;
use super::session::local_path;

/// How long the choice is remembered: a year.
const REMEMBERED: Duration = Duration::from_hours(365 * 24);

/// Remembers the choice and goes back to the page it was made on.
pub async fn submit(submitted: Submitted) -> Result<Response, Problem> {
    let theme = Theme::named(submitted.form.text("theme"));
    let cookie = cookies::set(Theme::COOKIE, theme.name(), REMEMBERED, &submitted.headers)?;
    let back = Redirect::to(&came_from(&submitted.headers));
    Ok(([(header::SET_COOKIE, cookie)], back).into_response())
}

/// Path of the page that sent the form.
fn came_from(headers: &HeaderMap) -> String {
    let path = headers
        .get(header::REFERER)
        .and_then(|referer| referer.to_str().ok())
        .and_then(|url| url.split_once("://"))
        .and_then(|(_, rest)| rest.find('/').map(|slash| &rest[slash..]));
    local_path(path.unwrap_or("/")).to_owned()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn the_way_back_stays_here() {
        let with = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::REFERER, HeaderValue::from_static(value));
            came_from(&headers)
        };
        assert_eq!(with("http://h:1/functions?q=a"), "/functions?q=a");
        assert_eq!(with("http://h:1//evil.example/"), "/");
        assert_eq!(with("nonsense"), "/");
        assert_eq!(came_from(&HeaderMap::new()), "/");
    }
}
