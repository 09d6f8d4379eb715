//! Python: the tree, and the packages that its benchmarks import.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::stage::{Stage, StageError, output, program};

/// The interpreter whose pip installs, if there is one: that of Hearth's functions, when the server is on this host.
const PYTHON: &str = "/usr/bin/python3";

/// What must be among the packages.
const TOOL: &str = "pytest_benchmark";

/// What names the packages.
const REQUIREMENTS: &str = "requirements.txt";

/// Stages both trees. A tree that has its packages beside its code, as a function has, is taken as it is; for others pip installs what
/// `requirements.txt` names. Returns each one's paths, and what the runner must know.
///
/// # Errors
/// A tree without pytest-benchmark, a path that is not in it, or pip's own.
pub(super) async fn stage(
    stage: &mut Stage,
    given: Option<&Path>,
    trees: &[(&str, &Path)],
    paths: &[String],
) -> Result<(Vec<Vec<String>>, Value), StageError> {
    let units: Vec<String> = match paths {
        [] => vec![".".to_owned()],
        given => given.to_vec(),
    };
    let mut packages = serde_json::Map::new();
    let mut installed: Vec<(String, String)> = Vec::new();
    for (name, tree) in trees {
        for unit in &units {
            let path = unit.split("::").next().unwrap_or_default();
            if !tree.join(path).exists() {
                let reason = format!("{}: there is no {path}", tree.display());
                return Err(StageError::Tree(reason));
            }
        }
        stage.copy(tree, name, false)?;
        if tree.join(TOOL).is_dir() {
            packages.insert((*name).to_owned(), json!(name));
            continue;
        }
        let file = tree.join(REQUIREMENTS);
        let Ok(text) = fs::read_to_string(&file) else {
            let reason = format!(
                "{}: pytest-benchmark is neither installed in it (pip install -t) nor is there a {REQUIREMENTS}",
                tree.display()
            );
            return Err(StageError::Tree(reason));
        };
        let same = installed.iter().find(|(other, _)| *other == text);
        let to = match same {
            Some((_, to)) => to.clone(),
            None => {
                let to = format!("packages-{name}");
                install(stage, given, tree, &to).await?;
                installed.push((text, to.clone()));
                to
            }
        };
        packages.insert((*name).to_owned(), json!(to));
    }
    let units = trees.iter().map(|_| units.clone()).collect();
    Ok((units, json!({ "packages": packages })))
}

async fn install(
    stage: &mut Stage,
    given: Option<&Path>,
    tree: &Path,
    to: &str,
) -> Result<(), StageError> {
    let python = match given {
        Some(python) => python,
        None if Path::new(PYTHON).is_file() => Path::new(PYTHON),
        None => Path::new("python3"),
    };
    let target = stage.aside(to)?;
    let shown = target.to_string_lossy();
    let arguments = [
        "-m",
        "pip",
        "install",
        "--disable-pip-version-check",
        "--no-input",
        "--no-compile",
        "--quiet",
        "--root-user-action=ignore",
        "--target",
        &shown,
        "-r",
        REQUIREMENTS,
    ];
    let mut command = program(python, tree, &arguments);
    // Removed with the stage, if this is cancelled.
    command.env("TMPDIR", stage.aside("tmp")?);
    output(&mut command).await?;
    if !target.join(TOOL).is_dir() {
        let reason = format!(
            "{}: does not install pytest-benchmark",
            tree.join(REQUIREMENTS).display()
        );
        return Err(StageError::Tree(reason));
    }
    stage.copy(&target, to, false)
}
