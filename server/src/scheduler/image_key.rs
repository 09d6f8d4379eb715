//! What an image of a template depends on: with another key it is another template's.

use serde::Serialize;

use super::Deployment;
use crate::criu::Key;
use crate::model::{FunctionSpec, SecretBinding, Start};

/// What a template depends on, as far as the version decides.
#[derive(Serialize)]
struct Parts<'a> {
    spec: &'a FunctionSpec,
    code: String,
    runtime: String,
    argv: Vec<String>,
    /// Values of secrets in its environment, by their revisions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    secrets: Vec<Option<i64>>,
}

impl Deployment {
    /// Key of this version's image; none if it gets none.
    pub(super) fn image_key(&self) -> Option<Key> {
        let runtime = self.resources.runtimes.get(self.spec.runtime);
        // A template that cannot fork has waiting instances, each with descriptors of the server's. And a version that
        // asks for boots must not be restored.
        let never = self.is_imageless() || self.spec.start == Start::Boot;
        if runtime.becomes.is_some() || runtime.fork.is_err() || never {
            return None;
        }
        let parts = Parts {
            spec: &self.image_spec(),
            // Packages are named after their content.
            code: self.package.path().display().to_string(),
            runtime: runtime.version.clone().unwrap_or_default(),
            argv: runtime.argv(&self.spec.handler, self.spec.memory_mb),
            secrets: self.secret_revisions(),
        };
        self.resources
            .images
            .key(&self.name, self.version(), &parts)
    }

    /// Which values its environment has of secrets.
    fn secret_revisions(&self) -> Vec<Option<i64>> {
        let given = self.spec.secrets.iter();
        let in_environment = given.filter(|given| given.env().is_some());
        let secrets = &self.resources.secrets;
        let revision = |given: &SecretBinding| secrets.revision(given.secret());
        in_environment.map(revision).collect()
    }
}
