//! The image of a deployment's template: created in the background, restored on demand, discarded if it does not work.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use tokio::sync::Semaphore;

use super::boot::{boot_apart, sandbox_spec};
use super::deployment::Deployment;
use super::resources::Resources;
use crate::criu::{CriuError, Image, Key, Source};
use crate::host_error::{HostError, tells_of_shortage};
use crate::instance::{BootError, Template};
use crate::model::{ImageView, StartKind};
use crate::sandbox::RestoreSource;

/// Minimum time after a boot: a function that was just deployed is likely to be called.
const AFTER_BOOT: Duration = Duration::from_secs(1);
/// Interval between checks whether the function is idle.
const WHILE_BUSY: Duration = Duration::from_millis(500);
/// No function may have been called for this long before an image is created.
const LULL: Duration = Duration::from_secs(1);
/// Longest wait for that. A server that is never idle creates images all the same, with a low CPU weight.
const LULL_MAX: Duration = Duration::from_secs(10);
/// Pause while the host is short of something: everything else is more important than an image.
const AFTER_SHORTAGE: Duration = Duration::from_secs(5);
/// Times in a row that an image is postponed. Each takes a boot, and what CRIU reports as a shortage may be the
/// function's fault.
const SHORTAGES_MAX: u32 = 12;
/// Most memory mappings of a template for an image. CRIU takes about 2 ms for each, and images are created one at a
/// time: 20,000 would block all others for 40 s. A Python process with asyncio and ssl has about 100, a library some
/// five for each of its shared objects.
const MAPPINGS_MAX: u64 = 4096;
/// Images are created one at a time: each costs a boot and some ten milliseconds of CRIU.
static ONE: Semaphore = Semaphore::const_new(1);

impl Deployment {
    /// The image of this version, if it exists.
    pub(super) fn image(&self) -> Option<Arc<Image>> {
        self.resources.images.find(&self.image_key()?)
    }

    /// Size of the version's image in bytes, if there is one.
    pub fn image_bytes(&self) -> Option<u64> {
        self.image().map(|image| image.bytes)
    }

    /// The image and what happened to the function's images, for the API.
    pub fn image_view(&self) -> ImageView {
        let counters = self.resources.images.counters(&self.name);
        let totals = counters.totals();
        ImageView {
            bytes: self.image_bytes(),
            restores: totals.restores,
            restore_failures: totals.restore_failures,
            dumps: totals.dumps,
            dump_failures: totals.dump_failures,
            note: counters.note(),
        }
    }

    /// Removes the version's image: its memory or disk space is needed more elsewhere.
    pub fn drop_image(&self) {
        self.resources
            .images
            .discard(&self.name, Some(self.version()));
    }

    /// Notes that the template restored from this image is unusable.
    pub(super) fn blame_image(&self, template: &Template, why: &str) {
        if template.start_kind == StartKind::Restore
            && let Some(image) = self.image()
        {
            self.restore_failed(&image, why, true);
        }
    }

    fn restore_failed(&self, image: &Arc<Image>, why: &str, damaged: bool) {
        let Resources { images, .. } = &*self.resources;
        images.counters(&self.name).restore_failed(why);
        let discarded = match tells_of_shortage(why) {
            // A refusal by the host says nothing about the image.
            true => images.short(image),
            false => images.failed(image, damaged),
        };
        tracing::warn!(function = %self.name, version = self.version(), why, discarded, "a template was not restored; it is booted");
    }

    /// Creates the image from a second sandbox, booted for it: a template that has forked cannot be dumped without its
    /// instances, and no start may wait for a dump. Only while nobody calls, unless `at_once`.
    async fn make_image(&self, at_once: bool) -> Making {
        let images = &self.resources.images;
        let Some(key) = self.image_key() else {
            return Making::Over;
        };
        // It is never closed.
        let Ok(_one) = ONE.acquire().await else {
            return Making::Over;
        };
        if images.find(&key).is_some() {
            return Making::Over;
        }
        if !at_once && self.resources.traffic.quiet_for() < LULL {
            return Making::InTheWay;
        }
        let counters = images.counters(&self.name);
        let begun = Instant::now();
        let why = match boot_apart(self, true).await {
            Ok((template, _)) => {
                self.note_threads(&template);
                let made = self.dump(&key, &template, begun.elapsed()).await;
                template.retire();
                match made {
                    // Deleted or replaced in the meantime: nobody will look for it, and its memory contains secrets.
                    Ok(image) if self.is_retired() => {
                        images.drop_image(&image);
                        return Making::Over;
                    }
                    Ok(image) => {
                        counters.dumped();
                        self.was_imaged();
                        tracing::debug!(function = %self.name, version = self.version(), bytes = image.bytes, "made an image");
                        return Making::Over;
                    }
                    Err(error) if error.is_of_host() => return self.put_off(&error),
                    Err(error) => error.to_string(),
                }
            }
            Err(BootError::Host(error)) => return self.put_off(&error),
            Err(error) => error.to_string(),
        };
        counters.dump_failed(&why);
        tracing::warn!(function = %self.name, version = self.version(), why, "no image of a template");
        Making::Over
    }

