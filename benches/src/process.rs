//! Programs that are measured or measured against. They end with the value that stands for them, and with this process,
//! however that ends: a server left behind would hold memory, ports and locks.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

/// How long a server may take until it answers: Python frameworks import for a second or more.
const START: Duration = Duration::from_secs(30);

/// First argument that makes this program execute another one, given by the arguments that follow.
pub const FLAG: &str = "--bound";

/// A command whose process is killed when this one ends.
pub fn bound(program: impl AsRef<OsStr>) -> anyhow::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(FLAG).arg(program);
    Ok(command)
}

/// Becomes the program that the arguments name.
pub fn execute(arguments: &[String]) -> anyhow::Result<()> {
    let (program, arguments) = arguments.split_first().context("no program")?;
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    Err(Command::new(program).args(arguments).exec()).with_context(|| program.clone())
}

/// A process that is killed when this is dropped.
#[derive(Debug)]
pub struct Program {
    process: Child,
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Program {
    /// Starts it without input.
    pub fn start(command: &mut Command) -> anyhow::Result<Self> {
        let process = command.stdin(Stdio::null()).spawn()?;
        Ok(Self { process })
    }

    /// Starts it with what `command` says of all three streams.
    pub fn start_with(command: &mut Command) -> anyhow::Result<Self> {
        let process = command.spawn()?;
        Ok(Self { process })
    }

    /// Starts it and waits for a line that begins or continues with `mark`; says what follows in that line.
    pub fn start_and_hear(command: &mut Command, mark: &str) -> anyhow::Result<(Self, String)> {
        let mut program = Self::start(command.stdout(Stdio::piped()))?;
        let mut lines = BufReader::new(program.process.stdout.take().context("its stdout")?);
        let heard = loop {
            let mut line = String::new();
            if lines.read_line(&mut line)? == 0 {
                bail!("it did not start");
            }
            if let Some((_, rest)) = line.split_once(mark) {
                break rest.trim().to_owned();
            }
        };
        // It must never wait for somebody to read what it prints.
        std::thread::spawn(move || drop(lines.read_to_end(&mut Vec::new())));
        Ok((program, heard))
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Asks it to end and waits until it has.
    pub fn terminate(&mut self) -> anyhow::Result<()> {
        let pid = rustix::process::Pid::from_raw(self.pid().cast_signed()).context("no process")?;
        rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
        self.process.wait()?;
        Ok(())
    }

    /// Waits until it accepts connections.
    pub fn wait_for(&mut self, address: SocketAddr) -> anyhow::Result<()> {
        let deadline = Instant::now() + START;
        while std::net::TcpStream::connect(address).is_err() {
            if let Some(status) = self.process.try_wait()? {
                bail!("it ended: {status}");
            }
            if Instant::now() > deadline {
                bail!("it does not listen on {address}");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

/// A port that nobody listens on at this moment.
pub fn free_address() -> std::io::Result<SocketAddr> {
    std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()
}
