//! JavaScript: the tree with its `node_modules`, where the tool is.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::stage::{Stage, StageError};

/// How files with benchmarks end, wherever they are.
const ENDINGS: [&str; 3] = [".bench.js", ".bench.mjs", ".bench.cjs"];

/// Directories whose scripts all have benchmarks.
const DIRECTORIES: [&str; 3] = ["bench", "benchmark", "benchmarks"];

/// How scripts end.
const SCRIPTS: [&str; 3] = ["js", "mjs", "cjs"];

/// Deepest directory that is looked into.
const DEPTH_MAX: usize = 16;

/// Stages both trees. Returns each one's files with benchmarks, and what the runner must know.
///
/// # Errors
/// A tree without tinybench, or without a file that was asked for.
pub(super) fn stage(
    stage: &mut Stage,
    trees: &[(&str, &Path)],
    paths: &[String],
) -> Result<(Vec<Vec<String>>, Value), StageError> {
    let mut units = Vec::new();
    for (name, tree) in trees {
        if !tree.join("node_modules/tinybench/package.json").is_file() {
            let reason = format!(
                "{}: tinybench is not in its node_modules: npm install puts it there",
                tree.display()
            );
            return Err(StageError::Tree(reason));
        }
        let mut found = paths.to_vec();
        if let Some(missing) = paths.iter().find(|path| !tree.join(path).is_file()) {
            let reason = format!("{}: there is no file {missing}", tree.display());
            return Err(StageError::Tree(reason));
        }
        if found.is_empty() {
            search(tree, "", false, DEPTH_MAX, &mut found)?;
            found.sort();
        }
        stage.copy(tree, name, true)?;
        units.push(found);
    }
    Ok((units, json!({})))
}

fn search(
    directory: &Path,
    prefix: &str,
    is_all: bool,
    depth: usize,
    found: &mut Vec<String>,
) -> Result<(), StageError> {
    let failed = |error| StageError::File(directory.to_owned(), error);
    if depth == 0 {
        return Ok(());
    }
    for entry in fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        let below = format!("{prefix}{name}");
        if entry.file_type().map_err(failed)?.is_dir() {
            if name == "node_modules" || name.starts_with('.') {
                continue;
            }
            let is_all = is_all || DIRECTORIES.contains(&name.as_ref());
            search(&path, &format!("{below}/"), is_all, depth - 1, found)?;
        } else if ENDINGS.iter().any(|ending| name.ends_with(ending))
            || is_all
                && path
                    .extension()
                    .and_then(OsStr::to_str)
                    .is_some_and(|end| SCRIPTS.contains(&end))
        {
            found.push(below);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_with_benchmarks_are_found_by_their_names() {
        let tree = tempfile::tempdir().expect("a directory");
        for name in [
            "node_modules/tinybench/package.json",
            "node_modules/tinybench/bench/own.js",
            "words.js",
            "words.bench.mjs",
            "bench/deep/a.js",
            "bench/data.json",
        ] {
            let path = tree.path().join(name);
            fs::create_dir_all(path.parent().expect("it has one")).expect("made");
            fs::write(path, "{}").expect("written");
        }
        let trees = [("v1", tree.path())];
        let staged = |paths: &[&str]| {
            let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
            stage(&mut Stage::create().expect("a stage"), &trees, &paths)
        };
        let (units, _) = staged(&[]).expect("staged");
        assert_eq!(units, [["bench/deep/a.js", "words.bench.mjs"]]);
        assert_eq!(staged(&["words.js"]).expect("staged").0, [["words.js"]]);
        let error = staged(&["no.js"]).expect_err("there is none").to_string();
        assert!(error.contains("no file no.js"), "{error}");
        fs::remove_dir_all(tree.path().join("node_modules")).expect("removed");
        let error = staged(&[]).expect_err("no tinybench").to_string();
        assert!(error.contains("npm install"), "{error}");
    }
}
