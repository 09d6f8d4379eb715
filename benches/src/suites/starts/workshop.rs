//! Creates sandboxes without a server, from the engine's own parts.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Parser as _;
use hearth::config::Config;
use hearth::engine;
use hearth::history::History;
use hearth::instance::{FunctionKey, Logs, Template, TemplateConfig};
use hearth::runtimes::{RuntimeFiles, Runtimes, UidRange};
use hearth::sandbox::{self, Host, PrewarmedSpec, SandboxSpec};
use hearth::store::Store;
use hearth_host::{CriuChoice, PortSettings, Settings};
use hearth_init::fields::Fields as _;
use tempfile::TempDir;

use crate::server::{Runtime, executable};

/// Memory of an instance, as the API's default.
const MEMORY_MB: u32 = 128;

/// Longest wait for something that takes milliseconds.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A sandbox host, a store of logs and the runtimes, in a directory of their own.
pub struct Workshop {
    /// Where everything lies.
    pub dir: TempDir,
    /// Makes the sandboxes.
    pub host: Host,
    /// Where the log lines go.
    pub logs: Logs,
    /// What functions are run with.
    pub runtimes: Runtimes,
    uids: UidRange,
}

impl Workshop {
    /// Opens it; with this CRIU its sandboxes can be restored from images.
    pub async fn open(criu: CriuChoice) -> anyhow::Result<Self> {
        let dir = tempfile::Builder::new().prefix("hearth-bench-").tempdir()?;
        let store = Store::open(&dir.path().join("hearth.db")).await?;
        let runtimes = executable()?.with_file_name("runtimes");
        std::fs::create_dir(dir.path().join("code"))?;
        Ok(Self {
            host: Host::start(
                Settings {
                    data_dir: dir.path().to_owned(),
                    init: sandbox::find_init()?,
                    runtimes: runtimes.clone(),
                    criu,
                    gateway: hearth_gateway::Settings::default().to_bytes(),
                    ports: PortSettings::default(),
                    server: None,
                },
                executable()?,
            )?,
            logs: engine::log_sink(&History::start(store)),
            runtimes: Runtimes::probe(&runtimes, &Config::parse_from(["hearth"])),
            uids: UidRange::default(),
            dir,
        })
    }

    /// The files of a runtime.
    pub fn files(&self, runtime: Runtime) -> &RuntimeFiles {
        match runtime {
            Runtime::Python => &self.runtimes.python,
            Runtime::Node => &self.runtimes.node,
        }
    }

    /// Writes a function and says where it lies.
    pub fn write(&self, runtime: Runtime, code: &str) -> anyhow::Result<PathBuf> {
        let dir = self.dir.path().join("code").join(runtime.name());
        std::fs::create_dir(&dir)?;
        std::fs::write(dir.join(runtime.file()), code)?;
        Ok(dir)
    }

    /// A sandbox for the code in a directory.
    pub fn spec(&self, runtime: Runtime, code: &Path) -> SandboxSpec {
        let uid_base = self.uids.take();
        let files = self.files(runtime);
        SandboxSpec {
            id: format!("bench-{uid_base}"),
            hostname: "bench".into(),
            uid_base,
            code_dir: code.to_owned(),
            runtime_name: files.name,
            argv: files.argv("main.handler", MEMORY_MB),
            forks: true,
            env: vec![("PATH".into(), "/usr/bin".into())],
            memory_bytes: u64::from(MEMORY_MB) << 20,
            max_instances: 8,
            network: None,
            trust: None,
            processor: None,
            dumpable: false,
            restore: None,
        }
    }

    /// Has a sandbox pre-warmed, and waits until it is ready.
    pub async fn stand_by(&self, runtime: Runtime) -> anyhow::Result<()> {
        self.host.keep_prewarmed(&PrewarmedSpec {
            uid_base: self.uids.take(),
            runtime_name: self.files(runtime).name,
        });
        let waiting = Instant::now();
        while self.host.prewarmed().ready() == 0 {
            anyhow::ensure!(waiting.elapsed() < TIMEOUT, "no sandbox was pre-warmed");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        Ok(())
    }

    /// Boots a template in a sandbox.
    pub async fn boot(&self, spec: SandboxSpec) -> anyhow::Result<Arc<Template>> {
        let config = TemplateConfig {
            handler: "main.handler".into(),
            function: "bench".into(),
            version: 1,
            memory_mb: MEMORY_MB,
            body: hearth::model::BodyForm::Base64,
            busy_poll: Duration::ZERO,
        };
        let key = FunctionKey::new(1);
        let (template, _) =
            Template::boot(&self.host, spec, &config, key, &self.logs, None).await?;
        listen(&template);
        Ok(template)
    }
}

/// Hears what a template says until it is retired, as the server does: without word of an instance's end, the template
/// would be kept for a moment after it, and taken down in the middle of a later start.
pub fn listen(template: &Arc<Template>) {
    let template = template.clone();
    tokio::spawn(async move {
        tokio::select! {
            () = template.listen() => {}
            // Holding on to it would keep its sandbox alive.
            () = template.retired() => {}
        }
    });
}
