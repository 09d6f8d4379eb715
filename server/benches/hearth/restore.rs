//! Restores, one after the other: from nothing to READY of an instance, sandbox included, beside the whole boot of the
//! same function, interleaved.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Parser as _;
use hearth::config::Config;
use hearth::criu::{Images, Settings};
use hearth::engine::runtimes::{Runtimes, UidRange};
use hearth::history::History;
use hearth::instance::{FunctionKey, Instance, Template, TemplateConfig};
use hearth::model::Network;
use hearth::sandbox::{self, Host, RestoreSource, SandboxSpec};
use hearth::store::Store;

use crate::report::Report;
use crate::samples::Samples;
use crate::{Scale, http};

/// What the function imports.
const CODE: &str = "import json, asyncio\ndef handler(event, context):\n    return event\n";
/// Restores between two boots, so that both see the same machine.
const PER_BOOT: usize = 4;

pub fn run(scale: Scale, report: &mut Report) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(measure(scale, report))
}

/// What every sandbox is made from.
struct Bench {
    host: Host,
    history: History,
    runtimes: Runtimes,
    uids: UidRange,
    code: std::path::PathBuf,
}

async fn measure(scale: Scale, report: &mut Report) -> anyhow::Result<()> {
    let dir = tempfile::Builder::new().prefix("hearth-bench-").tempdir()?;
    let code = dir.path().join("code");
    std::fs::create_dir(&code)?;
    std::fs::write(code.join("main.py"), CODE)?;
    let init = sandbox::find_init()?;
    let settings = Settings {
        criu: std::env::var_os("HEARTH_CRIU").map(Into::into),
        timeout: Duration::from_secs(1),
        budget: 1 << 30,
    };
    let images = Images::start(&dir.path().join("images"), &init, settings, &[]);
    let Some(criu) = images.criu() else {
        println!(
            "restore: left out, {}",
            images.capability().reason.unwrap_or_default()
        );
        return Ok(());
    };
    let program = criu.program.clone();
    let store = Store::open(&dir.path().join("hearth.db")).await?;
    let bench = Bench {
        host: Host::start_with_criu(&dir.path().join("run"), &init, Some(program))?,
        history: History::start(store),
        runtimes: Runtimes::probe(&http::runtimes_dir(), &Config::parse_from(["hearth"])),
        uids: UidRange::default(),
        code,
    };
    let key = images.key("bench", 1, &()).context("a key")?;
    let template = bench.boot().await?;
    let image = images
        .create(&key, &template.runtime, template.dumpable())
        .await?;
    drop(template);

    let (mut sandboxes, mut restores, mut boots) =
        (Samples::default(), Samples::default(), Samples::default());
    for round in 0..scale.restores {
        let begun = Instant::now();
        image.check()?;
        let mut spec = bench.spec();
        spec.restore = Some(RestoreSource {
            images: image.files(),
            outside: image.outside(),
        });
        let function = FunctionKey::new(1);
        let template = Template::restore(
            &bench.host,
            spec,
            Duration::ZERO,
            image.runtime(),
            &function,
            &bench.history,
        )
        .await
        .context("a restore")?;
        sandboxes.push(begun.elapsed());
        bench.start(&template).await?;
        restores.push(begun.elapsed());
        drop(template);
        if round % PER_BOOT == 0 {
            let begun = Instant::now();
            let template = bench.boot().await?;
            bench.start(&template).await?;
            boots.push(begun.elapsed());
        }
        // What the last round left is taken down meanwhile, which is no part of a start.
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    report.add(
        "restore",
        "python: sandbox and CRIU restore, up to the running template",
        sandboxes,
    );
    let restore = report.add(
        "restore",
        "python: the same, up to READY of an instance",
        restores,
    );
    let boot = report.add(
        "restore",
        "python: sandbox, boot and import of the same, up to READY",
        boots,
    );
    report.figure(
        "restore",
        "boot / restore, p50",
        boot as f64 / restore.max(1) as f64,
        "×",
    );
    report.figure(
        "restore",
        "size of the image",
        image.bytes as f64 / 1e6,
        "MB",
    );
    bench.host.shutdown().await;
    Ok(())
}

impl Bench {
    fn spec(&self) -> SandboxSpec {
        let uid_base = self.uids.take();
        SandboxSpec {
            id: format!("bench-{uid_base}"),
            hostname: "bench".into(),
            uid_base,
            code_dir: self.code.clone(),
            runtime_dir: self.runtimes.python.dir.clone(),
            runtime_name: self.runtimes.python.name,
            argv: self.runtimes.python.argv(128),
            forks: true,
            env: vec![("PATH".into(), "/usr/bin".into())],
            memory_bytes: 128 * 1024 * 1024,
            max_instances: 8,
            network: Network::None,
            dumpable: true,
            restore: None,
        }
    }

    async fn boot(&self) -> anyhow::Result<Arc<Template>> {
        let config = TemplateConfig {
            handler: "main.handler".into(),
            function: "bench".into(),
            version: 1,
            memory_mb: 128,
            busy_poll: Duration::ZERO,
        };
        let function = FunctionKey::new(1);
        let (template, _) =
            Template::boot(&self.host, self.spec(), &config, function, &self.history).await?;
        Ok(template)
    }

    async fn start(&self, template: &Arc<Template>) -> anyhow::Result<()> {
        let instance = Instance::start(template, &FunctionKey::new(1), &self.history)
            .await
            .context("a start")?;
        drop(instance);
        Ok(())
    }
}
