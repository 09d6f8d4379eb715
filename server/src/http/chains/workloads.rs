//! `/api/v1/chain-workloads`: chains that ship with Hearth, with their functions.

mod shipped;

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::catalog::CatalogError;
use crate::http::App;
use crate::http::audit::Audit;
use crate::http::auth::{Allowed, Read, Write};
use crate::http::etag;
use crate::http::functions::to_the_end;
use crate::http::path::Path;
use crate::http::problem::Problem;
use crate::http::spec::{self, Fields};
use crate::model::{Meant, Page, chain};

pub use shipped::{WORKLOADS, Workload};

impl Workload {
    /// The body that creates a function.
    fn function(name: &str, code: &str) -> Value {
        json!({"name": name, "runtime": "python3", "code": {"inline": code}})
    }

    /// The body that creates the chain. Members are called as their functions, without the workload's name.
    fn chain(&self) -> Value {
        let prefix = format!("{}-", self.key);
        let member = |function: &str| function.trim_start_matches(&prefix).to_owned();
        let members = self.functions.iter();
        let members = members.map(|(name, _)| {
            let many = self
                .concurrency
                .iter()
                .find(|(function, _)| function == name);
            let concurrency = many.map_or(1, |(_, many)| *many);
            (
                member(name),
                json!({"function": name, "concurrency": concurrency}),
            )
        });
        let routes = self.routes.iter().map(|(route, hops)| {
            let hops: Vec<_> = hops.iter().map(|hop| member(hop)).collect();
            ((*route).to_owned(), json!(hops))
        });
        let edges = self.calls.iter().flat_map(|(from, to)| {
            let from = member(from);
            to.iter().map(move |to| json!([from, member(to)]))
        });
        json!({
            "name": self.key,
            "members": Value::Object(members.collect()),
            "routes": Value::Object(routes.collect()),
            "edges": edges.collect::<Vec<_>>(),
        })
    }
}

/// A workload as the API shows it.
#[derive(Debug, Serialize, ToSchema)]
pub struct WorkloadView {
    /// Its key, and the name that its chain gets.
    pub key: String,
    /// What it does.
    pub summary: String,
    /// Names that its functions get.
    pub functions: Vec<String>,
    /// How it is to be loaded.
    pub load: Value,
}

/// List the workloads that ship with Hearth: chains with their functions.
#[utoipa::path(
    get,
    path = "/api/v1/chain-workloads",
    tag = "chains",
    operation_id = "list_chain_workloads",
    security(("bearer" = ["read"])),
    responses((status = 200, description = "All workloads, in one page", body = Page<WorkloadView>)),
)]
pub async fn list(_: Allowed<Read>) -> Json<Page<WorkloadView>> {
    let view = |workload: &Workload| WorkloadView {
        key: workload.key.to_owned(),
        summary: workload.summary.to_owned(),
        functions: workload
            .functions
            .iter()
            .map(|(name, _)| (*name).to_owned())
            .collect(),
        load: serde_json::from_str(workload.load).unwrap_or_default(),
    };
    let items = WORKLOADS.iter().map(view).collect();
    Json(Page { items, next: None })
}

/// Deploy a workload: its functions, then its chain. If one of them cannot be created, none is.
#[utoipa::path(
    post,
    path = "/api/v1/chain-workloads/{key}/deploy",
    tag = "chains",
    operation_id = "deploy_chain_workload",
    security(("bearer" = ["write"])),
    params(("key" = String, Path, description = "Key of the workload")),
    responses((status = 201, description = "Deployed", body = chain::View,
        headers(("Location" = String, description = "Where the chain is")))),
    extensions(("x-tagged" = json!("make")), ("x-errors" = json!([
        "not_found", "already_exists", "import_failed", "chain_not_started", "host_exhausted", "shutting_down"
    ]))),
)]
pub async fn deploy(
    asked: Allowed<Write>,
    State(app): State<App>,
    Path(key): Path<String>,
) -> Result<Response, Problem> {
    let view = deploy_now(&app, &asked.audit, &key).await?;
    let location = format!("/api/v1/chains/{}", view.name);
    let made = etag::changed(StatusCode::CREATED, &view.revision(), &view)?;
    Ok(([(header::LOCATION, location)], made).into_response())
}

/// Deploys a workload on a task of its own, so that a client that hangs up leaves all of it or nothing.
pub async fn deploy_now(app: &App, audit: &Audit, key: &str) -> Result<chain::View, Problem> {
    let Some(workload) = WORKLOADS.iter().find(|workload| workload.key == key) else {
        let shown: String = key.chars().take(64).collect();
        return Err(Problem::not_found(format!("workload {shown:?}")));
    };
    audit.target(workload.key);
    audit.detail("a workload with its functions");
    let app = app.clone();
    to_the_end(async move {
        let mut made = Vec::new();
        let deployed = create(&app, workload, &mut made).await;
        if deployed.is_err() {
            for name in made {
                if let Err(error) = app.catalog.delete_function(name, Meant::Any).await {
                    tracing::warn!(function = name, %error, "left over from a workload");
                }
            }
        }
        deployed
    })
    .await
}

async fn create(
    app: &App,
    workload: &'static Workload,
    made: &mut Vec<&'static str>,
) -> Result<chain::View, CatalogError> {
    if app.catalog.get(workload.key).is_ok() {
        return Err(CatalogError::AlreadyExists(workload.key.to_owned()));
    }
    for (name, code) in workload.functions {
        let (spec, code) = spec::create(fields(Workload::function(name, code)))?;
        app.engine.create(spec, code).await?;
        made.push(name);
    }
    let spec = spec::create_chain(fields(workload.chain()))?;
    app.catalog.create(spec).await
}

fn fields(body: Value) -> Fields {
    match body {
        Value::Object(object) => Fields::from_json(object),
        _ => Fields::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::InvalidField;

    #[test]
    fn every_workload_obeys_the_rules() -> Result<(), InvalidField> {
        for workload in WORKLOADS {
            let chain = spec::create_chain(fields(workload.chain()))?;
            assert_eq!(
                chain.members.len(),
                workload.functions.len(),
                "{}",
                workload.key
            );
            for (name, code) in workload.functions {
                let (function, _) = spec::create(fields(Workload::function(name, code)))?;
                assert!(
                    chain
                        .members
                        .values()
                        .any(|member| member.function == function.name)
                );
            }
            let load: Value = serde_json::from_str(workload.load).expect("JSON");
            assert!(load["event"].is_object() && load["loop"].is_string());
        }
        Ok(())
    }
}
