//! The functions that chains have as members.

use std::collections::BTreeMap;

use super::state::Running;
use super::{Catalog, CatalogError};
use crate::engine::EngineError;
use crate::model::chain::Spec;
use crate::model::{InvalidField, Meant};

/// What the members of a chain run.
#[derive(Debug, Default)]
pub(super) struct Functions {
    /// The version of its function, by member.
    pub versions: BTreeMap<String, u32>,
    /// The same with the engine's count of the function's deployments.
    pub running: Running,
}

impl Catalog {
    /// Deletes a function that is no member of a chain's active version.
    ///
    /// # Errors
    /// [`CatalogError::FunctionInUse`], [`CatalogError::Engine`].
    pub async fn delete_function(&self, name: &str, meant: Meant) -> Result<(), CatalogError> {
        let _no_new_members = self.inner.members.write().await;
        let chains = self.chains_with(name);
        if !chains.is_empty() && self.inner.engine.id_of(name).is_some() {
            let name = name.to_owned();
            return Err(CatalogError::FunctionInUse { name, chains });
        }
        Ok(self.inner.engine.delete(name, meant).await?)
    }

    /// Chains whose active version has this function as a member, by name.
    #[must_use]
    pub fn chains_with(&self, function: &str) -> Vec<String> {
        let mut names = Vec::new();
        for chain in self.all() {
            let stored = chain.stored();
            let spec = &stored.active.spec;
            if spec
                .members
                .values()
                .any(|member| member.function == function)
            {
                names.push(spec.name.clone());
            }
        }
        names
    }

    /// What each member is to run.
    pub(super) async fn functions_of(&self, spec: &Spec) -> Result<Functions, CatalogError> {
        let engine = &self.inner.engine;
        let mut functions = Functions::default();
        for (name, member) in &spec.members {
            let function = &member.function;
            let view = match engine.get(function) {
                Ok(view) => view,
                Err(EngineError::NotFound(_)) => {
                    let rule = "must be the name of a function; there is none of this name";
                    return Err(refuse(
                        name,
                        "function",
                        format!("{function:?}"),
                        rule.into(),
                    ));
                }
                Err(other) => return Err(other.into()),
            };
            if view.copy_of.is_some() {
                let rule = "must not be a copy, which is removed when its time is over";
                let value = format!("{function:?}");
                return Err(refuse(name, "function", value, rule.into()));
            }
            if member.concurrency > view.max_concurrency {
                let rule = format!(
                    "must be at most the max_concurrency of function {function:?}, which is {}",
                    view.max_concurrency
                );
                let value = member.concurrency.to_string();
                return Err(refuse(name, "concurrency", value, rule));
            }
            let active = view.active_version;
            let version = match member.version {
                None => active,
                Some(version) if version == active => active,
                Some(version) => {
                    let versions = engine.versions(function).await?;
                    if !versions.iter().any(|known| known.version == version) {
                        let newest = versions.first().map_or(active, |known| known.version);
                        let rule = format!(
                            "must be a version of function {function:?}, whose newest is {newest}, or null for the active one"
                        );
                        return Err(refuse(name, "version", version.to_string(), rule));
                    }
                    version
                }
            };
            functions.versions.insert(name.clone(), version);
            let deployment = engine.deployment_of(function).unwrap_or_default();
            functions
                .running
                .insert(name.clone(), (version, deployment));
        }
        Ok(functions)
    }
}

fn refuse(member: &str, field: &str, value: String, rule: String) -> CatalogError {
    CatalogError::Invalid(InvalidField {
        field: format!("members.{member}.{field}"),
        value,
        rule,
    })
}
