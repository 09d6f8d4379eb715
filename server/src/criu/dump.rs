//! Creates an image: has a template dumped, and writes its manifest.

use std::sync::Arc;
use std::time::Duration;

use super::image::{Image, Made};
use super::{CriuError, Images, Key};
use crate::sandbox::{Dumpable, Host, SandboxError};

/// The step of a dump that is refused for the number of the template's memory mappings.
const MAPPINGS_STEP: &str = "mappings";

/// What an image is created from.
pub struct Source<'a> {
    /// The sandbox of the template.
    pub sandbox: Dumpable,
    /// Version of the language's runtime.
    pub runtime: &'a str,
    /// How long the template took to come up.
    pub boot: Duration,
    /// Most memory mappings that it may have.
    pub mappings_max: u64,
}

impl Images {
    /// Dumps a template, which is left stopped, and keeps the image.
    ///
    /// # Errors
    /// [`CriuError`]; nothing of a failed dump is left.
    pub async fn create(&self, key: &Key, source: Source<'_>) -> Result<Arc<Image>, CriuError> {
        let fingerprint = self.0.fingerprint.as_ref();
        let host = fingerprint.map_err(|reason| CriuError::Unavailable(reason.clone()))?;
        // Older images of the version were made from something else.
        self.discard(&key.function, Some(key.version));
        let name = key.directory();
        let dumped = source.sandbox.dump(&name, source.mappings_max).await;
        dumped.map_err(|error| match error {
            SandboxError::Step { step, .. } if step == MAPPINGS_STEP => {
                CriuError::TooManyMappings {
                    max: source.mappings_max,
                }
            }
            SandboxError::Step { detail, .. } => CriuError::Dump(detail),
            other => CriuError::Dump(other.to_string()),
        })?;
        let dumped = Dumped {
            host: &self.0.host,
            name: Some(name.clone()),
        };
        let (key, host, runtime) = (key.clone(), host.clone(), source.runtime.to_owned());
        let (images, boot) = (self.clone(), source.boot);
        let done = tokio::task::spawn_blocking(move || {
            let bytes = images.0.place.stored(&name)?;
            let budget = images.0.settings.budget;
            if bytes > budget {
                return Err(CriuError::TooLarge { bytes, budget });
            }
            images.shrink(bytes);
            let made = Made {
                host: host.as_str(),
                runtime: &runtime,
                boot,
            };
            let image = Arc::new(Image::complete(&images.0.place, &key, &made)?);
            images.touch(&image);
            images.0.images.lock().insert(name, image.clone());
            Ok(image)
        });
        let image = done
            .await
            .map_err(|error| CriuError::Dump(error.to_string()))??;
        dumped.keep();
        Ok(image)
    }
}

/// Files that the host process has placed; removed again unless they become an image.
struct Dumped<'a> {
    host: &'a Host,
    name: Option<String>,
}

impl Dumped<'_> {
    fn keep(mut self) {
        self.name = None;
    }
}

impl Drop for Dumped<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            self.host.order_removal(name);
        }
    }
}
