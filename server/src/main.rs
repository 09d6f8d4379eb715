//! `hearth`: two processes from one binary. Without a subcommand it is the host process, which does what only root can and
//! starts the other one; that one, `hearth serve`, wires up the parts of the server, serves until told to stop, drains.

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Parser;
use hearth::accounts::Accounts;
use hearth::announce::Announcement;
use hearth::config::{Config, InvalidSetting, Switch};
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
use hearth_host::process::server::Server;
use hearth_host::process::{self, DataDir, SERVE, ServerStart, ServerUser};
use tokio::signal::unix::{SignalKind, signal};

/// What a shell adds to the number of the signal that ended a program.
const SIGNALLED: u8 = 128;

/// A request makes dozens of short-lived allocations and often frees them on another core, which this does for less than
/// glibc's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    if arguments.get(1).is_some_and(|first| first == SERVE) {
        arguments.remove(1);
        return serve_main(&arguments);
    }
    let config = Config::parse_from(&arguments);
    if let Err(error) = config.check() {
        return fail(&error.to_string());
    }
    start_logging(&config);
    match be_host(&config, arguments) {
        Ok(code) => code,
        Err(error) => fail(&format!("{error:#}")),
    }
}

/// The server. While it has one thread it drops its privileges; then it starts the others.
fn serve_main(arguments: &[OsString]) -> ExitCode {
    let server = match Server::begin() {
        Ok(server) => server,
        Err(error) => return fail(&error.to_string()),
    };
    // The host process has checked them.
    let config = Config::parse_from(arguments);
    start_logging(&config);
    // The last programs that it starts.
    let runtimes = Runtimes::probe(&server.runtimes, &config);
    let limits = match Limits::for_this_process().lowered(&config.test_limits) {
        Ok(limits) => limits,
        Err(error) => return fail(&format!("HEARTH_TEST_LIMITS: {error}")),
    };
    Limits::set(limits);
    if let Err(error) = server.lock_down() {
        return fail(&error.to_string());
    }
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
    match runtime.block_on(run(config, server, runtimes)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&format!("{error:#}")),
    }
}

fn start_logging(config: &Config) {
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::new(&config.log))
        .with_writer(std::io::stderr)
        .with_ansi(colours())
        .init();
}

/// The host process: takes what only root can take, starts the server, and ends with it.
fn be_host(config: &Config, mut arguments: Vec<OsString>) -> anyhow::Result<ExitCode> {
    let user = ServerUser::find(config.user()).map_err(|rule| InvalidSetting {
        setting: "HEARTH_USER",
        value: config.user.clone().unwrap_or_default(),
        rule,
    })?;
    // Both processes hold descriptors of each sandbox; the server inherits it.
    Limits::for_this_process();
    let init = config
        .init
        .clone()
        .map_or_else(sandbox::find_init, Ok)
        .context("HEARTH_INIT")?;
    let probed = hearth_host::Probed::kernel(&init)?;
    let data_dir = DataDir::prepare(&config.data_dir, user)
        .with_context(|| format!("HEARTH_DATA_DIR={}", config.data_dir.display()))?;
    let listener = listen("HEARTH_LISTEN", config.listen)?;
    let for_functions = config
        .functions_listen()?
        .map(|address| listen("HEARTH_FUNCTIONS_LISTEN", address))
        .transpose()?;
    let runtimes = config
        .runtimes
        .clone()
        .map_or_else(find_runtimes, Ok)
        .context("HEARTH_RUNTIMES")?;
    let settings = hearth_host::Settings {
        data_dir: data_dir.path.clone(),
        init,
        runtimes: runtimes.clone(),
        uids: hearth_host::UIDS,
        criu: config.criu_choice(),
        server: Some(user),
    };
    let host = hearth_host::Host::open(settings, probed)?;
    arguments.remove(0);
    let start = ServerStart {
        arguments,
        user,
        listeners: (listener, for_functions),
        data_dir,
        runtimes,
    };
    let Some(status) = process::run(host, start)? else {
        return Ok(ExitCode::from(SIGNALLED + 15));
    };
    let code = match status.signal() {
        Some(signal) => SIGNALLED + u8::try_from(signal).unwrap_or_default(),
        None => u8::try_from(status.code().unwrap_or(1)).unwrap_or(1),
    };
    Ok(ExitCode::from(code))
}

fn listen(setting: &str, address: SocketAddr) -> anyhow::Result<OwnedFd> {
    let listener = TcpListener::bind(address).with_context(|| {
        format!("{setting}={address}: cannot listen there; choose another address")
    })?;
    listener.set_nonblocking(true)?;
    Ok(listener.into())
}

/// A listener that the host process has made.
fn adopt(listener: OwnedFd) -> std::io::Result<tokio::net::TcpListener> {
    tokio::net::TcpListener::from_std(listener.into())
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

async fn run(config: Config, server: Server, runtimes: Runtimes) -> anyhow::Result<()> {
    let Server {
        socket,
        listener,
        functions_listener,
        data_dir,
        host_data_dir,
        runtimes: runtimes_dir,
        lock: _lock,
    } = server;
    let listener = adopt(listener)?;
    let address = listener.local_addr()?;
    let for_functions = functions_listener.map(adopt).transpose()?;
    let functions_address = for_functions
        .as_ref()
        .map(tokio::net::TcpListener::local_addr)
        .transpose()?;
    let host = Host::connect(socket, &data_dir).context("the host process")?;
    let images = Images::start(
        &data_dir,
        &host,
        criu::Settings {
            timeout: Duration::from_millis(config.restore_timeout_ms),
            budget: config.image_budget_mb << 20,
        },
        &[&runtimes_dir, &config.python],
    )?;

    let store = Store::open(&data_dir.join("hearth.db"))
        .await
        .context("the database")?;
    let token = admin::ensure_token(&data_dir, config.admin_token(), &store).await?;
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
    let engine = Engine::start(&data_dir, store.clone(), history.clone(), resources).await?;
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
        live: Sampler::start(engine.clone(), history.clone(), data_dir.clone()),
        history,
        accounts,
        uploads: Uploads::new(&data_dir),
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
        token_file: &host_data_dir.join("admin-token"),
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
