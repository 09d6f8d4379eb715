//! Hearth's console: pages rendered from view models.
//!
//! This crate knows no engine. Each page is a plain struct in [`pages`] with a template of the same name in
//! `/templates`; the server fills the struct and passes it to [`respond::page`] or [`respond::partial`]. A page
//! includes the partials that htmx later swaps, so that the same markup serves a reload and a swap.
//! The assets in `/static` are compiled in and served by [`assets::router`].

#![forbid(unsafe_code)]

pub mod assets;
pub mod chrome;
mod compress;
pub mod format;
pub mod graph;
pub mod json;
pub mod live;
pub mod pages;
pub mod respond;
pub mod samples;
pub mod sparkline;
pub mod stage_bar;
pub mod starters;
pub mod waterfall;
