//! JavaScript: the tree with its `node_modules`, where the tool is.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::find::find;
use super::stage::{Stage, StageError};
use super::tool::Tool;

/// How files with benchmarks end, wherever they are.
const ENDINGS: [&str; 3] = [".bench.js", ".bench.mjs", ".bench.cjs"];

/// How scripts end.
const SCRIPTS: [&str; 3] = ["js", "mjs", "cjs"];

/// Directories in which none are looked for.
const LEFT_OUT: [&str; 1] = ["node_modules"];

/// Stages both trees. Returns each one's files with benchmarks, and what the runner must know.
///
/// # Errors
/// A tree without the tool, or with a version of it that is too old, or without a file that was asked for.
pub(super) fn stage(
    stage: &mut Stage,
    tool: Tool,
    trees: &[(&str, &Path)],
    paths: &[String],
) -> Result<(Vec<Vec<String>>, Value), StageError> {
    let mut units = Vec::new();
    for (name, tree) in trees {
        check_version(tool, tree)?;
        let mut found = paths.to_vec();
        if let Some(missing) = paths.iter().find(|path| !tree.join(path).is_file()) {
            let reason = format!("{}: there is no file {missing}", tree.display());
            return Err(StageError::Tree(reason));
        }
        if found.is_empty() {
            found = find(tree, "", &LEFT_OUT, &is_script)?;
        }
        stage.copy(tree, name, true)?;
        units.push(found);
    }
    Ok((units, json!({})))
}

/// Whether a file has benchmarks, by its name and its place.
fn is_script(path: &Path, name: &str, is_all: bool) -> bool {
    let end = path.extension().and_then(OsStr::to_str);
    let is_script = end.is_some_and(|end| SCRIPTS.contains(&end));
    ENDINGS.iter().any(|ending| name.ends_with(ending)) || is_all && is_script
}

/// The first version whose benchmarks can be run one at a time: tinybench 2 has `Bench.remove`, mitata 1 gives `measure` away.
fn version_min(tool: Tool) -> u32 {
    match tool {
        Tool::Mitata => 1,
        _ => 2,
    }
}

fn check_version(tool: Tool, tree: &Path) -> Result<(), StageError> {
    let (name, least) = (tool.name(), version_min(tool));
    let package = tree.join("node_modules").join(name).join("package.json");
    let Ok(text) = fs::read(&package) else {
        let reason = format!(
            "{}: {name} is not in its node_modules: npm install puts it there",
            tree.display()
        );
        return Err(StageError::Tree(reason));
    };
    let package: Value = serde_json::from_slice(&text).unwrap_or_default();
    let version = package["version"].as_str().unwrap_or_default();
    let major = version
        .split('.')
        .next()
        .and_then(|major| major.parse().ok());
    if major.is_none_or(|major: u32| major < least) {
        let reason = format!(
            "{}: {name} {least} or later is needed, and its node_modules have {version:?}",
            tree.display()
        );
        return Err(StageError::Tree(reason));
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
            "node_modules/mitata/package.json",
            "node_modules/tinybench/bench/own.js",
            "words.js",
            "words.bench.mjs",
            "bench/deep/a.js",
            "bench/data.json",
        ] {
            let path = tree.path().join(name);
            fs::create_dir_all(path.parent().expect("it has one")).expect("made");
            fs::write(path, r#"{"version": "2.0.0"}"#).expect("written");
        }
        let trees = [("v1", tree.path())];
        let staged = |paths: &[&str]| {
            let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
            let mut aside = Stage::create().expect("a stage");
            stage(&mut aside, Tool::Tinybench, &trees, &paths)
        };
        let (units, _) = staged(&[]).expect("staged");
        assert_eq!(units, [["bench/deep/a.js", "words.bench.mjs"]]);
        assert_eq!(staged(&["words.js"]).expect("staged").0, [["words.js"]]);
        let error = staged(&["no.js"]).expect_err("there is none").to_string();
        assert!(error.contains("no file no.js"), "{error}");
        let package = |version: &str| {
            let path = tree.path().join("node_modules/mitata/package.json");
            fs::write(path, json!({ "version": version }).to_string()).expect("written");
            let mut aside = Stage::create().expect("a stage");
            stage(&mut aside, Tool::Mitata, &trees, &[])
        };
        package("1.0.0").expect("new enough");
        for old in ["0.1.14", "", "x"] {
            let error = package(old).expect_err("too old").to_string();
            assert!(error.contains("mitata 1 or later is needed"), "{error}");
        }
        fs::remove_dir_all(tree.path().join("node_modules")).expect("removed");
        let error = staged(&[]).expect_err("no tinybench").to_string();
        assert!(error.contains("npm install"), "{error}");
    }
}
