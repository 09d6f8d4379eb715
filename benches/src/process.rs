//! Child processes. Each ends when its value is dropped, and with this process, however that ends: a server left behind
//! would hold memory, ports and locks.

use std::ffi::{OsStr, OsString};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail};
pub use hearth_testkit::program::Program;
use hearth_testkit::program::START;
use hearth_testkit::wait::poll;

/// First argument that makes this program execute another one, given by the arguments that follow.
pub const FLAG: &str = "--bound";

/// Precedes the name of a program to kill when this one ends.
pub fn binding() -> anyhow::Result<[OsString; 2]> {
    Ok([std::env::current_exe()?.into(), FLAG.into()])
}

/// A command whose process is killed when this one ends.
pub fn bound(program: impl AsRef<OsStr>) -> anyhow::Result<Command> {
    let [own, flag] = binding()?;
    let mut command = Command::new(own);
    command.arg(flag).arg(program);
    Ok(command)
}

/// Becomes the program that the arguments name.
pub fn execute(arguments: &[String]) -> anyhow::Result<()> {
    let (program, arguments) = arguments.split_first().context("no program")?;
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    Err(Command::new(program).args(arguments).exec()).with_context(|| program.clone())
}

/// Waits until a program accepts connections.
pub fn wait_for(program: &mut Program, address: SocketAddr) -> anyhow::Result<()> {
    let accepts = poll(START, Duration::from_millis(20), || {
        if std::net::TcpStream::connect(address).is_ok() {
            return Some(Ok(()));
        }
        match program.try_wait() {
            Ok(None) => None,
            Ok(Some(status)) => Some(Err(anyhow::anyhow!("it ended: {status}"))),
            Err(error) => Some(Err(error.into())),
        }
    });
    match accepts {
        Some(accepts) => accepts,
        None => bail!("it does not listen on {address}"),
    }
}

/// A port that nobody listens on at this moment.
pub fn free_address() -> std::io::Result<SocketAddr> {
    std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()
}
