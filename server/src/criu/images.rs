//! All images of this node, under a size budget.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde::Serialize;

use super::image::{self, Image, Made};
use super::{Counters, Criu, CriuError, HostFingerprint, Key, dump};
use crate::sandbox::{Capability, Dumpable};

/// Restores of an image that may fail in a row before it is discarded.
const FAILURES_MAX: u32 = 3;
/// Restores of an image in a row in which CRIU may be refused what it needs before the image is discarded: what it needs
/// may be more than its sandbox ever gets.
const SHORTAGES_MAX: u32 = 32;
/// Prefix of directories of images that are being made. No function's name begins like that.
const STAGING: &str = ".new-";

/// Settings of restores.
#[derive(Debug, Clone)]
pub struct Settings {
    /// `HEARTH_CRIU`.
    pub criu: Option<PathBuf>,
    /// Longest restore before a start falls to a boot, of what boots faster than that.
    pub timeout: Duration,
    /// Bytes that all images together may take; 0 for none.
    pub budget: u64,
}

/// The images. Cheap to clone.
#[derive(Clone)]
pub struct Images(pub(super) Arc<Inner>);

pub(super) struct Inner {
    dir: PathBuf,
    init: PathBuf,
    pub(super) settings: Settings,
    /// A working CRIU and what images depend on here, or why there is none.
    criu: Result<(Criu, HostFingerprint), String>,
    pub(super) images: Mutex<HashMap<String, Arc<Image>>>,
    /// By function.
    counters: Mutex<HashMap<String, Arc<Counters>>>,
    /// Counts uses, which orders images by their last.
    pub(super) clock: AtomicU64,
}

impl Images {
    /// Looks for CRIU, makes the directory, and takes in the images that an earlier server left, when they were made
    /// under the same circumstances; the others are removed, half-written ones too. `files` are what all templates run.
    /// Blocks for some ten milliseconds.
    pub fn start(dir: &Path, init: &Path, settings: Settings, files: &[&Path]) -> Self {
        let criu = prepare(dir)
            .and_then(|()| {
                if settings.budget == 0 {
                    let reason = "HEARTH_IMAGE_BUDGET_MB=0 leaves no room for images";
                    return Err(CriuError::Unavailable(reason.into()));
                }
                Criu::find(init, dir, settings.criu.as_deref())
            })
            .map(|criu| {
                let host = HostFingerprint::new(&criu, files);
                (criu, host)
            })
            .map_err(|error| error.to_string());
        if let Err(reason) = &criu {
            tracing::info!(reason, "templates are not kept as images");
        }
        let images = Self(Arc::new(Inner {
            dir: dir.to_owned(),
            init: init.to_owned(),
            settings,
            criu,
            images: Mutex::default(),
            counters: Mutex::default(),
            clock: AtomicU64::new(1),
        }));
        images.take_in();
        images
    }