    /// Dumps a template that was booted for it, within this time, unless it would take longer.
    async fn dump(
        &self,
        key: &Key,
        template: &Arc<Template>,
        boot: Duration,
    ) -> Result<Arc<Image>, CriuError> {
        let images = &self.resources.images;
        let source = Source {
            sandbox: template.dumpable(),
            runtime: &template.runtime,
            boot,
            mappings_max: MAPPINGS_MAX,
        };
        images.create(key, source).await
    }

    /// The host lacked resources for an image, which says nothing about the function.
    fn put_off(&self, error: &impl std::fmt::Display) -> Making {
        self.resources.host_errors.note(error);
        Making::PutOff(error.to_string())
    }
}

/// Outcome of an attempt to create an image.
enum Making {
    /// It exists, or there will be none.
    Over,
    /// Somebody is calling.
    InTheWay,
    /// Try again later: the host lacked this.
    PutOff(String),
}

/// Creates the image of a version whose template was booted, once nobody calls.
pub(super) fn make_later(deployment: &Arc<Deployment>) {
    if deployment.image_key().is_none() || deployment.image().is_some() {
        return;
    }
    let deployment: Weak<Deployment> = Arc::downgrade(deployment);
    tokio::spawn(async move {
        let (begun, mut pause, mut shortages) = (Instant::now(), AFTER_BOOT, 0);
        loop {
            tokio::time::sleep(pause).await;
            let Some(deployment) = deployment.upgrade() else {
                return;
            };
            if deployment.is_retired() {
                return;
            }
            let counts = deployment.counts();
            if counts.busy + counts.starting + counts.queued > 0 {
                pause = WHILE_BUSY;
                continue;
            }
            // Each start of a version that cannot fork waits for the image: without one, it is a boot.
            let at_once = deployment.becomes() || begun.elapsed() >= LULL_MAX;
            match deployment.make_image(at_once).await {
                Making::Over => return,
                Making::InTheWay => pause = WHILE_BUSY,
                Making::PutOff(why) if shortages == SHORTAGES_MAX => {
                    let counters = deployment.resources.images.counters(&deployment.name);
                    counters.dump_failed(&why);
                    return;
                }
                Making::PutOff(_) => {
                    shortages += 1;
                    pause = AFTER_SHORTAGE;
                }
            }
        }
    });
}

/// Restores the template from its image; nothing if there is none or it fails or takes too long. The caller holds a
/// place at the gate.
///
/// # Errors
/// The host lacked resources for a sandbox, and would lack them for a boot, too.
pub(super) async fn restore(deployment: &Deployment) -> Result<Option<Arc<Template>>, HostError> {
    let Some(image) = deployment.image() else {
        return Ok(None);
    };
    let Resources {
        images,
        host,
        logs,
        busy_poll,
        ..
    } = &*deployment.resources;
    let checked = image.clone();
    let check = tokio::task::spawn_blocking(move || checked.check());
    if let Ok(Err(error)) = check.await {
        if error.is_of_host() {
            return Err(HostError::new(error));
        }
        deployment.restore_failed(&image, &error.to_string(), true);
        return Ok(None);
    }
    let begun = Instant::now();
    let way_out = deployment.way_out();
    let mut spec = match sandbox_spec(deployment, way_out.as_ref()) {
        Ok(spec) => spec,
        Err(BootError::Host(error)) => return Err(error),
        // A boot fails by the same.
        Err(_) => return Ok(None),
    };
    spec.restore = Some(RestoreSource {
        image: image.name(),
        limit: images.timeout(&image),
    });
    // After the timeout, the sandbox is destroyed, with CRIU in it.
    let restore = Template::restore(
        host,
        spec,
        *busy_poll,
        image.runtime(),
        &deployment.function,
        logs,
        way_out.as_ref(),
    );
    match restore.await {
        Ok(template) => {
            images.restored(&image);
            images.counters(&deployment.name).restored();
            let took = begun.elapsed();
            let mut keep_value = deployment.keep_value.lock();
            keep_value.brought_up(StartKind::Restore, took);
            drop(keep_value);
            tracing::debug!(function = %deployment.name, version = deployment.version(), ?took, "template restored");
            Ok(Some(template))
        }
        Err(BootError::Host(error)) => Err(error),
        Err(error) => {
            deployment.restore_failed(&image, &error.to_string(), false);
            Ok(None)
        }
    }
}
