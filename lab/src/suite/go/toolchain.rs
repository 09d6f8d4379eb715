//! A tool chain of Go's, and how it is called.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tokio::process::Command;

use super::super::stage::{StageError, output, program};

/// Where Go's own packages and the distributions put it, beside PATH.
const PLACES: [&str; 3] = ["go", "/usr/local/go/bin/go", "/usr/bin/go"];

/// The first version whose build cache may be a program (`GOCACHEPROG`).
const MINOR_MIN: u32 = 24;

/// A tool chain.
#[derive(Debug)]
pub(super) struct Toolchain {
    pub program: PathBuf,
    pub root: PathBuf,
    pub tools: PathBuf,
    pub architecture: String,
    compiler: String,
    cgo: bool,
}

impl Toolchain {
    /// The one that is given, or found. With `cgo` there must be a C compiler, too.
    pub(super) async fn find(given: Option<&Path>, cgo: bool) -> Result<Self, StageError> {
        let here = Path::new("/");
        let names = given.map_or_else(|| PLACES.map(Path::new).to_vec(), |given| vec![given]);
        let mut last = None;
        for name in names {
            let mut command = program(name, here, &["env", "-json"]);
            command.env("GOTOOLCHAIN", "local");
            match output(&mut command).await {
                Ok(text) => {
                    let found = Self::of(name, &text, cgo)?;
                    found.check_compiler().await?;
                    return Ok(found);
                }
                Err(error) => last = last.or(Some(error)),
            }
        }
        let reason = last.map_or_else(String::new, |error| error.to_string());
        let reason = format!("no Go tool chain was found ({reason}); --go names one");
        Err(StageError::Tree(reason))
    }

    /// By what `go env -json` says.
    fn of(name: &Path, text: &str, cgo: bool) -> Result<Self, StageError> {
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
            compiler: of("CC"),
            cgo,
            root,
        })
    }

    /// Whether the C compiler that cgo calls is there.
    async fn check_compiler(&self) -> Result<(), StageError> {
        if !self.cgo {
            return Ok(());
        }
        let mut words = self.compiler.split_whitespace();
        let name = words.next().unwrap_or_default();
        let mut command = program(Path::new(name), Path::new("/"), &["--version"]);
        output(&mut command).await.map(drop).map_err(|error| {
            StageError::Tree(format!(
                "cgo needs a C compiler here ({error}); the variable CC names one"
            ))
        })
    }

    /// What must be the same here and in the sandbox, so that the cache is found.
    pub(super) fn environment(&self) -> Value {
        json!({
            "CGO_ENABLED": if self.cgo { "1" } else { "0" }, "GO111MODULE": "on", "GOARCH": self.architecture, "GOENV": "off", "GOFLAGS": "", "GOOS": "linux",
            "GOPROXY": "off", "GOSUMDB": "off", "GOTOOLCHAIN": "local", "GOWORK": "off",
        })
    }

    /// The command, for [`output`].
    pub(super) fn go(&self, directory: &Path, arguments: &[&str]) -> Command {
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
            Toolchain::of(Path::new("go"), &text.to_string(), false)
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
}
