//! The template: the process that `main` ran in. It reports to the server, then forks instances, or becomes one itself.

use std::io::{self, Write as _};
use std::sync::Mutex;
use std::time::Duration;

use hearth_worker::channel::{Channel, ChannelError};
use hearth_worker::compaction;
use hearth_worker::control::{Control, ControlError};
use hearth_worker::forkserver::ForkServer;
use hearth_worker::message::Way;
use hearth_worker::parts::Parts;
use hearth_worker::sys::{Forked, reset_child_signal};
use hearth_worker::threads;
use rustix::time::{ClockId, clock_gettime};
use serde::Deserialize;
use serde_json::json;

use crate::sys;

/// The control socket: the descriptor after stdin, stdout and stderr.
const CONTROL_FD: i32 = 3;
/// Status of a process that was not started by Hearth.
const EXIT_NOT_STARTED: i32 = 2;
/// Status of an instance that could not start.
const EXIT_START_FAILED: i32 = 1;

/// What the server says of the function.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Config {
    pub(crate) function: String,
    pub(crate) version: u32,
    pub(crate) memory_mb: u32,
    /// Whether this template is booted to make an image.
    #[serde(default)]
    image: bool,
}

type Hook = Box<dyn FnMut() + Send>;

static HOOKS: Mutex<Vec<Hook>> = Mutex::new(Vec::new());

/// Has every instance call this once, before its first request. For what instances must not share with each other although each
/// begins as a copy of the process that `main` ran in: generators of random numbers, connections.
///
/// ```no_run
/// hearth_native::on_start(|| println!("one more instance"));
/// hearth_native::serve(|event: serde_json::Value, _| Ok(event))
/// ```
pub fn on_start(hook: impl FnMut() + Send + 'static) {
    let mut hooks = HOOKS.lock().unwrap_or_else(|broken| broken.into_inner());
    hooks.push(Box::new(hook));
}

/// Why this process is no template.
#[derive(Debug, thiserror::Error)]
enum TemplateError {
    #[error("this program is a function of Hearth, which starts it: {0}")]
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

/// Serves as a template. Returns in instances only, with their channel.
pub(crate) fn run() -> (Channel, Config) {
    match try_run() {
        Ok(Some(instance)) => instance,
        // The server is gone, or drops a pre-forked instance.
        Ok(None) => sys::leave(0),
        Err(error) => {
            // In the function's log.
            let _ = writeln!(io::stderr(), "hearth: {error}");
            sys::leave(match error {
                TemplateError::NotStarted(_) => EXIT_NOT_STARTED,
                _ => EXIT_START_FAILED,
            })
        }
    }
}

fn try_run() -> Result<Option<(Channel, Config)>, TemplateError> {
    let control = Control::adopt(CONTROL_FD).map_err(TemplateError::NotStarted)?;
    let text = control
        .receive_message()
        .map_err(TemplateError::NotStarted)?;
    let Some(text) = text else {
        return Ok(None);
    };
    let config: Config = serde_json::from_slice(&text)?;
    reset_child_signal()?;
    // What is printed by now is the template's, and not once more each child's.
    io::stdout().flush()?;
    let threads = threads::left_running(1);
    let booted = json!({
        "type": "booted",
        "runtime": env!("CARGO_PKG_VERSION"),
        "import_ms": computed().as_secs_f64() * 1000.0,
        "threads": {"count": threads.count, "names": threads.names},
        "drawn": null,
    });
    if config.image {
        // Nobody waits, and every restore has less to map. Where the kernel does not let it, it has more.
        let _ = compaction::compact(|| false);
    }
    let mut server = ForkServer::start(control, Some(&booted.to_string()))?;
    while let Some(request) = server.wait()? {
        if request.way == Way::Become {
            drop(server);
            request.parts.take_streams()?;
            return instance(request.parts, config);
        }
        match sys::fork(|| request.parts.take_streams()) {
            Ok(Forked::Parent(pid)) => server.forked(pid),
            Ok(Forked::Child(streams)) => {
                streams?;
                drop(server);
                return instance(request.parts, config);
            }
            Err(error) => {
                server.refuse(request.sequence, &error.to_string(), error.raw_os_error())?;
            }
        }
    }
    Ok(None)
}

/// A fresh instance: at once, or if it has hooks to run, once the server wants it; none if the server does not.
fn instance(parts: Parts, config: Config) -> Result<Option<(Channel, Config)>, TemplateError> {
    let mut channel = Channel::open(parts)?;
    let mut hooks = HOOKS.lock().unwrap_or_else(|broken| broken.into_inner());
    // Without hooks there is nothing left to do before the first request.
    if !hooks.is_empty() && !channel.is_wanted()? && !channel.wait_until_wanted()? {
        return Ok(None);
    }
    for hook in hooks.iter_mut() {
        hook();
    }
    drop(hooks);
    channel.ready()?;
    Ok(Some((channel, config)))
}

/// What the import has taken: processor time, since nobody has noted when the process began.
fn computed() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(
        time.tv_sec.try_into().unwrap_or_default(),
        time.tv_nsec.try_into().unwrap_or_default(),
    )
}
