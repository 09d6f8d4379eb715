//! The two servers that are compared, and the leanest client that can drive them: blocking sockets, one a thread.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};

use anyhow::{Context, bail};

/// Argument that makes this program the baseline server.
pub const BARE_SERVER: &str = "--bare-axum-server";
/// The token of the server under test.
pub const TOKEN: &str = "hth_benchmark_token_0123456789";

/// A server process; killed when dropped.
pub struct ServerProcess {
    process: Child,
    /// Where it listens.
    pub address: SocketAddr,
    _dir: Option<tempfile::TempDir>,
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl ServerProcess {
    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// The server under test, with an empty data directory.
    pub fn hearth() -> anyhow::Result<Self> {
        let dir = tempfile::Builder::new().prefix("hearth-bench-").tempdir()?;
        let mut command = Command::new(env!("CARGO_BIN_EXE_hearth"));
        command
            .env("HEARTH_DATA_DIR", dir.path().join("data"))
            .env("HEARTH_LISTEN", "127.0.0.1:0")
            .env("HEARTH_ADMIN_TOKEN", TOKEN)
            .env("HEARTH_LOG", "error");
        Self::launch(command, Some(dir))
    }

    /// The baseline: an axum handler that echoes its body.
    pub fn bare_axum() -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(BARE_SERVER);
        Self::launch(command, None)
    }

    fn launch(mut command: Command, dir: Option<tempfile::TempDir>) -> anyhow::Result<Self> {
        let mut process = command
            .stdout(Stdio::piped())
            .stdin(Stdio::null())
            .spawn()?;
        let mut lines = BufReader::new(process.stdout.take().context("its stdout")?);
        let address = loop {
            let mut line = String::new();
            if lines.read_line(&mut line)? == 0 {
                bail!("the server did not start");
            }
            if let Some((_, rest)) = line.split_once("http://") {
                break rest.trim().trim_end_matches('/').parse()?;
            }
        };
        std::thread::spawn(move || drop(lines.read_to_end(&mut Vec::new())));
        Ok(Self {
            process,
            address,
            _dir: dir,
        })
    }
}

/// Runs the baseline server until it is killed.
pub fn bare_server() -> ExitCode {
    let Ok(runtime) = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    else {
        return ExitCode::FAILURE;
    };
    let served = runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        println!("http://{}", listener.local_addr()?);
        let router = axum::Router::new().route(
            "/",
            axum::routing::post(|body: bytes::Bytes| async move { body }),
        );
        let listener =
            axum::serve::ListenerExt::tap_io(listener, |stream| drop(stream.set_nodelay(true)));
        axum::serve(listener, router).await
    });
    if served.is_ok() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// One connection that is kept alive.
pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// An answer's status, and where its body is in the connection's buffer.
pub struct Answer<'a> {
    /// HTTP status.
    pub status: u16,
    /// Head as text.
    pub head: &'a str,
    /// The body.
    pub body: &'a [u8],
}

impl Connection {
    /// Connects.
    pub fn open(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buffer: Vec::with_capacity(64 * 1024),
        })
    }

    /// Sends a request that was put together before and reads the answer whole.
    pub fn exchange(&mut self, request: &[u8]) -> anyhow::Result<Answer<'_>> {
        self.stream.write_all(request)?;
        self.buffer.clear();
        let mut chunk = [0_u8; 16 * 1024];
        let head_end = loop {
            if let Some(end) = self
                .buffer
                .windows(4)
                .position(|window| window == b"\r\n\r\n")
            {
                break end + 4;
            }
            self.fill(&mut chunk)?;
        };
        let head = String::from_utf8_lossy(&self.buffer[..head_end]).to_ascii_lowercase();
        let length: usize = match head.split_once("content-length:") {
            Some((_, rest)) => rest.lines().next().unwrap_or_default().trim().parse()?,
            None => bail!("an answer without content-length: {head}"),
        };
        while self.buffer.len() < head_end + length {
            self.fill(&mut chunk)?;
        }
        let status = head.split(' ').nth(1).unwrap_or_default().parse()?;
        let (head, body) = self.buffer.split_at(head_end);
        Ok(Answer {
            status,
            head: std::str::from_utf8(head)?,
            body,
        })
    }

    fn fill(&mut self, chunk: &mut [u8]) -> anyhow::Result<()> {
        let read = self.stream.read(chunk)?;
        if read == 0 {
            bail!("the server closed the connection");
        }
        self.buffer.extend_from_slice(&chunk[..read]);
        Ok(())
    }
}

/// A request as bytes.
pub fn request(method: &str, path: &str, body: &[u8]) -> Vec<u8> {
    let mut request = format!(
        "{method} {path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {TOKEN}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    request.extend_from_slice(body);
    request
}

/// Deploys a Python function with further settings.
pub fn deploy(
    address: SocketAddr,
    name: &str,
    code: &str,
    settings: &serde_json::Value,
) -> anyhow::Result<()> {
    let mut body =
        serde_json::json!({ "name": name, "runtime": "python3", "code": { "inline": code } });
    for (key, value) in settings.as_object().into_iter().flatten() {
        body[key] = value.clone();
    }
    let mut connection = Connection::open(address)?;
    let answer = connection.exchange(&request(
        "POST",
        "/api/v1/functions",
        body.to_string().as_bytes(),
    ))?;
    if answer.status != 201 {
        bail!(
            "deploying {name}: {} {}",
            answer.status,
            String::from_utf8_lossy(answer.body)
        );
    }
    Ok(())
}

/// The directory with the runtimes, beside the server.
pub fn runtimes_dir() -> std::path::PathBuf {
    Path::new(env!("CARGO_BIN_EXE_hearth")).with_file_name("runtimes")
}
