//! Starts by fork, one after the other, as the engine makes them: with no HTTP and no queue in the way.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Context;
use clap::Parser as _;
use hearth::config::Config;
use hearth::engine::runtimes::{RuntimeFiles, Runtimes, UidRange};
use hearth::history::History;
use hearth::instance::{FunctionKey, Instance, Template, TemplateConfig};
use hearth::model::Network;
use hearth::sandbox::{self, Host, SandboxSpec};
use hearth::store::Store;

use super::{STARTS, fork_to_ready};
use crate::results::{Document, Samples};
use crate::scale::Scale;
use crate::server::{Runtime, executable};

/// Memory of an instance, as the API's default.
const MEMORY_MB: u32 = 128;

/// Measures starts of each runtime that is there.
pub fn run(scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(measure(scale, document))
}

/// What sandboxes are made from.
struct Workshop {
    host: Host,
    history: History,
    runtimes: Runtimes,
    uids: UidRange,
}

async fn measure(scale: Scale, document: &mut Document) -> anyhow::Result<()> {
    let dir = tempfile::Builder::new().prefix("hearth-bench-").tempdir()?;
    let store = Store::open(&dir.path().join("hearth.db")).await?;
    let workshop = Workshop {
        host: Host::start(&dir.path().join("run"), &sandbox::find_init()?)?,
        history: History::start(store),
        runtimes: Runtimes::probe(
            &executable()?.with_file_name("runtimes"),
            &Config::parse_from(["hearth"]),
        ),
        uids: UidRange::default(),
    };
    for runtime in Runtime::ALL {
        let files = workshop.files(runtime);
        if let Err(reason) = files.version.as_ref().and(files.fork.as_ref()) {
            document.skip(&fork_to_ready(runtime), reason.as_str());
            continue;
        }
        let code = dir.path().join(runtime.name());
        std::fs::create_dir(&code)?;
        std::fs::write(code.join(runtime.file()), runtime.usual())?;
        let template = workshop.boot(runtime, &code).await?;
        let (mut forks, mut starts) = (Samples::default(), Samples::default());
        let key = FunctionKey::new(1);
        for _ in 0..scale.pick(1112, 10) {
            let begun = Instant::now();
            let instance = Instance::start(&template, &key, &workshop.history)
                .await
                .context("a start")?;
            starts.push(begun.elapsed());
            forks.push(instance.forked_in);
            let vitals = instance.vitals.clone();
            drop(instance);
            vitals.died().await;
        }
        document.add(STARTS, &fork_to_ready(runtime), forks);
        let whole = format!("{}: the same with watch, cgroup and log", runtime.name());
        document.add(STARTS, &whole, starts);
    }
    workshop.host.shutdown().await;
    Ok(())
}

impl Workshop {
    fn files(&self, runtime: Runtime) -> &RuntimeFiles {
        match runtime {
            Runtime::Python => &self.runtimes.python,
            Runtime::Node => &self.runtimes.node,
        }
    }

    async fn boot(&self, runtime: Runtime, code: &Path) -> anyhow::Result<Arc<Template>> {
        let uid_base = self.uids.take();
        let files = self.files(runtime);
        let spec = SandboxSpec {
            id: format!("bench-{uid_base}"),
            hostname: "bench".into(),
            uid_base,
            code_dir: code.to_owned(),
            runtime_dir: files.dir.clone(),
            runtime_name: files.name,
            argv: files.argv(MEMORY_MB),
            forks: true,
            env: vec![("PATH".into(), "/usr/bin".into())],
            memory_bytes: u64::from(MEMORY_MB) << 20,
            max_instances: 8,
            network: Network::None,
        };
        let config = TemplateConfig {
            handler: "main.handler".into(),
            function: "bench".into(),
            version: 1,
            memory_mb: MEMORY_MB,
            busy_poll: std::time::Duration::ZERO,
        };
        let key = FunctionKey::new(1);
        let (template, _) = Template::boot(&self.host, spec, &config, key, &self.history).await?;
        let listening = template.clone();
        tokio::spawn(async move { listening.listen().await });
        Ok(template)
    }
}
