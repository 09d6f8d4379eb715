//! Instances that somebody keeps for himself, as a chain does for its members: they are in no pool, serve no request of the
//! function's own, and end when they are dropped. What they take of the host is bounded by whoever keeps them.

use std::sync::Arc;

use super::boot_failure::BootFailure;
use super::deployment::Deployment;
use crate::instance::{Instance, StartError, Template, Way};

impl Deployment {
    /// Starts an instance for the caller to keep, by the cheapest way there is. A template that turns out to be dead is brought
    /// up again, once.
    ///
    /// # Errors
    /// [`BootFailure`], with the traceback if the code does not import.
    pub async fn start_held(self: &Arc<Self>) -> Result<Instance, Arc<BootFailure>> {
        if self.becomes() {
            return self.start_held_whole().await;
        }
        let (template, _) = self.template().await?;
        // The first boot has shown whether it can fork.
        if self.becomes() {
            return self.start_held_whole().await;
        }
        match self.hold(&template, Way::Fork).await {
            Ok(instance) => return Ok(instance),
            Err(error @ StartError::Host(_)) => return Err(Arc::new(error.into())),
            Err(error) => {
                tracing::warn!(function = %self.name, version = self.version(), %error, "an instance of a chain did not start");
            }
        }
        self.slot.forget(&template);
        self.blame_image(&template, "an instance did not start");
        let (template, _) = self.template().await?;
        self.hold(&template, Way::Fork)
            .await
            .map_err(|error| Arc::new(error.into()))
    }

    /// One that is a template of its own, with the threads of its import.
    async fn start_held_whole(self: &Arc<Self>) -> Result<Instance, Arc<BootFailure>> {
        let template = self.slot.bring_up(self, || true).await?;
        let template = template.ok_or_else(|| Arc::new(BootFailure::withdrawn()))?;
        self.hold(&template, Way::Become)
            .await
            .map_err(|error| Arc::new(error.into()))
    }

    async fn hold(&self, template: &Arc<Template>, way: Way) -> Result<Instance, StartError> {
        let _place = self.resources.starts.enter(self.id, || {}).await;
        let started = Instance::start(template, way, &self.function, &self.resources.logs).await;
        if let Err(StartError::Host(error)) = &started {
            self.resources.host_errors.note(error);
        }
        let (instance, follow_up) = started?;
        follow_up.begin();
        Ok(instance)
    }
}
