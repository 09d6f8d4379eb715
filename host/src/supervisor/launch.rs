//! Starts `hearth-init`. The host process never forks itself: it has threads, so it spawns a program.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use hearth_init::fields::Fields as _;
use hearth_init::{JailSpec, START, wire};
use rustix::fs::OFlags;
use rustix::pipe::PipeFlags;

use crate::memfd::{sealed, socket_pair};

/// A `hearth-init` that has its orders.
pub struct Launched {
    /// The process that builds the sandbox; PID 1 will be another child of this thread.
    pub builder: Child,
    /// Init's control socket, non-blocking.
    pub control: OwnedFd,
    /// The template's outputs, non-blocking.
    pub template: TemplateEnds,
}

/// The server's ends of what the template has.
#[derive(Debug)]
pub struct TemplateEnds {
    /// Read end of its stdout.
    pub stdout: OwnedFd,
    /// Read end of its stderr.
    pub stderr: OwnedFd,
}

/// Spawns `hearth-init` with its control socket as standard input, so that no descriptor has to survive exec by luck in a
/// process that spawns from several threads. The thread that calls this must live as long as the sandbox: the kernel
/// kills PID 1 when it ends.
pub fn launch(init: &Path, spec: &JailSpec) -> io::Result<Launched> {
    let (control, init_end) = socket_pair()?;
    let (stdout, stdout_end) = pipe()?;
    let (stderr, stderr_end) = pipe()?;
    let orders = sealed(&spec.to_bytes())?;

    let mut builder = Command::new(init)
        // PID 1's command line can be read inside: it must not say where Hearth is installed.
        .arg0("hearth-init")
        .env_clear()
        .stdin(Stdio::from(init_end))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let sent = wire::send(
        &control,
        &[START],
        &[orders.as_fd(), stdout_end.as_fd(), stderr_end.as_fd()],
    );
    if let Err(error) = sent {
        // It sees the end of its socket, and would exit by itself.
        let _ = builder.kill();
        let _ = builder.wait();
        return Err(error);
    }
    for fd in [&control, &stdout, &stderr] {
        let flags = rustix::fs::fcntl_getfl(fd)?;
        rustix::fs::fcntl_setfl(fd, flags | OFlags::NONBLOCK)?;
    }
    Ok(Launched {
        builder,
        control,
        template: TemplateEnds { stdout, stderr },
    })
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?)
}
