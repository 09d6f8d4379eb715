//! The host process: takes what only root can take, starts the server, and ends with it.

use std::ffi::OsString;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use hearth::config::{Auto, Config, InvalidSetting};
use hearth::limits::Limits;
use hearth::sandbox::{self, Prefix};
use hearth_host::process::{self, DataDir, HandoverError, Orders, ServerStart, ServerUser};
use hearth_host::{Host, PortSettings, Probed};
use hearth_init::fields::Fields as _;

use crate::start_logging;

/// What a shell adds to the number of the signal that ended a program.
const SIGNALLED: u8 = 128;

/// Prepares all that the host process needs, and becomes it. Returns only what went wrong.
pub(crate) fn prepare(
    config: &Config,
    mut arguments: Vec<OsString>,
) -> anyhow::Result<HandoverError> {
    let brokers = config.mqtt_brokers()?;
    let brokers = brokers.sealed()?;
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
    let probed = Probed::kernel(&init)?;
    let data_dir = DataDir::prepare(&config.data_dir, user)
        .with_context(|| format!("HEARTH_DATA_DIR={}", config.data_dir.display()))?;
    let listener = listen("HEARTH_LISTEN", config.listen)?;
    let for_functions = config
        .functions_listen()?
        .map(|address| listen("HEARTH_FUNCTIONS_LISTEN", address))
        .transpose()?;
    let ingress = crate::ingress::prepare(config.xdp_interfaces(), config.trigger_address()?)?;
    let runtimes = config
        .runtimes
        .clone()
        .map_or_else(find_runtimes, Ok)
        .context("HEARTH_RUNTIMES")?;
    let permitted = config
        .network_allow_private()?
        .iter()
        .filter_map(|network| Prefix::new(network.addr(), network.prefix_len()))
        .collect();
    let gateway = hearth_gateway::Settings {
        permitted,
        fast: config.network_fast == Auto::Auto,
        log: config.log.clone(),
        ..Default::default()
    };
    let settings = hearth_host::Settings {
        data_dir: data_dir.path,
        init,
        runtimes,
        criu: config.criu_choice(),
        gateway: gateway.to_bytes(),
        ports: PortSettings {
            address: config.trigger_address()?,
            ports: config.trigger_ports()?,
        },
        server: Some(user),
    };
    let host = Host::open(settings, probed)?;
    arguments.remove(0);
    let orders = Orders {
        host,
        start: ServerStart {
            arguments,
            environment: hearth_host::server_environment(),
            user,
            drain: Duration::from_secs(config.drain_s.into()),
            separate: for_functions.is_some(),
            ingress: true,
            brokers: true,
        },
        log: config.log.clone(),
    };
    let mut fds = vec![data_dir.lock.as_fd(), listener.as_fd()];
    fds.extend(for_functions.as_ref().map(|listener| listener.as_fd()));
    fds.extend([ingress.for_server.as_fd(), brokers.as_fd()]);
    fds.push(ingress.attached.as_fd());
    Ok(process::hand_over(&orders, &fds))
}

/// Serves the server until it has ended, and returns the exit status of both.
pub(crate) fn serve() -> anyhow::Result<ExitCode> {
    let (orders, fds) = process::take_over()?;
    start_logging(&orders.log);
    let Some(status) = process::run(orders.host, orders.start, fds)? else {
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
