//! Well-known servers with their usual configuration. Missing ones are skipped.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::ensure;

use crate::process::{Program, bound, free_address, wait_for};

/// The interpreter of the distribution, which functions run on, too.
pub const PYTHON: &str = "/usr/bin/python3";

/// The Node.js that functions run on: scripts/bench.sh tells. Not by the server's own setting, which takes a program that
/// sandboxes see where it is; one that set-up has fetched is packaged with the runtime.
pub fn node() -> PathBuf {
    std::env::var_os("HEARTH_BENCH_NODE").map_or_else(|| "/usr/bin/node".into(), PathBuf::from)
}

/// A well-known server.
#[derive(Debug, Clone, Copy)]
pub enum Baseline {
    /// `http.createServer`.
    Node,
    /// uvicorn with uvloop and httptools, one process.
    Uvicorn,
    /// Google's functions-framework, which starts gunicorn.
    FunctionsFramework,
}

impl Baseline {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Node, Self::Uvicorn, Self::FunctionsFramework];

    /// What the report calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Node => "bare Node HTTP server",
            Self::Uvicorn => "uvicorn, bare ASGI",
            Self::FunctionsFramework => "functions-framework",
        }
    }

    /// Starts it and waits until it answers.
    pub fn start(self) -> anyhow::Result<(Program, SocketAddr)> {
        let address = free_address()?;
        let port = address.port().to_string();
        let sources = sources();
        let mut command = match self {
            Self::Node => {
                let node = node();
                ensure!(node.is_file(), "{} is missing", node.display());
                let mut command = bound(node)?;
                command.arg(sources.join("echo.mjs")).arg(port);
                command
            }
            Self::Uvicorn => {
                let mut command = python()?;
                command
                    .args(["-m", "uvicorn", "echo_asgi:app", "--port", &port])
                    .args(["--loop", "uvloop", "--http", "httptools"])
                    .args(["--no-access-log", "--log-level", "error"]);
                command
            }
            Self::FunctionsFramework => {
                let mut command = python()?;
                command
                    .args(["-m", "functions_framework", "--target", "echo"])
                    .args(["--host", "127.0.0.1", "--port", &port, "--source"])
                    .arg(sources.join("echo_function.py"));
                command
            }
        };
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut program = Program::start(&mut command)?;
        wait_for(&mut program, address)?;
        Ok((program, address))
    }
}

fn python() -> anyhow::Result<std::process::Command> {
    let packages = root().join(".tools/bench");
    ensure!(
        packages.join("functions_framework").is_dir(),
        "not installed in {}: scripts/setup.sh bench fetches it from PyPI",
        packages.display()
    );
    let mut command = bound(PYTHON)?;
    let path = std::env::join_paths([packages, sources()])?;
    command.env("PYTHONPATH", path);
    Ok(command)
}

/// Packages that functions are deployed with.
pub fn packages() -> anyhow::Result<PathBuf> {
    let packages = root().join(".tools/imported");
    ensure!(
        packages.is_dir(),
        "{} is missing: scripts/setup.sh bench fetches it from PyPI",
        packages.display()
    );
    Ok(packages)
}

/// The zip of one of the functions with real packages that the tests deploy.
pub fn function_package(name: &str) -> anyhow::Result<PathBuf> {
    let zip = root().join(".tools/packages").join(format!("{name}.zip"));
    ensure!(
        zip.is_file(),
        "{} is missing: scripts/setup.sh bench fetches it from PyPI",
        zip.display()
    );
    Ok(zip)
}

/// The repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Scripts that are measured beside ours.
pub fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("baselines")
}
