//! Secrets: creation, replacement, deletion, and the functions that use them.

use std::sync::Arc;

use zeroize::Zeroizing;

use super::registry::Function;
use super::{Engine, EngineError};
use crate::model::{
    FunctionSpec, InvalidField, NotRestarted, SecretBinding, SecretChange, SecretView,
};
use crate::scheduler::TemplateStatus;
use crate::store::{StoredFunction, StoredSecret};

impl Engine {
    /// All secrets, by name.
    pub fn secrets(&self) -> Vec<SecretView> {
        let all = self.inner.resources.secrets.all();
        all.into_iter()
            .map(|secret| self.secret_view(secret))
            .collect()
    }

    /// Sets a secret's value, creating the secret if needed; true if it is new. Returns once the functions that have it in
    /// their environment run with the new value.
    ///
    /// # Errors
    /// [`EngineError::Invalid`] if the value does not fit where a function uses it; other [`EngineError`]s. Nothing was
    /// changed.
    pub async fn put_secret(
        &self,
        name: &str,
        value: Zeroizing<String>,
    ) -> Result<(bool, SecretChange), EngineError> {
        let name = name.to_owned();
        self.change(|engine| async move { engine.put_secret_now(&name, &value).await })
            .await
    }

    /// Deletes a secret that no active version uses.
    ///
    /// # Errors
    /// [`EngineError::NotFound`], [`EngineError::SecretInUse`], [`EngineError::Internal`].
    pub async fn delete_secret(&self, name: &str) -> Result<(), EngineError> {
        let name = name.to_owned();
        self.change(|engine| async move {
            let functions = engine.users_of(&name);
            if !functions.is_empty() {
                return Err(EngineError::SecretInUse { name, functions });
            }
            match engine.inner.resources.secrets.delete(&name).await? {
                true => Ok(()),
                false => Err(missing(&name)),
            }
        })
        .await
    }

    async fn put_secret_now(
        self,
        name: &str,
        value: &str,
    ) -> Result<(bool, SecretChange), EngineError> {
        let functions = self.inner.registry.all();
        let bindings = |function: &Function| -> Vec<SecretBinding> {
            let all = function.stored().active.spec.secrets.clone();
            all.into_iter()
                .filter(|binding| binding.secret() == name)
                .collect()
        };
        for function in &functions {
            if let Some(binding) = bindings(function)
                .iter()
                .find(|binding| !binding.takes(value))
            {
                let user = &function.stored().active.spec.name;
                return Err(unfit("value", &format!("function \"{user}\" uses"), binding).into());
            }
        }
        let secrets = &self.inner.resources.secrets;
        let put = secrets.put(name, value).await;
        let is_new = put.map_err(|error| EngineError::Internal(error.to_string()))?;
        let (mut restarted, mut not_restarted) = (Vec::new(), Vec::new());
        for function in functions {
            let in_environment = |binding: &SecretBinding| binding.env().is_some();
            if !bindings(&function).iter().any(in_environment) {
                continue;
            }
            let name = function.stored().active.spec.name.clone();
            match self.restart(&name, &function).await {
                Ok(()) => restarted.push(name),
                Err(error) => {
                    tracing::warn!(function = name, %error, "not started with a secret's new value");
                    not_restarted.push(NotRestarted {
                        function: name,
                        reason: error.to_string(),
                    });
                }
            }
        }
        let stored = secrets.get(name).ok_or_else(|| missing(name))?;
        let change = SecretChange {
            secret: self.secret_view(stored),
            restarted,
            not_restarted,
        };
        Ok((is_new, change))
    }

    /// Restarts the active version of a function: a new template boots and takes over, and running requests finish where
    /// they are. A function without a running template stays asleep.
    async fn restart(&self, name: &str, function: &Arc<Function>) -> Result<(), EngineError> {
        let _change = function.change.lock().await;
        if self.still_there(name, function).is_err() {
            return Ok(());
        }
        let former = function.active();
        let sleeps = matches!(
            former.template_status(),
            TemplateStatus::Asleep | TemplateStatus::Failed(_)
        );
        if sleeps && former.counts().live() == 0 {
            return Ok(());
        }
        let stored = function.stored();
        let active = &stored.active;
        let deployment = self.deployment(
            function.key.clone(),
            active.version,
            &active.spec,
            self.inner.packages.hold(&active.code_sha256),
            Some(&former),
            former.threads(),
        );
        let same = async { Ok(StoredFunction::clone(&stored)) };
        self.take_over(function, &deployment, same).await
    }

    /// Refuses bindings to secrets that do not exist or do not fit.
    pub(super) fn check_secrets(&self, spec: &FunctionSpec) -> Result<(), InvalidField> {
        let secrets = &self.inner.resources.secrets;
        for (index, binding) in spec.secrets.iter().enumerate() {
            let place = |field: &str| format!("secrets[{index}].{field}");
            let invalid = |field: &str, value: &str, rule: String| InvalidField {
                field: place(field),
                value: format!("\"{value}\""),
                rule,
            };
            let name = binding.secret();
            let Some(value) = secrets.value(name) else {
                let rule = "must be the name of a secret; there is none of this name, which \
                            PUT /api/v1/secrets/{name} would make";
                return Err(invalid("secret", name, rule.to_owned()));
            };
            if !binding.takes(&value) {
                return Err(unfit(&place("secret"), "this uses", binding));
            }
            if let Some(variable) = binding.env()
                && spec.env.contains_key(variable)
            {
                let rule = "must not be a variable of \"env\", too".to_owned();
                return Err(invalid("env", variable, rule));
            }
            if let Some((host, _)) = binding.brokered()
                && !spec
                    .network
                    .policy()
                    .is_some_and(|policy| host.is_allowed_by(policy))
            {
                let rule = format!(
                    "must be allowed by \"network\", such as {{\"allow\": [\"{}:{}\"]}}",
                    host.name, host.port
                );
                return Err(invalid("host", &host.to_string(), rule));
            }
        }
        Ok(())
    }

    fn secret_view(&self, stored: StoredSecret) -> SecretView {
        SecretView {
            functions: self.users_of(&stored.name),
            name: stored.name,
            created_at: stored.created_at,
            updated_at: stored.updated_at,
            last_used_at: stored.last_used_at,
        }
    }

    /// Functions whose active version uses a secret.
    fn users_of(&self, secret: &str) -> Vec<String> {
        let functions = self.inner.registry.all();
        let uses = |function: &Arc<Function>| {
            let stored = function.stored();
            let spec = &stored.active.spec;
            let is_used = spec
                .secrets
                .iter()
                .any(|binding| binding.secret() == secret);
            is_used.then(|| spec.name.clone())
        };
        functions.iter().filter_map(uses).collect()
    }
}

fn missing(name: &str) -> EngineError {
    let shown: String = name.chars().take(64).collect();
    EngineError::NotFound(format!("secret \"{shown}\""))
}

/// A value that does not fit where it is used. The message does not contain it.
fn unfit(field: &str, who: &str, binding: &SecretBinding) -> InvalidField {
    let where_to = match binding.brokered() {
        Some((host, header)) => format!("the header {header} of requests to {host}"),
        None => "an environment variable".to_owned(),
    };
    InvalidField {
        field: field.to_owned(),
        value: "\"(hidden)\"".to_owned(),
        rule: format!(
            "{who} it in {where_to}, which cannot hold control characters or characters outside of ASCII"
        ),
    }
}
