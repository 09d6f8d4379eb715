//! The other side of each transport: this program, started again as an echo server, so that both sides are minimal and
//! nothing needs to be installed.

pub mod grpc;
pub mod http;
pub mod minimal;
pub mod ring;
pub mod stream;
pub mod trivial;

use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

use crate::process::{Program, bound};

/// First argument that makes this program a peer; the second one says which.
pub const FLAG: &str = "--peer";
/// The peer that keeps a processor at work.
const SPIN: &str = "spin";
/// What a peer prints before its address.
const MARK: &str = "listening on ";

/// Bytes of a message.
pub const PAYLOAD: usize = 1024;

/// The peers that listen somewhere.
#[derive(Debug, Clone, Copy)]
pub enum Peer {
    /// Bytes over a Unix socket.
    Unix,
    /// Bytes over TCP.
    Tcp,
    /// Axum on all cores, as its documentation starts it: echoes the body of `POST /`, and of `POST /json` what it parsed
    /// and serialised again.
    Axum,
    /// The same on one thread.
    AxumOneThread,
    /// A gRPC method of one thread that echoes its message.
    Grpc,
    /// A minimal HTTP server: a thread for each connection, blocking.
    Minimal,
    /// A trivial HTTP server that load generators are compared on: epoll on one thread, which has the last processor.
    Trivial,
}

impl Peer {
    const ALL: [(Self, &'static str); 7] = [
        (Self::Unix, "unix"),
        (Self::Tcp, "tcp"),
        (Self::Axum, "axum"),
        (Self::AxumOneThread, "axum-one-thread"),
        (Self::Grpc, "grpc"),
        (Self::Minimal, "minimal"),
        (Self::Trivial, "trivial"),
    ];

    /// Starts it in a process of its own and says where it listens.
    pub fn start(self) -> anyhow::Result<(Program, String)> {
        let name = Self::ALL
            .iter()
            .find(|(peer, _)| std::mem::discriminant(peer) == std::mem::discriminant(&self))
            .map_or("", |(_, name)| *name);
        Ok(Program::start_and_hear(&mut command(name)?, MARK)?)
    }
}

/// A process for each processor that does nothing but compute, until they are dropped.
pub fn spinners() -> anyhow::Result<Vec<Program>> {
    let processors = std::thread::available_parallelism()?.get();
    (0..processors)
        .map(|_| Ok(Program::start(&mut command(SPIN)?)?))
        .collect()
}

/// This program as the peer of that name.
fn command(name: &str) -> anyhow::Result<Command> {
    let mut command = bound(std::env::current_exe()?)?;
    command.args([FLAG, name]);
    Ok(command)
}

/// Is the peer of that name until it is killed.
pub fn run(name: &str) -> anyhow::Result<()> {
    if name == SPIN {
        loop {
            std::hint::black_box(name);
        }
    }
    if name == ring::SPINNING || name == ring::SLEEPING {
        return ring::serve(name == ring::SPINNING);
    }
    let (peer, _) = Peer::ALL
        .into_iter()
        .find(|(_, known)| *known == name)
        .context("no such peer")?;
    match peer {
        Peer::Unix => {
            // Gone with the directory at once; the socket lives on until the process ends.
            let dir = tempfile::Builder::new().prefix("hearth-bench-").tempdir()?;
            let path = dir.path().join("echo");
            let listener = UnixListener::bind(&path)?;
            println!("{MARK}{}", path.display());
            let (connection, _) = listener.accept()?;
            dir.close()?;
            stream::echo(connection)
        }
        Peer::Tcp => {
            let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
            println!("{MARK}{}", listener.local_addr()?);
            let (connection, _) = listener.accept()?;
            connection.set_nodelay(true)?;
            stream::echo(connection)
        }
        Peer::Minimal => {
            let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
            println!("{MARK}{}", listener.local_addr()?);
            minimal::serve(&listener)
        }
        Peer::Trivial => {
            let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
            println!("{MARK}{}", listener.local_addr()?);
            trivial::serve(&listener)
        }
        Peer::Axum => async_server(tokio::runtime::Builder::new_multi_thread(), http::serve),
        Peer::AxumOneThread => {
            async_server(tokio::runtime::Builder::new_current_thread(), http::serve)
        }
        Peer::Grpc => async_server(tokio::runtime::Builder::new_current_thread(), grpc::serve),
    }
}

fn async_server<F>(
    mut runtime: tokio::runtime::Builder,
    serve: impl FnOnce(tokio::net::TcpListener) -> F,
) -> anyhow::Result<()>
where
    F: Future<Output = anyhow::Result<()>>,
{
    runtime.enable_all().build()?.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        println!("{MARK}{}", listener.local_addr()?);
        serve(listener).await
    })
}

/// The path of a Unix socket that a peer has said.
pub fn connect_unix(path: &str) -> anyhow::Result<std::os::unix::net::UnixStream> {
    Ok(std::os::unix::net::UnixStream::connect(Path::new(path))?)
}

/// The address that a peer has said.
pub fn parse(address: &str) -> anyhow::Result<std::net::SocketAddr> {
    match address.parse() {
        Ok(address) => Ok(address),
        Err(_) => bail!("{address:?} is no address"),
    }
}
