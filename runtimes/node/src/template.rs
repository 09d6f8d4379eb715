//! The template as JavaScript sees it: its control socket, and the loop that only a child comes back from.

use std::fmt::Display;

use hearth_worker::control::Control;
use hearth_worker::forkserver::ForkServer;
use hearth_worker::inherited::Inherited;
use hearth_worker::message::Way;
use hearth_worker::parts::Parts;
use hearth_worker::reseed::OpenSsl;
use hearth_worker::sys::{Forked, reset_child_signal};
use hearth_worker::threads;
use napi::Env;
use napi_derive::napi;

use crate::channel::Channel;
use crate::{memory, preforked, sys};

/// The template's end of its control socket. One a process.
#[napi]
pub struct Template {
    /// None once `serve` has taken it: it ends there, and a child must not hold it.
    control: Option<Control>,
    /// What the interpreter had open before anything of the function's ran.
    inherited: Inherited,
}

#[napi]
impl Template {
    /// Takes over the control socket on descriptor `fd`, and gives SIGCHLD its default action.
    #[napi(constructor)]
    pub fn new(fd: i32) -> napi::Result<Self> {
        reset_child_signal().map_err(failed)?;
        Ok(Self {
            control: Some(Control::adopt(fd).map_err(failed)?),
            inherited: Inherited::note().map_err(failed)?,
        })
    }

    /// Waits for the configuration. Returns its JSON text, or null when the server is gone.
    #[napi]
    pub fn receive_config(&self) -> napi::Result<Option<String>> {
        let config = self.control()?.receive_message().map_err(failed)?;
        Ok(config.map(|config| String::from_utf8_lossy(&config).into_owned()))
    }

    /// Sends a report, JSON text, to the server.
    #[napi]
    pub fn send(&self, report: String) -> napi::Result<()> {
        self.control()?.send(report.as_bytes()).map_err(failed)
    }

    /// Tells the server `booted`, JSON text, and starts instances at its command until it closes the socket. Returns ""
    /// then and, in every instance, how it came to be, with its `channel` open: "fork" in a child, "become" in this very
    /// process.
    #[napi]
    pub fn serve(
        &mut self,
        env: &Env,
        channel: &mut Channel,
        booted: String,
    ) -> napi::Result<&'static str> {
        memory::copy_all_on_fork().map_err(failed)?;
        let control = self.take_control()?;
        let openssl = OpenSsl::find();
        let mut server = ForkServer::start(control, Some(&booted)).map_err(failed)?;
        while let Some(request) = server.wait().map_err(failed)? {
            if request.way == Way::Become {
                drop(server);
                become_instance(channel, request.parts, &openssl)?;
                return Ok("become");
            }
            let shared = self.inherited.before_fork();
            let in_child = || {
                request.parts.take_streams()?;
                shared.replace()
            };
            match sys::fork(env, in_child)? {
                Ok(Forked::Parent(pid)) => server.forked(pid),
                Ok(Forked::Child(streams)) => {
                    drop(server);
                    streams.map_err(failed)?;
                    channel.attach(request.parts)?;
                    return Ok("fork");
                }
                Err(error) => server
                    .refuse(request.sequence, &error.to_string(), error.raw_os_error())
                    .map_err(failed)?,
            }
        }
        Ok("")
    }

    /// Where Node cannot be forked: keeps a process booted with the function imported (`program` with `arguments`, on
    /// descriptor 3 a socket like this one) and makes it the instance of the next FORK. Returns when the server is gone.
    #[napi]
    pub fn serve_preforked(
        &mut self,
        config: String,
        program: String,
        arguments: Vec<String>,
    ) -> napi::Result<()> {
        let control = self.take_control()?;
        preforked::serve(control, &config, &program, &arguments).map_err(failed)
    }

    /// In a pre-forked instance: says `booted` if it is asked to, and waits for the FORK that makes this process an
    /// instance. Returns true when its `channel` is open, or false when the server is gone.
    #[napi]
    pub fn become_instance(
        &mut self,
        channel: &mut Channel,
        booted: Option<String>,
    ) -> napi::Result<bool> {
        let control = self.take_control()?;
        let openssl = OpenSsl::find();
        let mut server = ForkServer::start(control, booted.as_deref()).map_err(failed)?;
        let Some(request) = server.wait().map_err(failed)? else {
            return Ok(false);
        };
        drop(server);
        become_instance(channel, request.parts, &openssl)?;
        Ok(true)
    }
}

impl Template {
    fn control(&self) -> napi::Result<&Control> {
        self.control.as_ref().ok_or_else(served)
    }

    fn take_control(&mut self) -> napi::Result<Control> {
        self.control.take().ok_or_else(served)
    }
}

/// Makes this very process the instance that these are for.
fn become_instance(channel: &mut Channel, parts: Parts, openssl: &OpenSsl) -> napi::Result<()> {
    parts.take_streams().map_err(failed)?;
    openssl.reseed();
    channel.attach(parts)
}

/// Threads that the import has left running and that a fork would not have.
#[napi(object)]
pub struct ThreadsLeft {
    /// How many.
    pub count: u32,
    /// What the first few are called.
    pub names: Vec<String>,
}

/// How many threads this process has. Before the import: how many are Node's own.
#[napi]
pub fn thread_count() -> u32 {
    u32::try_from(threads::count()).unwrap_or(u32::MAX)
}

/// The threads that the import has left running, beyond `own`.
#[napi]
pub fn threads_left(own: u32) -> ThreadsLeft {
    let left = threads::left_running(own as usize);
    ThreadsLeft {
        count: u32::try_from(left.count).unwrap_or(u32::MAX),
        names: left.names,
    }
}

fn served() -> napi::Error {
    napi::Error::from_reason("the control socket has been served")
}

fn failed(error: impl Display) -> napi::Error {
    napi::Error::from_reason(error.to_string())
}
