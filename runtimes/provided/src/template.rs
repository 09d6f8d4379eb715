//! The template: starts the bootstrap, reports how its initialisation went, and becomes the one instance of its sandbox.

use std::io::{self, Write as _};
use std::process::{ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use hearth_worker::channel::{Channel, ChannelError};
use hearth_worker::control::{Control, ControlError};
use hearth_worker::forkserver::ForkServer;
use hearth_worker::message::Way;
use hearth_worker::parts::Parts;
use hearth_worker::sys::reset_child_signal;
use rustix::process::{getpid, set_child_subreaper};
use serde::Deserialize;
use serde_json::json;
use tokio::runtime::{Builder, Runtime};

use crate::api::Api;
use crate::bootstrap::{Bootstrap, in_words};
use crate::connections::Connections;
use crate::error::FunctionError;
use crate::invocation::Bridge;

/// The control socket: the descriptor after stdin, stdout and stderr.
const CONTROL_FD: i32 = 3;
/// Longest time from the bootstrap's start to its first request for an invocation. Less than the server waits for a template,
/// so that it hears what was waited for.
pub(crate) const INIT_DEADLINE: Duration = Duration::from_secs(15);
/// How long a bootstrap whose initialisation failed may go on printing.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// Status of a process that was not started by Hearth.
const EXIT_NOT_STARTED: u8 = 2;
/// Status of one whose control socket or channel broke.
const EXIT_BROKEN: u8 = 70;

/// What the server says of the function.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Config {
    pub(crate) function: String,
    pub(crate) version: u32,
}

#[derive(Debug, thiserror::Error)]
enum TemplateError {
    #[error("this program is started by Hearth: {0}")]
    NotStarted(ControlError),
    #[error(transparent)]
    Control(#[from] ControlError),
    #[error("the server's configuration: {0}")]
    Config(#[from] serde_json::Error),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Channel(#[from] ChannelError),
}

/// Serves as a template, then as an instance, until the server is gone.
pub(crate) fn run() -> ExitCode {
    let error = match try_run() {
        Ok(()) => return ExitCode::SUCCESS,
        Err(error) => error,
    };
    // In the function's log.
    let _ = writeln!(io::stderr(), "hearth: {error}");
    ExitCode::from(match error {
        TemplateError::NotStarted(_) => EXIT_NOT_STARTED,
        _ => EXIT_BROKEN,
    })
}

fn try_run() -> Result<(), TemplateError> {
    let control = Control::adopt(CONTROL_FD).map_err(TemplateError::NotStarted)?;
    let config = control.receive_message();
    let Some(config) = config.map_err(TemplateError::NotStarted)? else {
        return Ok(());
    };
    let config: Config = serde_json::from_slice(&config)?;
    reset_child_signal()?;
    // What the bootstrap's own children leave behind is this function's, and not PID 1's.
    set_child_subreaper(Some(getpid())).map_err(io::Error::from)?;
    // One thread, this one: an invocation passes through without waking another.
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let api = Api::new();
    let connections = runtime.block_on(Connections::listen(&api))?;
    let begun = Instant::now();
    let started = match Bootstrap::start(&Connections::address()) {
        Ok(bootstrap) => initialise(&runtime, &api, &connections, &bootstrap).map(|()| bootstrap),
        Err(error) => Err(FunctionError::new(
            "Runtime.InvalidEntrypoint",
            &format!("the bootstrap cannot be started: {error}"),
        )),
    };
    let bootstrap = match started {
        Ok(bootstrap) => bootstrap,
        Err(error) => {
            let report = json!({"type": "import_error", "error": error});
            return Ok(control.send(report.to_string().as_bytes())?);
        }
    };
    let booted = json!({
        "type": "booted",
        "runtime": env!("CARGO_PKG_VERSION"),
        "import_ms": begun.elapsed().as_secs_f64() * 1000.0,
        "drawn": null,
    });
    bootstrap.rest();
    let Some(parts) = wanted(control, &booted.to_string())? else {
        return Ok(());
    };
    // What was printed by now is of the initialisation.
    bootstrap.pass_on();
    parts.take_streams()?;
    let mut channel = Channel::open(parts)?;
    channel.count_in(bootstrap.pid());
    if !channel.is_wanted()? && !channel.wait_until_wanted()? {
        return Ok(());
    }
    channel.ready()?;
    let mut bridge = Bridge {
        runtime: &runtime,
        api: &api,
        connections: &connections,
        bootstrap,
        config: &config,
    };
    Ok(bridge.serve(&mut channel)?)
}

/// Waits until the bootstrap asks for its first invocation.
///
/// # Errors
/// It did not: what the server is told.
fn initialise(
    runtime: &Runtime,
    api: &Api,
    connections: &Connections,
    bootstrap: &Bootstrap,
) -> Result<(), FunctionError> {
    let outcome = runtime.block_on(async {
        tokio::select! {
            biased;
            asked = api.asked() => asked,
            status = bootstrap.ended() => {
                // A report that it sent before its end says more.
                tokio::select! {
                    biased;
                    asked = api.asked() => match asked {
                        Err(reported) => Err(reported),
                        Ok(()) => Err(over(status)),
                    },
                    () = connections.heard_out() => Err(over(status)),
                }
            }
            () = tokio::time::sleep(INIT_DEADLINE) => Err(FunctionError::new(
                "Runtime.InitTimeout",
                &format!(
                    "the bootstrap did not ask for an invocation within {} s (GET /2018-06-01/runtime/invocation/next at \
                     AWS_LAMBDA_RUNTIME_API)",
                    INIT_DEADLINE.as_secs()
                ),
            )),
        }
    });
    if outcome.is_err() {
        // Most end by themselves once they have reported, and say why.
        let ended = async { tokio::time::timeout(LAST_WORDS, bootstrap.ended()).await };
        let _ = runtime.block_on(ended);
    }
    bootstrap.pass_on();
    outcome
}

fn over(status: io::Result<ExitStatus>) -> FunctionError {
    let how = status.map_or_else(|error| error.to_string(), in_words);
    let said = format!("the bootstrap {how} before it asked for an invocation");
    FunctionError::new("Runtime.ExitError", &said)
}

/// Reports that the template is up, and waits until it is to become the instance; nothing if the server is gone.
fn wanted(control: Control, booted: &str) -> Result<Option<Parts>, ControlError> {
    let mut server = ForkServer::start(control, Some(booted))?;
    while let Some(request) = server.wait()? {
        if request.way == Way::Become {
            return Ok(Some(request.parts));
        }
        server.refuse(
            request.sequence,
            "a bootstrap is a process of its own, which a fork would not have",
            None,
        )?;
    }
    Ok(None)
}
