//! `hearth`: three processes from one binary. Without a subcommand it prepares and becomes the host process, `hearth host`
//! ([`host`]), which does what only root can and starts the others: `hearth serve`, the server ([`server`]), and
//! `hearth gateway`, the network of sandboxes ([`hearth_gateway`]). `hearth lab` is none of them: a client that measures
//! ([`hearth_lab`]).

mod drain;
mod host;
mod ingress;
mod server;

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use clap::Parser;
use hearth::config::Config;
use hearth_gateway::process::{GatewayError, Process};
use hearth_host::process::{GATEWAY, HOST, SERVE};

/// Its argument in front of the lab's own.
const LAB: &str = "lab";

/// A request makes dozens of short-lived allocations and often frees them on another core, which this does for less than
/// glibc's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Those that are started as /proc/self/exe would be called "exe" in `ps`, in the journal, and in what refuses a port.
    let _ = rustix::thread::set_name(c"hearth");
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    match arguments.get(1).and_then(|first| first.to_str()) {
        Some(SERVE) => {
            arguments.remove(1);
            return server::main(&arguments);
        }
        Some(GATEWAY) => {
            let served = serve_network();
            return served.map_or_else(|error| fail(&error.to_string()), |()| ExitCode::SUCCESS);
        }
        Some(LAB) => {
            arguments.remove(1);
            return hearth_lab::cli::main(arguments, &[LAB]);
        }
        Some(HOST) => return host::serve().unwrap_or_else(|error| fail(&format!("{error:#}"))),
        _ => {}
    }
    let config = Config::parse_from(&arguments);
    if let Err(error) = config.check() {
        return fail(&error.to_string());
    }
    start_logging(&config.log);
    match host::prepare(&config, arguments) {
        Ok(error) => fail(&error.to_string()),
        Err(error) => fail(&format!("{error:#}")),
    }
}

fn serve_network() -> Result<(), GatewayError> {
    let gateway = Process::begin()?;
    start_logging(&gateway.log);
    gateway.lock_down()?;
    gateway.serve()
}

/// Logs what this filter lets through, in `tracing` syntax.
fn start_logging(filter: &str) {
    tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::new(filter))
        .with_writer(std::io::stderr)
        .with_ansi(colours())
        .init();
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
