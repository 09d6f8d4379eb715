//! `POST /chain-workloads/{key}`: a chain with its functions, deployed at once.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use hearth_web::pages::WorkloadCard;
use hearth_web::respond;

use crate::http::App;
use crate::http::chains::workloads::{WORKLOADS, deploy_now};
use crate::http::problem::{Problem, ProblemCode};
use crate::model::Right;

use super::chains;
use super::form::Submitted;
use super::guard::{go, sentence};

/// What can be deployed.
pub(super) fn cards() -> Vec<WorkloadCard> {
    let card = |workload: &crate::http::chains::workloads::Workload| WorkloadCard {
        key: workload.key,
        label: workload.label,
        summary: workload.summary,
        functions: workload.functions.len(),
    };
    WORKLOADS.iter().map(card).collect()
}

/// `POST /chain-workloads/{key}`.
pub async fn deploy(
    State(app): State<App>,
    Path(key): Path<String>,
    submitted: Submitted,
) -> Result<Response, Problem> {
    let viewer = &submitted.viewer;
    viewer.needs(Right::Write)?;
    match deploy_now(&app, viewer.audit(), &key).await {
        Ok(chain) => {
            let next = format!("/chains/{}?notice=created", chain.name);
            Ok(go(&submitted.headers, &next))
        }
        Err(problem) if problem.code() == ProblemCode::AlreadyExists => {
            let mut page = chains::all(&app, viewer);
            page.problem = sentence(problem.detail());
            Ok(respond::page(StatusCode::CONFLICT, &page))
        }
        Err(problem) => Err(problem),
    }
}
