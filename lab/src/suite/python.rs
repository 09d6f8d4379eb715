//! Python: the tree, and the packages that its benchmarks import.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::find::find;
use super::stage::{Stage, StageError, output, program};
use super::tool::Tool;

/// The interpreter whose pip installs, if there is one: that of Hearth's functions, when the server is on this host.
const PYTHON: &str = "/usr/bin/python3";

/// Directories that are no part of a suite: pyperf itself where it is beside the code, and environments.
const LEFT_OUT: [&str; 4] = ["pyperf", "pyperformance", "node_modules", "__pycache__"];

/// What names the packages.
const REQUIREMENTS: &str = "requirements.txt";

/// What must be among the packages: the tool's module.
fn module(tool: Tool) -> &'static str {
    match tool {
        Tool::Pyperf => "pyperf",
        _ => "pytest_benchmark",
    }
}

/// Stages both trees. A tree that has its packages beside its code, as a function has, is taken as it is; for others pip installs what
/// `requirements.txt` names. Returns each one's paths, and what the runner must know.
///
/// # Errors
/// A tree without the tool, a path that is not in it, or pip's own.
pub(super) async fn stage(
    stage: &mut Stage,
    tool: Tool,
    given: Option<&Path>,
    trees: &[(&str, &Path)],
    paths: &[String],
) -> Result<(Vec<Vec<String>>, Value), StageError> {
    let mut units = Vec::new();
    let mut packages = serde_json::Map::new();
    let mut installed: Vec<(String, String)> = Vec::new();
    for (name, tree) in trees {
        for path in paths {
            let path = path.split("::").next().unwrap_or_default();
            if !tree.join(path).exists() {
                let reason = format!("{}: there is no {path}", tree.display());
                return Err(StageError::Tree(reason));
            }
        }
        units.push(match (tool, paths) {
            (Tool::Pyperf, paths) => scripts(tree, paths)?,
            (_, []) => vec![".".to_owned()],
            (_, given) => given.to_vec(),
        });
        stage.copy(tree, name, false)?;
        if tree.join(module(tool)).is_dir() {
            packages.insert((*name).to_owned(), json!(name));
            continue;
        }
        let file = tree.join(REQUIREMENTS);
        let Ok(text) = fs::read_to_string(&file) else {
            let reason = format!(
                "{}: {} is neither installed in it (pip install -t) nor is there a {REQUIREMENTS}",
                tree.display(),
                tool.name()
            );
            return Err(StageError::Tree(reason));
        };
        let same = installed.iter().find(|(other, _)| *other == text);
        let to = match same {
            Some((_, to)) => to.clone(),
            None => {
                let to = format!("packages-{name}");
                install(stage, tool, given, tree, &to).await?;
                installed.push((text, to.clone()));
                to
            }
        };
        packages.insert((*name).to_owned(), json!(to));
    }
    Ok((units, json!({ "packages": packages })))
}

/// A tree's scripts that import pyperf: those given, those below directories given, and without any those whose names say that they are
/// benchmarks.
fn scripts(tree: &Path, paths: &[String]) -> Result<Vec<String>, StageError> {
    let imports = |path: &Path| {
        let text = fs::read_to_string(path).unwrap_or_default();
        let mut lines = text.lines().map(str::trim_start);
        lines.any(|line| line.starts_with("import pyperf") || line.starts_with("from pyperf"))
    };
    let is_script = |path: &Path, name: &str, is_all: bool| {
        let Some(name) = name.strip_suffix(".py") else {
            return false;
        };
        let is_named = ["bench_", "bm_"]
            .iter()
            .any(|start| name.starts_with(start))
            || name.ends_with("_bench")
            || name == "run_benchmark";
        (is_all || is_named) && imports(path)
    };
    if paths.is_empty() {
        return find(tree, "", &LEFT_OUT, &is_script);
    }
    let mut found = Vec::new();
    for path in paths {
        match tree.join(path).is_dir() {
            true => found.extend(find(tree, path, &LEFT_OUT, &is_script)?),
            false => found.push(path.clone()),
        }
    }
    Ok(found)
}

async fn install(
    stage: &mut Stage,
    tool: Tool,
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
    if !target.join(module(tool)).is_dir() {
        let reason = format!(
            "{}: does not install {}",
            tree.join(REQUIREMENTS).display(),
            tool.name()
        );
        return Err(StageError::Tree(reason));
    }
    stage.copy(&target, to, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_of_pyperf_are_found_by_their_names_and_what_they_import() {
        let tree = tempfile::tempdir().expect("a directory");
        for (name, text) in [
            ("bench_words.py", "import pyperf\n"),
            (
                "bm_json/run_benchmark.py",
                "    from pyperf import Runner\n",
            ),
            (
                "benchmarks/deep/any.py",
                "import os, sys\nimport pyperf as p\n",
            ),
            ("benchmarks/helper.py", "import json\n"),
            ("bench_other.py", "import pytest\n"),
            ("words.py", "import pyperf\n"),
            ("pyperf/bench_own.py", "import pyperf\n"),
            (".venv/bench_hidden.py", "import pyperf\n"),
            ("tools/speed.py", "import pyperf\n"),
        ] {
            let path = tree.path().join(name);
            fs::create_dir_all(path.parent().expect("it has one")).expect("made");
            fs::write(path, text).expect("written");
        }
        let found = |paths: &[&str]| {
            let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
            scripts(tree.path(), &paths).expect("found")
        };
        let all = [
            "bench_words.py",
            "benchmarks/deep/any.py",
            "bm_json/run_benchmark.py",
        ];
        assert_eq!(found(&[]), all);
        assert_eq!(found(&["."]), all);
        assert_eq!(
            found(&["tools", "words.py"]),
            ["tools/speed.py", "words.py"]
        );
    }
}
