//! Which images stay: those that are wanted and whole, within the budget.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Images;
use super::image::Image;

impl Images {
    /// Removes the images of a function's version, or of all its versions.
    pub fn discard(&self, function: &str, version: Option<u32>) {
        let keep = |image: &Image| {
            image.manifest.function != function
                || version.is_some_and(|version| image.manifest.version != version)
        };
        self.retain(keep);
    }

    /// Removes the images that are not wanted.
    pub fn retain(&self, keep: impl Fn(&Image) -> bool) {
        for image in self.take(|image| !keep(image)) {
            self.remove(&image);
        }
    }

    /// Takes images off the list.
    pub(super) fn take(&self, unwanted: impl Fn(&Image) -> bool) -> Vec<Arc<Image>> {
        let mut taken = Vec::new();
        self.0.images.lock().retain(|_, image| {
            let is_unwanted = unwanted(image);
            if is_unwanted {
                taken.push(image.clone());
            }
            !is_unwanted
        });
        taken
    }

    /// Which function's version an image is of.
    pub fn owner(image: &Image) -> (&str, u32) {
        (&image.manifest.function, image.manifest.version)
    }

    /// Checks all images, off the path of any request, so that the first restore of each finds it checked and in memory.
    /// Blocking.
    pub fn check_all(&self) {
        let all: Vec<_> = self.0.images.lock().values().cloned().collect();
        for image in all {
            if let Err(error) = image.check() {
                if error.is_of_host() {
                    // It will be looked at when it is restored.
                    continue;
                }
                tracing::warn!(function = image.manifest.function, %error, "discarding an image");
                self.drop_image(&image);
            }
        }
    }

    /// Bytes of all images.
    pub fn bytes(&self) -> u64 {
        self.0.images.lock().values().map(|image| image.bytes).sum()
    }

    /// Number of images.
    pub fn count(&self) -> usize {
        self.0.images.lock().len()
    }

    pub(super) fn touch(&self, image: &Image) {
        let now = self.0.clock.fetch_add(1, Ordering::Relaxed);
        image.used.store(now, Ordering::Relaxed);
    }

    /// Makes room for `bytes`: images go in the order of their last use, the oldest first.
    pub(super) fn shrink(&self, bytes: u64) {
        loop {
            let oldest = {
                let images = self.0.images.lock();
                let total: u64 = images.values().map(|image| image.bytes).sum();
                if total.saturating_add(bytes) <= self.0.settings.budget {
                    return;
                }
                let used =
                    |image: &&Arc<Image>| (image.used.load(Ordering::Relaxed), image.created_at());
                images.values().min_by_key(used).cloned()
            };
            let Some(oldest) = oldest else { return };
            tracing::info!(
                function = oldest.manifest.function,
                bytes = oldest.bytes,
                "dropping an image for the budget"
            );
            self.drop_image(&oldest);
        }
    }
}
