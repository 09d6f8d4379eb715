//! Go: the tree, the tool chain that compiles it, and a build cache in which all but the link is done.
//!
//! The cache is filled by compiling both trees' tests once, here; in the sandbox it is read-only, and `cacheprog.py` puts a writable one in
//! front of it. Where packages need a C compiler, which a sandbox need not have, the test binaries themselves are staged instead.

mod toolchain;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};

use self::toolchain::Toolchain;
use super::find::find;
use super::stage::{Stage, StageError, output, program};

/// What `go test -c` needs of its tools.
const TOOLS: [&str; 4] = ["asm", "compile", "link", "vet"];

/// Where test binaries are in the archive that are linked here.
const BINARIES: &str = "binaries";

/// Beside what the compiler says of a tree with cgo in it.
const CGO_HINT: &str =
    "(the tree has packages that import \"C\", which are left out without --cgo)";

/// Paths must not be part of what is compiled: they are others in the sandbox.
const FLAGS: [&str; 3] = ["-trimpath", "-buildvcs=false", "-vet=off"];

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Package {
    dir: PathBuf,
    #[serde(default)]
    standard: bool,
    #[serde(default)]
    embed_files: Vec<String>,
    #[serde(default)]
    test_go_files: Vec<String>,
    #[serde(default, rename = "XTestGoFiles")]
    external_test_go_files: Vec<String>,
}

/// Stages both trees (`v1`, `v2`) and what compiles them. Returns each one's packages with benchmarks, and what the runner must know.
///
/// # Errors
/// No Go, one that is too old, no C compiler where `cgo` needs one, a tree that is no module or does not compile.
pub(super) async fn stage(
    stage: &mut Stage,
    cgo: bool,
    given: Option<&Path>,
    trees: &[(&str, &Path)],
    patterns: &[String],
) -> Result<(Vec<Vec<String>>, Value), StageError> {
    for (_, tree) in trees {
        if !tree.join("go.mod").is_file() {
            let reason = format!("{}: not a Go module: there is no go.mod", tree.display());
            return Err(StageError::Tree(reason));
        }
    }
    let toolchain = Toolchain::find(given, cgo).await?;
    let patterns: Vec<&str> = match patterns {
        [] => vec!["./..."],
        given => given.iter().map(String::as_str).collect(),
    };
    let (mut units, mut standard) = (Vec::new(), BTreeSet::new());
    let mut binaries = serde_json::Map::new();
    for (name, tree) in trees {
        stage.copy(tree, name, false)?;
        let root = stage.path(name);
        toolchain.vendor(&root).await?;
        let found = toolchain.packages(&root, &patterns).await?;
        if found.is_empty() && !cgo && has_cgo(&root) {
            let reason = format!("{}: no benchmarks {CGO_HINT}", tree.display());
            return Err(StageError::Tree(reason));
        }
        for unit in &found {
            if cgo {
                let binary = binaries.len().to_string();
                toolchain.link(stage, &root, unit, &binary).await?;
                binaries.insert(format!("{name}/{unit}"), json!(binary));
                continue;
            }
            toolchain.compile(stage, &root, unit).await?;
            standard.extend(toolchain.standard(&root, unit).await?);
        }
        units.push(found);
    }
    let environment = toolchain.environment();
    let description = if cgo {
        json!({ "binaries": binaries, "environment": environment })
    } else {
        toolchain.copy(stage, &standard)?;
        json!({ "flags": FLAGS, "environment": environment })
    };
    Ok((units, description))
}

impl Toolchain {
    /// Puts what the module requires beside it, from the user's module cache or proxy.
    async fn vendor(&self, root: &Path) -> Result<(), StageError> {
        if root.join("vendor").is_dir() {
            return Ok(());
        }
        let mut command = program(&self.program, root, &["mod", "vendor"]);
        command.envs([("GOWORK", "off"), ("GOTOOLCHAIN", "local"), ("GOFLAGS", "")]);
        output(&mut command).await.map(drop)
    }

    /// The directories of the packages that have benchmarks.
    async fn packages(&self, root: &Path, patterns: &[&str]) -> Result<Vec<String>, StageError> {
        let mut arguments = vec!["list", "-json=Dir,TestGoFiles,XTestGoFiles"];
        arguments.extend(patterns);
        let text = output(&mut self.go(root, &arguments)).await?;
        let mut units = BTreeSet::new();
        for package in read(&text)? {
            let files = package
                .test_go_files
                .iter()
                .chain(&package.external_test_go_files);
            let mut paths = files.map(|file| package.dir.join(file));
            let has_some = paths.any(|path| {
                let text = fs::read_to_string(path).unwrap_or_default();
                text.lines().any(|line| line.starts_with("func Benchmark"))
            });
            if has_some && let Ok(unit) = package.dir.strip_prefix(root) {
                let unit = unit.to_string_lossy().into_owned();
                units.insert(if unit.is_empty() {
                    ".".to_owned()
                } else {
                    unit
                });
            }
        }
        Ok(units.into_iter().collect())
    }

