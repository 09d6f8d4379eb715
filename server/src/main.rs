//! The `hearth` server: reads its settings, wires up the parts, serves until told to stop, drains.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Parser;
use hearth::accounts::Accounts;
use hearth::announce::Announcement;
use hearth::config::{Config, Switch};
use hearth::criu::{self, Images};
use hearth::engine::{self, Engine};
use hearth::history::History;
use hearth::http::edge::{self, Edge, Hosts, Proxies};
use hearth::http::{App, Front, Parts};
use hearth::limits::{CUT_OFF, Limits};
use hearth::live::Sampler;
use hearth::retention::Retainer;
use hearth::runtimes::{Runtimes, UidRange};
use hearth::sandbox::{self, Host};
use hearth::scheduler::policy::controllers::Controllers;
use hearth::scheduler::{self, Resources, StartGate};
use hearth::serve::Connections;
use hearth::store::Store;
use hearth::uploads::Uploads;
use hearth::{admin, serve, system};
use hearth_abi::time_slice::take_short_time_slices;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// A request makes dozens of short-lived allocations and often frees them on another core, which this does for less than
/// glibc's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let config = Config::parse();
    if let Err(error) = config.check() {
        return fail(&error.to_string());
    }
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::new(&config.log))
        .with_writer(std::io::stderr)
        .with_ansi(colours())
        .init();
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .on_thread_start(|| {
            // Where the kernel does not let it, it works all the same.
            let _ = take_short_time_slices();
        })
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return fail(&format!("cannot start the runtime: {error}")),
    };
    match runtime.block_on(run(config)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&format!("{error:#}")),
    }
}

/// Whether to colour log lines: only on a terminal, and unless NO_COLOR is set (no-color.org).
fn colours() -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    std::io::stderr().is_terminal() && !refused
}

/// One line, as api.md asks, on stderr.
fn fail(reason: &str) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "hearth: {}", reason.replace('\n', " "));
    ExitCode::FAILURE
}

