//! What each changing route does, as the audit log calls it.

mod api;
mod console;

use axum::http::Method;

use super::actions::Known;

/// Method, route, action.
pub(super) type Route = (Method, &'static str, Known);

/// All of them.
pub(super) fn all() -> impl Iterator<Item = &'static Route> {
    api::ROUTES.iter().chain(console::ROUTES)
}
