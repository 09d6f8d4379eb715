//! `/api/v1/experiments`: the lab's experiments. [`create`], [`read`], [`change`] are for people and their programs, [`agent`] is for
//! the agents that run them.

pub mod agent;
pub mod change;
pub mod create;
pub mod read;

use super::problem::Problem;

/// The number in an address; 404 if it is none.
pub(super) fn id_of(text: &str) -> Result<i64, Problem> {
    let id = text.parse().ok().filter(|id| *id > 0);
    id.ok_or_else(|| {
        let shown: String = text.chars().take(20).collect();
        Problem::not_found(format!("experiment {shown:?}"))
    })
}
