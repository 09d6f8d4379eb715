//! Starts a template: by a boot, which imports the function, or by a restore from its image.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::Interest;

use super::message::{Message, next_message, send};
use super::{EXIT_NEWS_DEADLINE, Template};
use crate::host_error::{HostError, is_shortage};
use crate::instance::FunctionKey;
use crate::instance::descriptors::InstanceDescriptors;
use crate::instance::logs::{LogTap, Logs};
use crate::instance::preforked::Prepared;
use crate::model::{BodyForm, FunctionError, LogLine, Note, StartKind};
use crate::network::{Attached, WayOut};
use crate::sandbox::{Host, Sandbox, SandboxError, SandboxSpec};
use crate::watched::Watched;

/// Time an import may take before the deploy is refused: long enough for large scientific packages, short enough that a
/// client is still there to read the answer.
pub const IMPORT_DEADLINE: Duration = Duration::from_secs(20);

/// Why a template did not come up.
#[derive(Debug, thiserror::Error)]
pub enum BootError {
    /// The host lacks resources. Nothing is wrong with the function.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The image could not be restored.
    #[error(transparent)]
    Restore(SandboxError),
    /// The function's code did not import.
    #[error("{}: {}", error.error_type, error.error_message)]
    Import {
        /// The exception.
        error: FunctionError,
        /// The import's output.
        logs: Vec<LogLine>,
    },
}

impl BootError {
    /// It lacks something that its function asks for.
    pub fn without(error_type: &str, error: &impl std::fmt::Display) -> Self {
        Self::Import {
            error: failure(error_type, error.to_string()),
            logs: Vec::new(),
        }
    }
}

impl From<SandboxError> for BootError {
    /// Everything in a sandbox is the host's responsibility, except for what is in an image.
    fn from(error: SandboxError) -> Self {
        if error.is_of_restore() {
            Self::Restore(error)
        } else {
            Self::Host(HostError::new(error))
        }
    }
}

impl From<std::io::Error> for BootError {
    /// The server's own side failed.
    fn from(error: std::io::Error) -> Self {
        Self::Host(HostError::new(format_args!(
            "cannot speak with the template: {error}"
        )))
    }
}

/// Sent to the template before the import.
#[derive(Debug, Clone, serde::Serialize)]
#[serde(tag = "type", rename = "config")]
pub struct TemplateConfig {
    /// `module.function`.
    pub handler: String,
    /// The function's name.
    pub function: String,
    /// Its version.
    pub version: u32,
    /// MiB.
    pub memory_mb: u32,
    /// How the event carries a request's body.
    pub body: BodyForm,
    /// Spin time of an instance before it sleeps. Part of each channel's header, not of this message.
    #[serde(skip)]
    pub busy_poll: Duration,
}

/// The whole message.
#[derive(serde::Serialize)]
struct Configuration<'a> {
    #[serde(flatten)]
    config: &'a TemplateConfig,
    /// Whether it is booted to create an image.
    image: bool,
}

fn failure(error_type: &str, error_message: String) -> FunctionError {
    FunctionError {
        error_type: error_type.into(),
        error_message,
        stack_trace: Vec::new(),
    }
}

/// The outcome of an import besides the template.
#[derive(Debug)]
pub struct Imported {
    /// Its output.
    pub lines: Vec<LogLine>,
    /// Findings that its author should know.
    pub notes: Vec<Note>,
}