    /// Removes what does not count and lists what does.
    fn take_in(&self) {
        let host = self.0.criu.as_ref().ok().map(|(_, host)| host.as_str());
        for entry in fs::read_dir(&self.0.dir).into_iter().flatten().flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let path = entry.path();
            match Image::open(path.clone()) {
                Ok(image) if host == Some(image.manifest.host.as_str()) => {
                    let name = entry.file_name().to_string_lossy().into_owned();
                    self.0.images.lock().insert(name, Arc::new(image));
                }
                // Without CRIU, nothing can tell whether the other images will be usable again.
                Ok(_) if host.is_none() => {}
                Err(error) if error.is_of_host() => {
                    tracing::warn!(image = %path.display(), %error, "cannot check an image now");
                }
                _ => {
                    tracing::info!(image = %path.display(), "removing an unusable image");
                    if let Err(error) = image::remove(&path) {
                        tracing::warn!(image = %path.display(), %error, "cannot remove an image");
                    }
                }
            }
        }
        self.shrink(0);
    }

    /// For `GET /api/v1/node`.
    pub fn capability(&self) -> Capability {
        let found = self.0.criu.as_ref();
        Capability {
            name: "criu",
            available: found.is_ok(),
            reason: found.err().cloned(),
            version: found.ok().map(|(criu, _)| criu.version.clone()),
        }
    }

    /// The CRIU that works here.
    pub fn criu(&self) -> Option<&Criu> {
        self.0.criu.as_ref().ok().map(|(criu, _)| criu)
    }

    /// What was done with a function's images since the server started.
    pub fn counters(&self, function: &str) -> Arc<Counters> {
        let mut counters = self.0.counters.lock();
        match counters.get(function) {
            Some(counters) => counters.clone(),
            None => counters.entry(function.to_owned()).or_default().clone(),
        }
    }

    /// A function is gone: so are its images.
    pub fn forget(&self, function: &str) {
        self.discard(function, None);
        self.0.counters.lock().remove(function);
    }

    /// Longest restore of this image before a start falls to a boot: as long as a boot takes, at least as the settings
    /// say. Then a caller never waits for more than twice the boot, and a large function, whose restore takes longer
    /// than a small one's boot, is not booted for it.
    pub fn timeout(&self, image: &Image) -> Duration {
        self.0.settings.timeout.max(image.boot())
    }

    /// The key of a version's image; none where there are no images.
    pub fn key(&self, function: &str, version: u32, parts: &impl Serialize) -> Option<Key> {
        let (_, host) = self.0.criu.as_ref().ok()?;
        Some(Key::new(function, version, host, parts))
    }

    /// The image with this key.
    pub fn find(&self, key: &Key) -> Option<Arc<Image>> {
        let image = self.0.images.lock().get(&key.directory()).cloned()?;
        (image.manifest.fingerprint == key.fingerprint).then_some(image)
    }

    /// Dumps the template of this sandbox, which took `boot` to be there and is left stopped, and keeps the image.
    ///
    /// # Errors
    /// [`CriuError`]; nothing of a failed dump is left.
    pub async fn create(
        &self,
        key: &Key,
        runtime: &str,
        boot: Duration,
        sandbox: &Dumpable,
    ) -> Result<Arc<Image>, CriuError> {
        let (criu, host) = self
            .0
            .criu
            .as_ref()
            .map_err(|reason| CriuError::Unavailable(reason.clone()))?;
        let number = self.0.clock.fetch_add(1, Ordering::Relaxed);
        let staging = Staging(self.0.dir.join(format!("{STAGING}{number}")));
        let files = image::stage(&staging.0)?;
        dump::dump(criu, &self.0.init, sandbox, &files, &staging.0).await?;
        let inner = self.0.clone();
        let (key, host, runtime) = (key.clone(), host.clone(), runtime.to_owned());
        let images = self.clone();
        let done = tokio::task::spawn_blocking(move || {
            let log = staging.0.join(hearth_init::criu::DUMP_LOG);
            fs::remove_file(&log).map_err(CriuError::file(&log))?;
            let bytes = image::stored(&files)?;
            let budget = inner.settings.budget;
            if bytes > budget {
                return Err(CriuError::TooLarge { bytes, budget });
            }
            // Older images of the version were made from something else.
            images.discard(&key.function, Some(key.version));
            images.shrink(bytes);
            let made = Made {
                host: host.as_str(),
                runtime: &runtime,
                boot,
            };
            let image = Image::complete(&staging.0, &inner.dir, &key, &made)?;
            let image = Arc::new(image);
            images.touch(&image);
            inner.images.lock().insert(key.directory(), image.clone());
            Ok(image)
        });
        done.await
            .map_err(|error| CriuError::Dump(error.to_string()))?
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
        image.remove();
    }
}

/// The directory of an image that is being made; removed unless it was moved to its place.
struct Staging(PathBuf);

impl Drop for Staging {
    fn drop(&mut self) {
        // What cannot be removed now is, at the next start.
        let _ = image::remove(&self.0);
    }
}

fn prepare(dir: &Path) -> Result<(), CriuError> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .and_then(|()| fs::set_permissions(dir, fs::Permissions::from_mode(0o700)))
        .map_err(CriuError::file(dir))
}
