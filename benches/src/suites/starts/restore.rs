//! Restores, one after the other: from nothing to READY of an instance, sandbox included, with and without a pre-warmed
//! sandbox, beside a full boot of the same function, interleaved. The pre-warmed sandbox is replaced in the pause after
//! each restore, as the server does when no start is under way.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use hearth::criu::{Image, Images, Settings, Source};
use hearth::instance::{FunctionKey, Instance, Template, Way};
use hearth::sandbox::{RestoreSource, SandboxSpec};
use hearth_host::CriuChoice;

use super::workshop::{self, Workshop};
use super::{RESTORE_ANEW, RESTORE_TO_READY, RESTORES};
use crate::results::{Document, Samples};
use crate::scale::Scale;
use crate::server::Runtime;

/// Restores between two boots, so that both see the same machine.
const PER_BOOT: usize = 4;
/// Far more than the template has.
const MAPPINGS_MAX: u64 = 4096;
/// None of them shall fail by its slowness alone.
const RESTORE_LIMIT: Duration = Duration::from_secs(1);
/// The kernel takes the rest of a sandbox down meanwhile.
const PAUSE: Duration = Duration::from_millis(30);

/// Measures restores of a Python template, where CRIU works.
pub async fn run(scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    let criu = match std::env::var_os("HEARTH_CRIU") {
        Some(path) => CriuChoice::Named(path.into()),
        None => CriuChoice::Detect,
    };
    let workshop = Workshop::open(criu).await?;
    let criu = workshop.host.capability("criu").context("a capability")?;
    if !criu.available {
        let reason = criu.reason.clone().unwrap_or_default();
        document.skip(RESTORE_TO_READY, reason);
        return Ok(());
    }
    let settings = Settings {
        timeout: RESTORE_LIMIT,
        budget: 1 << 30,
    };
    let images = Images::start(workshop.dir.path(), &workshop.host, settings, &[])?;
    let runtime = Runtime::Python;
    let code = workshop.write(runtime, runtime.usual())?;
    let mut spec = workshop.spec(runtime, &code);
    spec.dumpable = true;
    let key = images.key("bench", 1, &()).context("a key")?;
    let begun = Instant::now();
    let template = workshop.boot(spec).await?;
    let source = Source {
        sandbox: template.dumpable(),
        runtime: &template.runtime,
        boot: begun.elapsed(),
        mappings_max: MAPPINGS_MAX,
    };
    let image = images.create(&key, source).await?;
    template.retire();
    drop(template);

    let mut sandboxes = Samples::default();
    let (mut ahead, mut anew) = (Samples::default(), Samples::default());
    let mut boots = Samples::default();
    for round in 0..scale.pick(111, 4) {
        workshop.stand_by(runtime).await?;
        tokio::time::sleep(PAUSE).await;
        let used = workshop.host.prewarmed().used();
        let begun = Instant::now();
        let template = restored(&workshop, workshop.spec(runtime, &code), &image)
            .await
            .context("a restore")?;
        sandboxes.push(begun.elapsed());
        let instance = start(&workshop, &template).await?;
        ahead.push(begun.elapsed());
        anyhow::ensure!(
            workshop.host.prewarmed().used() == used + 1,
            "no pre-warmed sandbox"
        );
        end(instance, template).await;

        let begun = Instant::now();
        let template = restored(&workshop, workshop.spec(runtime, &code), &image)
            .await
            .context("a restore without a pre-warmed sandbox")?;
        let instance = start(&workshop, &template).await?;
        anew.push(begun.elapsed());
        end(instance, template).await;
        if round % PER_BOOT == 0 {
            let begun = Instant::now();
            let template = workshop.boot(workshop.spec(runtime, &code)).await?;
            let instance = start(&workshop, &template).await?;
            boots.push(begun.elapsed());
            end(instance, template).await;
        }
    }
    document.add(
        RESTORES,
        "python3: CRIU restore up to the running template, pre-warmed sandbox",
        sandboxes,
    );
    document.add(RESTORES, RESTORE_TO_READY, ahead);
    document.add(RESTORES, RESTORE_ANEW, anew);
    document.add(
        RESTORES,
        "python3: sandbox, boot and import up to READY of an instance",
        boots,
    );
    let megabytes = image.bytes as f64 / 1e6;
    document.figure(RESTORES, "python3: size of the image", megabytes, "MB");
    workshop.host.shutdown().await;
    Ok(())
}

async fn restored(
    workshop: &Workshop,
    mut spec: SandboxSpec,
    image: &Image,
) -> anyhow::Result<Arc<Template>> {
    image.check()?;
    spec.restore = Some(RestoreSource {
        image: image.name(),
        limit: RESTORE_LIMIT,
    });
    let key = FunctionKey::new(1);
    let logs = &workshop.logs;
    let template = Template::restore(
        &workshop.host,
        spec,
        Duration::ZERO,
        image.runtime(),
        &key,
        logs,
        None,
    );
    let template = template.await?;
    workshop::listen(&template);
    Ok(template)
}

async fn start(workshop: &Workshop, template: &Arc<Template>) -> anyhow::Result<Instance> {
    let key = FunctionKey::new(1);
    let started = Instance::start(template, Way::Fork, &key, &workshop.logs).await;
    let (instance, follow_up) = started.context("a start")?;
    follow_up.begin();
    Ok(instance)
}

/// Takes everything down that a round has started, which is no part of the next one's starts. The instance's end has to
/// be heard before the template is retired, which is kept for another quarter of a second otherwise.
async fn end(instance: Instance, template: Arc<Template>) {
    let vitals = instance.vitals.clone();
    drop(instance);
    vitals.died().await;
    template.retire();
    drop(template);
    tokio::time::sleep(PAUSE).await;
}
