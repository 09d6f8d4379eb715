//! The lower bound for starts by fork: a plain C `fork()` of the same process.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, ensure};

use crate::baselines::{PYTHON, node};
use crate::results::Samples;
use crate::server::Runtime;

const SOURCE: &str = include_str!("../floor/fork.c");

/// Forks of a process that has what [`Runtime::usual`] imports, up to the child's first word, one after the other.
pub fn forks(runtime: Runtime, count: usize) -> anyhow::Result<Samples> {
    let dir = tempfile::Builder::new().prefix("hearth-bench-").tempdir()?;
    let library = compile(dir.path())?;
    let library = library.display();
    let mut command = match runtime {
        Runtime::Python => {
            let script = format!(
                "{}import ctypes, gc\ngc.freeze()\nctypes.CDLL('{library}')",
                runtime.usual()
            );
            let mut command = Command::new(PYTHON);
            command.args(["-I", "-c", &script]);
            command
        }
        Runtime::Node => {
            // It is no addon, which Node says after it has run.
            let script = format!(
                "for (const name of ['http', 'crypto', 'fs/promises']) require(name);\n\
                 try {{ process.dlopen({{ exports: {{}} }}, '{library}'); }} catch {{}}"
            );
            let mut command = Command::new(node());
            command.args(["--single-threaded", "--v8-pool-size=0", "-e", &script]);
            command
        }
    };
    let output = command.env("FORKS", count.to_string()).output()?;
    let mut samples = Samples::default();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        samples.push(Duration::from_nanos(line.parse().context("a time")?));
    }
    ensure!(
        samples.len() == count,
        "{} of {count} forks: {}",
        samples.len(),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(samples)
}

fn compile(dir: &Path) -> anyhow::Result<std::path::PathBuf> {
    let (source, library) = (dir.join("fork.c"), dir.join("fork.so"));
    std::fs::write(&source, SOURCE)?;
    let status = Command::new("cc")
        .args(["-O2", "-shared", "-fPIC", "-o"])
        .args([&library, &source])
        .status()
        .context("the C compiler")?;
    ensure!(status.success(), "the C compiler: {status}");
    Ok(library)
}
