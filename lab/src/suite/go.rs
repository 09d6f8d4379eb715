//! Go: the tree, the tool chain that compiles it, and a build cache in which all but the link is done.
//!
//! The cache is filled by compiling both trees' tests once, here; in the sandbox it is read-only, and `cacheprog.py` puts a writable one in
//! front of it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::process::Command;

use super::stage::{Stage, StageError, output, program};

/// Where Go's own packages and the distributions put it, beside PATH.
const PLACES: [&str; 3] = ["go", "/usr/local/go/bin/go", "/usr/bin/go"];

/// The first version whose build cache may be a program (`GOCACHEPROG`).
const MINOR_MIN: u32 = 24;

/// What `go test -c` needs of its tools.
const TOOLS: [&str; 4] = ["asm", "compile", "link", "vet"];

/// Paths must not be part of what is compiled: they are others in the sandbox.
const FLAGS: [&str; 3] = ["-trimpath", "-buildvcs=false", "-vet=off"];

/// A tool chain.
#[derive(Debug)]
struct Toolchain {
    program: PathBuf,
    root: PathBuf,
    tools: PathBuf,
    architecture: String,
}

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
/// No Go, one that is too old, a tree that is no module or does not compile.
pub(super) async fn stage(
    stage: &mut Stage,
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
    let toolchain = Toolchain::find(given).await?;
    let patterns: Vec<&str> = match patterns {
        [] => vec!["./..."],
        given => given.iter().map(String::as_str).collect(),
    };
    let (mut units, mut standard) = (Vec::new(), BTreeSet::new());
    for (name, tree) in trees {
        stage.copy(tree, name, false)?;
        let root = stage.path(name);
        toolchain.vendor(&root).await?;
        let found = toolchain.packages(&root, &patterns).await?;
        for unit in &found {
            toolchain.compile(stage, &root, unit).await?;
            standard.extend(toolchain.standard(&root, unit).await?);
        }
        units.push(found);
    }
    toolchain.copy(stage, &standard)?;
    Ok((
        units,
        json!({ "flags": FLAGS, "environment": toolchain.environment() }),
    ))
}

impl Toolchain {
    async fn find(given: Option<&Path>) -> Result<Self, StageError> {
        let here = Path::new("/");
        let names = given.map_or_else(|| PLACES.map(Path::new).to_vec(), |given| vec![given]);
        let mut last = None;
        for name in names {
            let mut command = program(name, here, &["env", "-json"]);
            command.env("GOTOOLCHAIN", "local");
            match output(&mut command).await {
                Ok(text) => return Self::of(name, &text),
                Err(error) => last = last.or(Some(error)),
            }
        }
        let reason = last.map_or_else(String::new, |error| error.to_string());
        let reason = format!("no Go tool chain was found ({reason}); --go names one");
        Err(StageError::Tree(reason))
    }

    /// By what `go env -json` says.
    fn of(name: &Path, text: &str) -> Result<Self, StageError> {
        let value: Value = serde_json::from_str(text).unwrap_or_default();
        let of = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
        let version = of("GOVERSION");
        let mut parts = version.trim_start_matches("go").split('.');
        let minor = match (parts.next(), parts.next()) {
            (Some("1"), Some(minor)) => leading_number(minor),
            _ => None,
        };
        if minor.is_none_or(|minor| minor < MINOR_MIN) {
            let reason = format!(
                "{}: Go 1.{MINOR_MIN} or later is needed, and this is {version:?}",
                name.display()
            );
            return Err(StageError::Tree(reason));
        }
        let root = PathBuf::from(of("GOROOT"));
        Ok(Self {
            program: root.join("bin/go"),
            tools: of("GOTOOLDIR").into(),
            architecture: of("GOHOSTARCH"),
            root,
        })
    }

    /// What must be the same here and in the sandbox, so that the cache is found.
    fn environment(&self) -> Value {
        json!({
            "CGO_ENABLED": "0", "GO111MODULE": "on", "GOARCH": self.architecture, "GOENV": "off", "GOFLAGS": "", "GOOS": "linux",
            "GOPROXY": "off", "GOSUMDB": "off", "GOTOOLCHAIN": "local", "GOWORK": "off",
        })
    }

    fn go(&self, directory: &Path, arguments: &[&str]) -> Command {
        let mut command = program(&self.program, directory, arguments);
        for (name, value) in self.environment().as_object().into_iter().flatten() {
            command.env(name, value.as_str().unwrap_or_default());
        }
        for name in [
            "GOCACHEPROG",
            "GOEXPERIMENT",
            "GOAMD64",
            "GOARM64",
            "GODEBUG",
            "GOROOT",
        ] {
            command.env_remove(name);
        }
        command
    }

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
                let text = std::fs::read_to_string(path).unwrap_or_default();
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
        let package = format!("./{unit}");
        let mut arguments = vec!["test", "-c", "-o", "/dev/null"];
        arguments.extend(FLAGS);
        arguments.push(&package);
        let mut command = self.go(root, &arguments);
        // Removed with the stage, if this is cancelled.
        command.env("GOTMPDIR", stage.aside("tmp")?);
        output(command.env("GOCACHE", stage.path("cache")))
            .await
            .map(drop)
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

/// Objects one after another, as `go list -json` prints them.
fn read(text: &str) -> Result<Vec<Package>, StageError> {
    let packages = serde_json::Deserializer::from_str(text).into_iter();
    let packages: Result<Vec<Package>, _> = packages.collect();
    packages.map_err(|error| StageError::Program("go list".to_owned(), error.to_string()))
}

fn leading_number(text: &str) -> Option<u32> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    text[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tool_chains_with_a_cache_program_are_taken() {
        let of = |version: &str| {
            let text = json!({"GOVERSION": version, "GOROOT": "/go", "GOTOOLDIR": "/go/tools", "GOHOSTARCH": "arm64"});
            Toolchain::of(Path::new("go"), &text.to_string())
        };
        let found = of("go1.24rc1").expect("new enough");
        assert_eq!(found.program, Path::new("/go/bin/go"));
        assert_eq!(found.environment()["GOARCH"], "arm64");
        assert!(of("go1.26.8").is_ok());
        for old in ["go1.23.4", "go1", "devel", ""] {
            let error = of(old).expect_err("too old").to_string();
            assert!(error.contains("1.24 or later"), "{error}");
        }
    }

    #[test]
    fn packages_are_read_one_after_another() {
        let text = "{\"Dir\": \"/a\", \"XTestGoFiles\": [\"a_test.go\"]}\n{\"Dir\": \"/b\", \"Standard\": true}\n";
        let found = read(text).expect("two");
        assert_eq!(found[0].external_test_go_files, ["a_test.go"]);
        assert!(found[1].standard && !found[0].standard);
        assert!(read("{").is_err());
    }
}