impl Template {
    /// Creates the sandbox, boots the runtime in it and waits for the import. Returns the outcome of the import, too.
    /// `way_out` is what `spec.network` was made from.
    ///
    /// # Errors
    /// [`BootError::Import`] carries the traceback and the output.
    pub async fn boot(
        host: &Host,
        spec: SandboxSpec,
        config: &TemplateConfig,
        function: FunctionKey,
        sink: &Logs,
        way_out: Option<&WayOut>,
    ) -> Result<(Arc<Self>, Imported), BootError> {
        let image = spec.dumpable;
        let mut sandbox = host.create(spec).await?;
        // Before the import, which may need it.
        let network = attach(&mut sandbox, way_out);
        let (control, logs) = connect(&mut sandbox, &function, sink)?;
        let configuration = Configuration { config, image };
        let text = serde_json::to_vec(&configuration).map_err(std::io::Error::other)?;
        logs.begin(None);
        // An interpreter that has already ended (its own variables can cause that) reads no configuration: a failed
        // import like any other.
        let heard = match send(&control, &text, &[]).await {
            Ok(()) => tokio::time::timeout(IMPORT_DEADLINE, next_message(&control)).await,
            Err(error) => Ok(Err(error)),
        };
        let lines = logs.finish();
        let error = match heard {
            Ok(Ok(Message::Booted {
                runtime,
                import_ms,
                drawn,
                threads,
            })) => {
                tracing::debug!(
                    function = config.function,
                    version = config.version,
                    import_ms,
                    "template is up"
                );
                let busy_poll = config.busy_poll;
                let threads = Some(threads.cleaned());
                let start_kind = StartKind::Boot;
                let template = Self::up(
                    control, sandbox, network, busy_poll, runtime, start_kind, threads,
                );
                template.prepare_soon(&function, sink);
                let notes = drawn.and_then(|drawn| drawn.note()).into_iter().collect();
                return Ok((template, Imported { lines, notes }));
            }
            Ok(Ok(Message::ImportError { error })) => error,
            Ok(Ok(_)) => failure(
                "Runtime.ProtocolError",
                "the runtime sent an unexpected message".into(),
            ),
            Ok(Err(io)) if is_shortage(&io) => {
                sandbox.destroy().await;
                return Err(io.into());
            }
            Ok(Err(io)) => {
                let how = tokio::time::timeout(EXIT_NEWS_DEADLINE, sandbox.exited())
                    .await
                    .unwrap_or(io.to_string());
                if sandbox.template_oom_killed() {
                    let limit = config.memory_mb;
                    failure(
                        "Runtime.OutOfMemory",
                        format!("the import used more than {limit} MiB of memory ({how})"),
                    )
                } else {
                    failure(
                        "Runtime.ExitError",
                        format!("the process ended while it imported the function: {how}"),
                    )
                }
            }
            Err(_) => failure(
                "Runtime.ImportTimeout",
                format!(
                    "the import did not finish within {} s",
                    IMPORT_DEADLINE.as_secs()
                ),
            ),
        };
        sandbox.destroy().await;
        Err(BootError::Import { error, logs: lines })
    }

    /// Creates the sandbox and has CRIU restore the template into it from `spec.restore`; it resumes where it was
    /// dumped, waiting for a command. `runtime` is what it reported when it booted.
    ///
    /// # Errors
    /// [`SandboxError`] with CRIU's last error lines.
    pub async fn restore(
        host: &Host,
        spec: SandboxSpec,
        busy_poll: Duration,
        runtime: &str,
        function: &FunctionKey,
        sink: &Logs,
        way_out: Option<&WayOut>,
    ) -> Result<Arc<Self>, BootError> {
        // The restore is requested first; its first instance is prepared meanwhile.
        let (sandbox, descriptors) = tokio::join!(host.create(spec), async {
            InstanceDescriptors::new(busy_poll, function, sink)
        });
        let mut sandbox = sandbox?;
        let network = attach(&mut sandbox, way_out);
        let (control, _logs) = connect(&mut sandbox, function, sink)?;
        let template = Self::up(
            control,
            sandbox,
            network,
            busy_poll,
            runtime.to_owned(),
            StartKind::Restore,
            None,
        );
        // If it failed, the first start reports why.
        *template.prepared.lock() = descriptors.ok().map(Prepared::Descriptors);
        template.prepare_soon(function, sink);
        Ok(template)
    }
}

/// Takes the sandbox's way out, if it has one.
fn attach(sandbox: &mut Sandbox, way_out: Option<&WayOut>) -> Option<Attached> {
    let outbound = sandbox.outbound.take()?;
    Some(way_out?.attach(outbound))
}

/// Takes the server's ends of the template's descriptors. The log is read as long as any process has the pipes open.
fn connect(
    sandbox: &mut Sandbox,
    function: &FunctionKey,
    sink: &Logs,
) -> std::io::Result<(Watched, LogTap)> {
    let missing = || std::io::Error::other("the sandbox has no control socket");
    let control = sandbox.control.take().ok_or_else(missing)?;
    let stdout = sandbox.stdout.take().ok_or_else(missing)?;
    let stderr = sandbox.stderr.take().ok_or_else(missing)?;
    let logs = LogTap::start(function.clone(), sink.clone(), stdout, stderr)?;
    let control = Watched::new(control, Interest::READABLE)?;
    Ok((control, logs))
}