async fn run(config: Config) -> anyhow::Result<()> {
    let limits = Limits::for_this_process().lowered(&config.test_limits);
    Limits::set(
        limits
            .map_err(anyhow::Error::msg)
            .context("HEARTH_TEST_LIMITS")?,
    );
    let listener = TcpListener::bind(config.listen).await.with_context(|| {
        format!(
            "HEARTH_LISTEN={}: cannot listen there; choose another address",
            config.listen
        )
    })?;
    let address = listener.local_addr()?;
    let for_functions = match config.functions_listen()? {
        None => None,
        Some(address) => Some(TcpListener::bind(address).await.with_context(|| {
            format!(
                "HEARTH_FUNCTIONS_LISTEN={address}: cannot listen there; choose another address"
            )
        })?),
    };
    let functions_address = for_functions
        .as_ref()
        .map(TcpListener::local_addr)
        .transpose()?;
    let data_dir = admin::prepare_data_dir(&config.data_dir)
        .with_context(|| format!("HEARTH_DATA_DIR={}", config.data_dir.display()))?;
    let init = config
        .init
        .clone()
        .map_or_else(sandbox::find_init, Ok)
        .context("HEARTH_INIT")?;
    let runtimes_dir = config
        .runtimes
        .clone()
        .map_or_else(find_runtimes, Ok)
        .context("HEARTH_RUNTIMES")?;
    let runtimes = Runtimes::probe(&runtimes_dir, &config);
    let host = Host::start(hearth_host::Settings {
        data_dir: data_dir.path.clone(),
        init,
        runtimes: runtimes_dir.clone(),
        uids: hearth_host::UIDS,
        criu: config.criu_choice(),
        readers: None,
    })?;
    let images = Images::start(
        &data_dir.path,
        &host,
        criu::Settings {
            timeout: Duration::from_millis(config.restore_timeout_ms),
            budget: config.image_budget_mb << 20,
        },
        &[&runtimes_dir, &config.python],
    )?;

    let store = Store::open(&data_dir.path.join("hearth.db"))
        .await
        .context("the database")?;
    let token = admin::ensure_token(&data_dir.path, config.admin_token(), &store).await?;
    let history = History::start(store.clone());
    let resources = Resources {
        host_errors: hearth::host_error::HostErrors::default(),
        host,
        logs: engine::log_sink(&history),
        runtimes,
        uids: UidRange::default(),
        starts: StartGate::default(),
        boots: StartGate::default(),
        restores: StartGate::default(),
        memory_budget: config.memory_budget(),
        busy_poll: config.busy_poll(),
        images,
        prefork: config.prefork == Switch::On,
        controllers: Controllers::without(&config.test_without)
            .map_err(anyhow::Error::msg)
            .context("HEARTH_TEST_WITHOUT")?,
        prewarm: config.prewarm == Switch::On,
        cores: system::cores(),
        traffic: scheduler::Traffic::default(),
    };
    let engine = Engine::start(&data_dir.path, store.clone(), history.clone(), resources).await?;
    let accounts = Arc::new(Accounts::default());
    let setup_code = match store.has_users().await? {
        true => None,
        false => Some(
            accounts
                .setup
                .open()
                .context("cannot read random bytes for the set-up code")?,
        ),
    };
    let functions_host = config.functions_host()?;
    let app = App::from(Parts {
        engine: engine.clone(),
        store: store.clone(),
        retention: Retainer::start(store.clone(), history.clone()).await?,
        live: Sampler::start(engine.clone(), history.clone(), data_dir.path.clone()),
        history,
        accounts,
        uploads: Uploads::new(&data_dir.path),
        edge: Edge {
            hosts: Hosts::new(
                edge::own_names().into_iter().chain(config.hosts()?),
                functions_host.clone(),
            ),
            proxies: Proxies::new(config.trusted_proxies()?),
            functions_port: functions_address.map(|address| address.port()),
        },
        started: Instant::now(),
    });

    let announcement = Announcement {
        listening: address,
        functions_host: functions_host.as_deref(),
        functions_listening: functions_address,
        setup_code: setup_code.as_deref(),
        new_token: token.as_ref().map(|token| token.secret.as_str()),
        token_file: &data_dir.path.join("admin-token"),
    };
    let mut out = std::io::stdout().lock();
    write!(out, "{announcement}")?;
    out.flush()?;
    drop(out);
    let mut listeners = vec![(listener, Front::new(app.clone()))];
    listeners.extend(for_functions.map(|listener| (listener, Front::for_functions(app))));
    let connections = Connections::new(Limits::get());
    serve::serve(listeners, connections.clone(), stop_signal()?).await;
    drain(
        &engine,
        &connections,
        Duration::from_secs(config.drain_s.into()),
    )
    .await;
    store.close().await;
    tracing::info!("stopped");
    Ok(())
}

/// Lets what runs finish, `limit` long in all; cuts off the rest, and sees to it that the history says so.
async fn drain(engine: &Engine, connections: &Connections, limit: Duration) {
    let deadline = Instant::now() + limit;
    engine.begin_drain();
    connections.drain();
    let cut_off = engine.finish_drain(deadline).await;
    if cut_off > 0 {
        let seconds = limit.as_secs();
        tracing::warn!(cut_off, "aborted requests still running after {seconds} s");
    }
    // Lets aborted requests get their error response, for a moment.
    connections
        .gone(deadline.max(Instant::now() + CUT_OFF / 2))
        .await;
    connections.cut();
    engine.shut_down(Instant::now() + CUT_OFF).await;
}

/// The runtimes' files lie beside the executable.
fn find_runtimes() -> anyhow::Result<std::path::PathBuf> {
    let executable = std::env::current_exe()?;
    let beside = executable.parent().unwrap_or(Path::new("/"));
    [
        beside.join("runtimes"),
        beside.join("../lib/hearth/runtimes"),
        beside.join("../runtimes"),
    ]
    .into_iter()
    .find(|dir| dir.is_dir())
    .with_context(|| {
        format!(
            "no directory `runtimes` beside {}; build it with `make build`",
            executable.display()
        )
    })
}

/// Completes at SIGTERM or ctrl-C.
fn stop_signal() -> std::io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("stopping: no new requests; running ones may finish");
    })
}