    /// Fills the cache. The binary itself is of no use: it is linked in the sandbox.
    async fn compile(&self, stage: &Stage, root: &Path, unit: &str) -> Result<(), StageError> {
        let cache = stage.path("cache");
        let done = self.test(stage, root, unit, Path::new("/dev/null"), &cache);
        done.await.map_err(|error| match error {
            StageError::Failed(what, said) if has_cgo(root) => {
                StageError::Failed(what, format!("{said}\n{CGO_HINT}"))
            }
            error => error,
        })
    }

    /// Stages a package's test binary.
    async fn link(
        &self,
        stage: &mut Stage,
        root: &Path,
        unit: &str,
        binary: &str,
    ) -> Result<(), StageError> {
        let to = stage.aside("tests")?.join(binary);
        let cache = stage.aside("cache")?;
        self.test(stage, root, unit, &to, &cache).await?;
        let staged = stage.path(BINARIES).join(binary);
        stage.copy_file(&to, &staged)
    }

    async fn test(
        &self,
        stage: &Stage,
        root: &Path,
        unit: &str,
        binary: &Path,
        cache: &Path,
    ) -> Result<(), StageError> {
        let (package, binary) = (format!("./{unit}"), binary.to_string_lossy());
        let mut arguments = vec!["test", "-c", "-o", &binary];
        arguments.extend(FLAGS);
        arguments.push(&package);
        let mut command = self.go(root, &arguments);
        // Removed with the stage, if this is cancelled.
        command.env("GOTMPDIR", stage.aside("tmp")?);
        output(command.env("GOCACHE", cache)).await.map(drop)
    }

    /// Files of the standard library that a package's tests are compiled from.
    async fn standard(&self, root: &Path, unit: &str) -> Result<BTreeSet<PathBuf>, StageError> {
        let package = format!("./{unit}");
        let arguments = [
            "list",
            "-deps",
            "-test",
            "-json=Dir,Standard,EmbedFiles",
            &package,
        ];
        let text = output(&mut self.go(root, &arguments)).await?;
        let mut files = BTreeSet::new();
        for package in read(&text)?.into_iter().filter(|package| package.standard) {
            files.extend(
                package
                    .embed_files
                    .iter()
                    .map(|file| package.dir.join(file)),
            );
            files.insert(package.dir);
        }
        Ok(files)
    }

    /// As much of the tool chain as links, and compiles what is not in the cache.
    fn copy(&self, stage: &mut Stage, standard: &BTreeSet<PathBuf>) -> Result<(), StageError> {
        let go = stage.path("go");
        let tools = format!("pkg/tool/linux_{}", self.architecture);
        stage.copy_file(&self.program, &go.join("bin/go"))?;
        for tool in TOOLS {
            stage.copy_file(&self.tools.join(tool), &go.join(&tools).join(tool))?;
        }
        for file in ["VERSION", "go.env", "src/go.mod", "src/vendor/modules.txt"] {
            let from = self.root.join(file);
            if from.is_file() {
                stage.copy_file(&from, &go.join(file))?;
            }
        }
        stage.copy_files(&self.root.join("pkg/include"), "go/pkg/include", |_| true)?;
        let is_test = |path: &Path| path.to_string_lossy().ends_with("_test.go");
        for path in standard {
            let Ok(below) = path.strip_prefix(&self.root) else {
                continue;
            };
            let to = Path::new("go").join(below);
            if path.is_dir() {
                stage.copy_files(path, &to.to_string_lossy(), |path| !is_test(path))?;
            } else {
                let to = stage.root().join(to);
                stage.copy_file(path, &to)?;
            }
        }
        Ok(())
    }
}

/// Whether a module, but not what it requires, has a file with cgo.
fn has_cgo(root: &Path) -> bool {
    let is_cgo = |path: &Path, name: &str, _| {
        let text = || fs::read_to_string(path).unwrap_or_default();
        name.ends_with(".go") && text().lines().any(|line| line.trim() == "import \"C\"")
    };
    find(root, "", &["vendor", "testdata"], &is_cgo).is_ok_and(|found| !found.is_empty())
}

/// Objects one after another, as `go list -json` prints them.
fn read(text: &str) -> Result<Vec<Package>, StageError> {
    let packages = serde_json::Deserializer::from_str(text).into_iter();
    let packages: Result<Vec<Package>, _> = packages.collect();
    packages.map_err(|error| StageError::Program("go list".to_owned(), error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_read_one_after_another() {
        let text = "{\"Dir\": \"/a\", \"XTestGoFiles\": [\"a_test.go\"]}\n{\"Dir\": \"/b\", \"Standard\": true}\n";
        let found = read(text).expect("two");
        assert_eq!(found[0].external_test_go_files, ["a_test.go"]);
        assert!(found[1].standard && !found[0].standard);
        assert!(read("{").is_err());
    }
}
