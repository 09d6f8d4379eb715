//! All images of this node, under a size budget.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde::Serialize;

use super::image::{Image, Place};
use super::{Counters, CriuError, HostFingerprint, Key};
use crate::sandbox::Host;

/// Restores of an image that may fail in a row before it is discarded.
const FAILURES_MAX: u32 = 3;
/// Restores of an image in a row in which CRIU may be refused what it needs before the image is discarded: what it needs
/// may be more than its sandbox ever gets.
const SHORTAGES_MAX: u32 = 32;
/// Directory of the manifests in the data directory.
const MANIFESTS: &str = "manifests";
/// Settings of restores.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Longest restore before a start falls to a boot, of what boots faster than that.
    pub timeout: Duration,
    /// Bytes that all images together may take; 0 for none.
    pub budget: u64,
}

/// The images. Cheap to clone.
#[derive(Clone)]
pub struct Images(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub(super) place: Place,
    pub(super) host: Host,
    pub(super) settings: Settings,
    /// What images on this host depend on, or why there is no working CRIU.
    pub(super) fingerprint: Result<HostFingerprint, String>,
    pub(super) images: Mutex<HashMap<String, Arc<Image>>>,
    /// Images by function.
    counters: Mutex<HashMap<String, Arc<Counters>>>,
    /// Counts uses, which orders images by their last.
    pub(super) clock: AtomicU64,
}

impl Images {
    /// Takes in the images that an earlier server left, when they were made under the same circumstances; the others are
    /// removed, half-written ones too. `files` are what all templates run. Blocks for some milliseconds.
    ///
    /// # Errors
    /// [`CriuError::File`] if there is no directory for manifests.
    pub fn start(
        data_dir: &Path,
        host: &Host,
        settings: Settings,
        files: &[&Path],
    ) -> Result<Self, CriuError> {
        let place = Place {
            images: data_dir.join(hearth_host::IMAGES),
            manifests: data_dir.join(MANIFESTS),
        };
        prepare(&place.manifests)?;
        let criu = host.capability("criu");
        let fingerprint = match criu.map(|criu| (criu.version.as_deref(), criu.reason.clone())) {
            Some((Some(version), _)) => Ok(HostFingerprint::new(version, host.init(), files)),
            Some((None, reason)) => Err(reason.unwrap_or_default()),
            None => Err("the host process says nothing of CRIU".to_owned()),
        };
        if let Err(reason) = &fingerprint {
            tracing::info!(reason, "templates are not kept as images");
        }
        let images = Self(Arc::new(Inner {
            place,
            host: host.clone(),
            settings,
            fingerprint,
            images: Mutex::default(),
            counters: Mutex::default(),
            clock: AtomicU64::new(1),
        }));
        images.take_in();
        Ok(images)
    }

    /// Removes invalid images and lists the others.
    fn take_in(&self) {
        let place = &self.0.place;
        let host = self
            .0
            .fingerprint
            .as_ref()
            .ok()
            .map(HostFingerprint::as_str);
        for entry in fs::read_dir(&place.images).into_iter().flatten().flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let name = entry.file_name().to_string_lossy().into_owned();
            match Image::open(place, name.clone()) {
                Ok(image) if host == Some(image.manifest.host.as_str()) => {
                    self.0.images.lock().insert(name, Arc::new(image));
                }
                // Without CRIU, nothing can tell whether the other images will be usable again.
                Ok(_) if host.is_none() => {}
                Err(error) if error.is_of_host() => {
                    tracing::warn!(image = name, %error, "cannot check an image now");
                }
                _ => {
                    tracing::info!(image = name, "removing an unusable image");
                    self.0.host.order_removal(&name);
                }
            }
        }
        if let Err(error) = place.clear_manifests() {
            tracing::warn!(%error, "cannot remove manifests without images");
        }
        self.shrink(0);
    }

    /// Whether there can be any.
    ///
    /// # Errors
    /// Why not.
    pub fn available(&self) -> Result<(), &str> {
        match &self.0.fingerprint {
            Ok(_) => Ok(()),
            Err(reason) => Err(reason),
        }
    }

    /// What happened to a function's images since the server started.
    pub fn counters(&self, function: &str) -> Arc<Counters> {
        let mut counters = self.0.counters.lock();
        match counters.get(function) {
            Some(counters) => counters.clone(),
            None => counters.entry(function.to_owned()).or_default().clone(),
        }
    }

    /// A function is gone: so are its images, when this returns.
    pub async fn forget(&self, function: &str) {
        let images = self.take(|image| image.manifest.function == function);
        self.0.counters.lock().remove(function);
        for image in images {
            image.disown();
            self.0.host.remove_image(&image.name()).await;
        }
    }

    /// Longest restore of this image before a start falls to a boot: as long as a boot takes, at least as the settings
    /// say. Then a caller never waits for more than twice the boot, and a large function, whose restore takes longer
    /// than a small one's boot, is not booted for it.
    pub fn timeout(&self, image: &Image) -> Duration {
        self.0.settings.timeout.max(image.boot())
    }

    /// The key of a version's image; none where there are no images.
    pub fn key(&self, function: &str, version: u32, parts: &impl Serialize) -> Option<Key> {
        let host = self.0.fingerprint.as_ref().ok()?;
        Some(Key::new(function, version, host, parts))
    }

    /// The image with this key.
    pub fn find(&self, key: &Key) -> Option<Arc<Image>> {
        let image = self.0.images.lock().get(&key.directory()).cloned()?;
        (image.manifest.fingerprint == key.fingerprint).then_some(image)
    }

    /// A restore from this image worked.
    pub fn restored(&self, image: &Image) {
        image.failures.store(0, Ordering::Relaxed);
        image.shortages.store(0, Ordering::Relaxed);
        self.touch(image);
    }

    /// A restore from this image failed. After several in a row, or when the image is damaged, it is discarded; true
    /// then.
    pub fn failed(&self, image: &Arc<Image>, damaged: bool) -> bool {
        let useless = damaged || image.count_failure() >= FAILURES_MAX;
        if useless {
            self.drop_image(image);
        }
        useless
    }

    /// A restore from this image failed because the host refused CRIU something. That is a host error unless it
    /// persists; then the image is discarded and this returns true.
    pub fn short(&self, image: &Arc<Image>) -> bool {
        let useless = image.count_shortage() >= SHORTAGES_MAX;
        if useless {
            self.drop_image(image);
        }
        useless
    }

    /// Removes one image.
    pub fn drop_image(&self, image: &Arc<Image>) {
        self.0
            .images
            .lock()
            .retain(|_, listed| !Arc::ptr_eq(listed, image));
        self.remove(image);
    }

    pub(super) fn remove(&self, image: &Image) {
        image.disown();
        self.0.host.order_removal(&image.name());
    }
}

fn prepare(dir: &Path) -> Result<(), CriuError> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(CriuError::file(dir))
}
