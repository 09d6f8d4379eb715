//! Starts, one after the other: `fork()` of a template to READY, beside a plain boot of the same interpreter, interleaved.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Parser as _;
use hearth::config::Config;
use hearth::engine::runtimes::{Runtimes, UidRange};
use hearth::history::History;
use hearth::instance::{FunctionKey, Instance, Template, TemplateConfig};
use hearth::model::Network;
use hearth::sandbox::{self, Host, SandboxSpec};
use hearth::store::Store;

use crate::report::Report;
use crate::samples::Samples;
use crate::{Scale, http};

/// What the function imports, in both cases.
const IMPORTS: &str = "import json, asyncio, http.client, http.server\n";
const PYTHON: &str = "/usr/bin/python3";
/// Starts between two plain boots, so that both see the same machine.
const PER_BOOT: usize = 10;

pub fn run(scale: Scale, report: &mut Report) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(measure(scale, report))
}

async fn measure(scale: Scale, report: &mut Report) -> anyhow::Result<()> {
    let dir = tempfile::Builder::new().prefix("hearth-bench-").tempdir()?;
    let code = dir.path().join("code");
    std::fs::create_dir(&code)?;
    std::fs::write(
        code.join("main.py"),
        format!("{IMPORTS}def handler(event, context):\n    return event\n"),
    )?;
    let host = Host::start(&dir.path().join("run"), &sandbox::find_init()?)?;
    let store = Store::open(&dir.path().join("hearth.db")).await?;
    let history = History::start(store);
    let template = boot(&host, &history, &code).await?;

    let (mut forks, mut starts, mut boots) =
        (Samples::default(), Samples::default(), Samples::default());
    let key = FunctionKey::new(1);
    for round in 0..scale.starts {
        let begun = Instant::now();
        let instance = Instance::start(&template, &key, &history)
            .await
            .context("a start")?;
        starts.push(begun.elapsed());
        forks.push(instance.forked_in);
        let vitals = instance.vitals.clone();
        drop(instance);
        vitals.died().await;
        if round % PER_BOOT == 0 && boots.len() < scale.boots {
            boots.push(plain_boot()?);
        }
    }
    report.add(
        "start",
        "python: whole start of an instance, watch and log included",
        starts,
    );
    let fork = report.add(
        "start",
        "python: FORK command to READY (json, asyncio, http imported)",
        forks,
    );
    let boot = report.add("start", "python: plain boot and import of the same", boots);
    report.figure(
        "start",
        "plain boot / fork, p50",
        boot as f64 / fork.max(1) as f64,
        "×",
    );
    host.shutdown().await;
    Ok(())
}

async fn boot(host: &Host, history: &History, code: &Path) -> anyhow::Result<Arc<Template>> {
    let runtimes = Runtimes::probe(&http::runtimes_dir(), &Config::parse_from(["hearth"]));
    let spec = SandboxSpec {
        id: "bench-1".into(),
        hostname: "bench".into(),
        uid_base: UidRange::default().take(),
        code_dir: code.to_owned(),
        runtime_dir: runtimes.python.dir.clone(),
        runtime_name: runtimes.python.name,
        argv: runtimes.python.argv(128),
        forks: true,
        env: vec![("PATH".into(), "/usr/bin".into())],
        memory_bytes: 128 * 1024 * 1024,
        max_instances: 8,
        network: Network::None,
        dumpable: false,
        restore: None,
    };
    let config = TemplateConfig {
        handler: "main.handler".into(),
        function: "bench".into(),
        version: 1,
        memory_mb: 128,
        busy_poll: std::time::Duration::ZERO,
    };
    let (template, _) = Template::boot(host, spec, &config, FunctionKey::new(1), history).await?;
    let listening = template.clone();
    tokio::spawn(async move { listening.listen().await });
    Ok(template)
}

/// From `exec` to the first byte that the booted interpreter writes.
fn plain_boot() -> anyhow::Result<Duration> {
    let script = format!("{IMPORTS}print('R', flush=True)");
    let begun = Instant::now();
    let mut process = Command::new(PYTHON)
        .args(["-I", "-c", &script])
        .stdout(Stdio::piped())
        .stdin(Stdio::null())
        .spawn()?;
    process
        .stdout
        .take()
        .context("its stdout")?
        .read_exact(&mut [0])?;
    let elapsed = begun.elapsed();
    process.wait()?;
    Ok(elapsed)
}
