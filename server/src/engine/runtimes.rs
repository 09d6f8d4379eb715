//! The language runtimes of this node, and the uids their sandboxes run as.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};

use crate::model::{InvalidField, Runtime};

/// The oldest Python that the worker's extension can be loaded into (its stable ABI).
const MIN_PYTHON: (u32, u32) = (3, 11);

/// One language runtime.
#[derive(Debug, Clone)]
pub struct RuntimeFiles {
    /// Host directory with its bootstrap and extension.
    pub dir: PathBuf,
    /// Directory name below `/opt/hearth` inside the sandbox.
    pub name: &'static str,
    /// What the template executes, as seen inside.
    pub argv: Vec<String>,
    /// The interpreter's version, or why it cannot be used.
    pub version: Result<String, String>,
}

/// All of them.
#[derive(Debug, Clone)]
pub struct Runtimes {
    /// `python3`.
    pub python: RuntimeFiles,
}

impl Runtimes {
    /// Looks for the interpreters and for the runtimes' files below `dir`. Runs each interpreter once, blocking.
    pub fn probe(dir: &Path, python: &Path) -> Self {
        let python_dir = dir.join("python");
        let version = if python_dir.join("bootstrap.py").is_file() {
            python_version(python)
        } else {
            Err(format!(
                "{} is missing; build it with `make build`",
                python_dir.join("bootstrap.py").display()
            ))
        };
        Self {
            python: RuntimeFiles {
                dir: python_dir,
                name: "python",
                argv: vec![
                    python.display().to_string(),
                    "-I".into(),
                    "/opt/hearth/python/bootstrap.py".into(),
                ],
                version,
            },
        }
    }

    /// Whether functions of this runtime can be deployed.
    ///
    /// # Errors
    /// [`InvalidField`] for the field `runtime`.
    pub fn check(&self, runtime: Runtime) -> Result<(), InvalidField> {
        let problem = match runtime {
            Runtime::Python3 => match &self.python.version {
                Ok(_) => return Ok(()),
                Err(reason) => reason.clone(),
            },
            Runtime::Node => "this version of Hearth runs python3 only".into(),
        };
        let value = serde_json::to_string(&runtime).unwrap_or_default();
        Err(InvalidField {
            field: "runtime".into(),
            value,
            rule: format!("is not available on this node: {problem}"),
        })
    }

    /// For `GET /api/v1/node`.
    pub fn describe(&self) -> Value {
        let entry = |version: Result<&String, String>| match version {
            Ok(version) => json!({ "available": true, "reason": null, "version": version }),
            Err(reason) => json!({ "available": false, "reason": reason, "version": null }),
        };
        json!({
            "python3": entry(self.python.version.as_ref().map_err(Clone::clone)),
            "node": entry(Err("this version of Hearth runs python3 only".into())),
        })
    }
}

fn python_version(python: &Path) -> Result<String, String> {
    let script = "import sys; print('%d.%d.%d' % sys.version_info[:3])";
    let output = Command::new(python)
        .args(["-I", "-S", "-c", script])
        .env_clear()
        .output()
        .map_err(|error| format!("{} cannot be run: {error}", python.display()))?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let mut parts = text.split('.').map(str::parse::<u32>);
    match (parts.next(), parts.next()) {
        (Some(Ok(major)), Some(Ok(minor))) if (major, minor) >= MIN_PYTHON => Ok(text),
        (Some(Ok(_)), Some(Ok(_))) => Err(format!(
            "{} is Python {text}; {}.{} or newer is needed",
            python.display(),
            MIN_PYTHON.0,
            MIN_PYTHON.1
        )),
        _ => Err(format!("{} does not say its version", python.display())),
    }
}

/// First host uid given to sandboxes: above systemd-nspawn's container range, below 2^31, and used by no distribution.
const FIRST_UID: u32 = 1_900_000_000;
/// Pairs of uids before they are used again: far more than sandboxes can be alive at once.
const PAIRS: u32 = 100_000_000;

/// Hands out pairs of host uids (init; template and instances): each sandbox has its own.
#[derive(Debug, Default)]
pub struct UidRange {
    next: AtomicU32,
}

impl UidRange {
    /// The first uid of a fresh pair.
    pub fn take(&self) -> u32 {
        FIRST_UID + 2 * (self.next.fetch_add(1, Ordering::Relaxed) % PAIRS)
    }
}
