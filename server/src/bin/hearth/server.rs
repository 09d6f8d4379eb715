//! The server, `hearth serve`: wires up its parts, serves until stopped, drains.

use std::ffi::OsString;
use std::io::Write;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Parser;
use hearth::accounts::Accounts;
use hearth::announce::Announcement;
use hearth::catalog::Catalog;
use hearth::config::{Brokers, Config, Switch};
use hearth::criu::{self, Images};
use hearth::engine::{self, Engine};
use hearth::history::History;
use hearth::http::edge::{self, Edge, Hosts, Proxies};
use hearth::http::{App, Front, Parts};
use hearth::ingress::Ingress;
use hearth::lab::Lab;
use hearth::limits::Limits;
use hearth::live::Sampler;
use hearth::ports::PortTable;
use hearth::retention::Retainer;
use hearth::runtimes::{Runtimes, UidRange};
use hearth::sandbox::Host;
use hearth::scheduler::policy::controllers::Controllers;
use hearth::scheduler::{self, Resources, StartGate};
use hearth::secrets::Secrets;
use hearth::serve::Connections;
use hearth::store::Store;
use hearth::tail::Tail;
use hearth::triggers::{Reach, Triggers};
use hearth::uploads::Uploads;
use hearth::{admin, network, serve, system, turns};
use hearth_abi::time_slice::take_short_time_slices_alone;
use hearth_host::process::server::Server;
use tokio_util::sync::CancellationToken;

use crate::drain::{drain, stop_signal};
use crate::{fail, start_logging};

/// While it has one thread it drops its privileges; then it starts the others.
pub(crate) fn main(arguments: &[OsString]) -> ExitCode {
    let mut server = match Server::begin() {
        Ok(server) => server,
        Err(error) => return fail(&error.to_string()),
    };
    // The host process has checked them.
    let config = Config::parse_from(arguments);
    start_logging(&config.log);
    // Often a link to what is hidden from it soon.
    let resolvers = match config.network_resolvers() {
        Ok(named) if !named.is_empty() => named,
        _ => network::resolver::of_host(Path::new("/etc/resolv.conf")),
    };
    // The last programs that it starts.
    let runtimes = Runtimes::probe(&server.runtimes, &config)
        .with_paths(|text| server.known_as.with_known_names(text));
    let limits = match Limits::for_this_process().lowered(&config.test_limits) {
        Ok(limits) => limits,
        Err(error) => return fail(&format!("HEARTH_TEST_LIMITS: {error}")),
    };
    Limits::set(limits);
    // They may be where it cannot look later.
    let trust = network::Trust::of_machine();
    let brokers = match Brokers::received(server.brokers.take()) {
        Ok(brokers) => brokers,
        Err(error) => return fail(&format!("HEARTH_MQTT_BROKERS: {error}")),
    };
    let resolvers_ports = resolvers.iter().map(SocketAddr::port);
    let ports: Vec<u16> = resolvers_ports.chain(brokers.ports()).collect();
    if let Err(error) = server.lock_down(&ports) {
        return fail(&error.to_string());
    }
    let known_as = server.known_as.clone();
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .on_thread_start(|| {
            // Where the kernel refuses, it works all the same. Threads that this one starts get neither slices nor priority.
            let _ = take_short_time_slices_alone();
        })
        .on_thread_unpark(turns::begin)
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => return fail(&format!("cannot start the runtime: {error}")),
    };
    let reach = Reach::new(brokers, resolvers.clone(), trust);
    match runtime.block_on(run(config, server, runtimes, resolvers, reach)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&known_as.with_known_names(&format!("{error:#}"))),
    }
}

/// A listener that the host process has made.
fn adopt(listener: OwnedFd) -> std::io::Result<tokio::net::TcpListener> {
    tokio::net::TcpListener::from_std(listener.into())
}

async fn run(
    config: Config,
    server: Server,
    runtimes: Runtimes,
    resolvers: Vec<SocketAddr>,
    reach: Reach,
) -> anyhow::Result<()> {
    let Server {
        socket,
        gateway,
        listener,
        functions_listener,
        ingress,
        brokers: _,
        data_dir,
        runtimes: runtimes_dir,
        known_as,
        lock: _lock,
    } = server;
    let listener = adopt(listener)?;
    let address = listener.local_addr()?;
    let for_functions = functions_listener.map(adopt).transpose()?;
    let functions_address = for_functions
        .as_ref()
        .map(tokio::net::TcpListener::local_addr)
        .transpose()?;
    let host = Host::connect(socket, gateway, &data_dir).context("the host process")?;
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
    let secrets = Secrets::open(&data_dir, store.clone()).await?;
    let token = admin::ensure_token(&data_dir, config.admin_token(), &store).await?;
    let history = History::start(store.clone());
    let open = config.network_allow_private()?;
    let (ingress, steered) = match ingress {
        Some(socket) => Ingress::take_over(&socket, config.trigger_address()?)?,
        None => (Ingress::without("it was not prepared"), Vec::new()),
    };
    ingress.load_lists(&store).await?;
    let range = config.trigger_ports()?;
    let brokers = reach.brokers.clone();
    let (ports, begun) = PortTable::start(host.clone(), ingress, range, brokers);
    let resources = Resources {
        ports,
        network: network::Node::start(resolvers, open, host.take_reports(), reach.trust.clone()),
        secrets: secrets.clone(),
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
    let catalog = Catalog::start(store.clone(), engine.clone(), history.clone())
        .await
        .context("the chains")?;
    let app = App::from(Parts {
        engine: engine.clone(),
        catalog: catalog.clone(),
        lab: Lab::start(store.clone(), engine.clone(), catalog.clone())
            .await
            .context("the experiments")?,
        store: store.clone(),
        retention: Retainer::start(store.clone(), history.clone()).await?,
        tail: Tail::start(engine.clone(), history.clone(), store.clone()),
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
        token_file: &known_as.data_dir.join("admin-token"),
    };
    let mut out = std::io::stdout().lock();
    write!(out, "{announcement}")?;
    out.flush()?;
    drop(out);
    let mut listeners = vec![(listener, Front::new(app.clone()))];
    listeners.extend(for_functions.map(|listener| (listener, Front::for_functions(app.clone()))));
    let connections = Connections::new(Limits::get());
    let stopping = CancellationToken::new();
    let triggers = Triggers {
        engine: engine.clone(),
        app,
        connections: connections.clone(),
        reach: reach.clone(),
        stopping: stopping.clone(),
    };
    tokio::spawn(triggers.run(begun, steered));
    // On the runtime's own threads, which have precedence while calls come: this one has none, and a connection that it accepts has to be
    // handed on to them.
    let served = serve::serve(listeners, connections.clone(), stop_signal()?);
    tokio::spawn(served)
        .await
        .context("accepting connections")?;
    stopping.cancel();
    drain(
        &engine,
        &catalog,
        &connections,
        &reach.tasks,
        Duration::from_secs(config.drain_s.into()),
    )
    .await;
    if let Err(error) = secrets.write_uses().await {
        tracing::warn!(%error, "cannot write the last use of some secrets");
    }
    store.close().await;
    tracing::info!("stopped");
    Ok(())
}
