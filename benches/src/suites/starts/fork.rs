//! Starts by fork, one after the other, inside the engine: without HTTP or queue.

use std::time::{Duration, Instant};

use anyhow::Context;
use hearth::instance::{FunctionKey, Instance, Way};
use hearth_host::CriuChoice;

use super::workshop::Workshop;
use super::{STARTS, fork_to_ready};
use crate::results::{Document, Samples};
use crate::scale::Scale;
use crate::server::Runtime;

/// A pre-forked instance is made after ten quiet milliseconds, and a template does before what it does once.
const PREFORK_COMES: Duration = Duration::from_millis(200);

/// Measures starts of each runtime that is there.
pub async fn run(scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    let workshop = Workshop::open(CriuChoice::Never("not used".into())).await?;
    for runtime in Runtime::ALL {
        let files = workshop.files(runtime);
        if let Err(reason) = files.version.as_ref().and(files.fork.as_ref()) {
            document.skip(&fork_to_ready(runtime), reason.as_str());
            continue;
        }
        let code = workshop.write(runtime, runtime.usual())?;
        let template = workshop.boot(workshop.spec(runtime, &code)).await?;
        let (mut forks, mut starts) = (Samples::default(), Samples::default());
        let key = FunctionKey::new(1);
        // As the server's templates do that nobody calls for a moment.
        template.keep_preforked(&key, &workshop.logs);
        tokio::time::sleep(PREFORK_COMES).await;
        template.end_preforked();
        for _ in 0..scale.pick(1112, 10) {
            let begun = Instant::now();
            let started = Instance::start(&template, Way::Fork, &key, &workshop.logs).await;
            let (instance, follow_up) = started.context("a start")?;
            follow_up.begin();
            starts.push(begun.elapsed());
            forks.push(instance.forked_in);
            let vitals = instance.vitals.clone();
            drop(instance);
            vitals.died().await;
        }
        document.add(STARTS, &fork_to_ready(runtime), forks);
        template.retire();
        let whole = format!("{}: the same with watch, cgroup and log", runtime.name());
        document.add(STARTS, &whole, starts);
    }
    workshop.host.shutdown().await;
    Ok(())
}
