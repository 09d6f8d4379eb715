//! `python3`.

use std::path::Path;
use std::process::Command;

use super::RuntimeFiles;

/// The oldest Python that the worker's extension can be loaded into (its stable ABI).
const MIN_PYTHON: (u32, u32) = (3, 11);

pub(super) fn probe(dir: &Path, python: &Path) -> RuntimeFiles {
    let dir = dir.join("python");
    let version = match super::missing(&dir.join("bootstrap.py")) {
        Some(reason) => Err(reason),
        None => python_version(python),
    };
    RuntimeFiles {
        dir,
        name: "python",
        command: vec![
            python.display().to_string(),
            "-I".into(),
            "/opt/hearth/python/bootstrap.py".into(),
        ],
        heap_flag: None,
        version,
        fork: Ok(()),
        becomes: None,
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
        _ => Err(format!("cannot read the version of {}", python.display())),
    }
}
