//! Finds CRIU and tests whether it works on this kernel.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use hearth_init::Outcome;
use hearth_init::criu::CriuProgram;
use hearth_init::fields::Fields as _;

use crate::settings::{CRIU_SETTING, CriuChoice};

/// Where a private copy is looked for, in the directory of the executable and those above it: beside an installed
/// server, and where `make setup` puts it.
const PRIVATE: [&str; 2] = ["criu", ".tools/criu"];
/// How many directories up: tests lie in `target/debug/deps`.
const LEVELS: usize = 5;
/// The program in a private copy, which has the layout of a distribution's root.
const PROGRAM: &str = "usr/sbin/criu";
/// Libraries without code in a private copy, for restores.
const LIGHT: &str = "light";
/// The first version that takes the image's location in a request.
const MINIMUM: (u32, u32) = (3, 19);
/// Where a distribution installs it.
const SYSTEM: [&str; 3] = ["/usr/sbin/criu", "/usr/bin/criu", "/usr/local/sbin/criu"];
/// Value of the setting that switches images off.
const OFF: &str = "off";

/// A CRIU that works here.
#[derive(Debug, Clone)]
pub struct Criu {
    /// How to run it.
    pub program: CriuProgram,
    /// "4.1.1".
    pub version: String,
}

impl Criu {
    /// Looks for a CRIU and has it check the kernel, blocking for some 50 ms. What it finds out about the kernel is kept
    /// in `dir`.
    ///
    /// # Errors
    /// The reason, in one line.
    pub fn find(init: &Path, dir: &Path, choice: &CriuChoice) -> Result<Self, String> {
        let kdat = dir.join("criu.kdat");
        let mut program = program(choice, kdat)?;
        let version = version(&program, None)?;
        if !is_new_enough(&version) {
            let (major, minor) = MINIMUM;
            let reason = format!("CRIU {version} is too old; {major}.{minor} or newer is needed");
            return Err(reason);
        }
        program.light = program
            .dir
            .join(LIGHT)
            .is_dir()
            .then(|| LIGHT.to_owned())
            .filter(|light| self::version(&program, Some(light)).is_ok());
        let problem = |reason: String| format!("CRIU {version} does not work here: {reason}");
        let output = Command::new(init)
            .arg("criu")
            .arg(&program.kdat)
            .args(command_line(&program, None))
            .env_clear()
            .stdin(Stdio::null())
            .output()
            .map_err(|error| problem(error.to_string()))?;
        let report = Outcome::from_bytes(&output.stdout)
            .map_err(|error| problem(format!("{}: {error}", init.display())))?;
        match report.error {
            Some(error) => Err(problem(error)),
            None => Ok(Self { program, version }),
        }
    }
}

fn program(choice: &CriuChoice, kdat: PathBuf) -> Result<CriuProgram, String> {
    if let CriuChoice::Never(reason) = choice {
        return Err(reason.clone());
    }
    if let CriuChoice::Named(path) = choice {
        if path == Path::new(OFF) {
            return Err(format!("disabled by {CRIU_SETTING}={OFF}"));
        }
        let found = if path.is_dir() {
            private(path, &kdat)
        } else {
            system(path, &kdat)
        };
        return found.ok_or_else(|| {
            format!(
                "{CRIU_SETTING}={} is neither a program nor a directory containing {PROGRAM}",
                path.display()
            )
        });
    }
    let executable = std::env::current_exe().unwrap_or_default();
    let copies = executable
        .ancestors()
        .skip(1)
        .take(LEVELS)
        .flat_map(|dir| PRIVATE.map(|name| dir.join(name)));
    copies
        .filter_map(|dir| private(&dir, &kdat))
        .chain(
            SYSTEM
                .iter()
                .filter_map(|path| system(Path::new(path), &kdat)),
        )
        .next()
        .ok_or_else(|| {
            "CRIU is not installed; `make setup` installs one that works with new kernels"
                .to_owned()
        })
}

/// A copy with its own C library: started through its own loader.
fn private(dir: &Path, kdat: &Path) -> Option<CriuProgram> {
    if !dir.join(PROGRAM).is_file() {
        return None;
    }
    let dir = dir.canonicalize().ok()?;
    let libraries = std::fs::read_dir(dir.join("usr/lib"))
        .ok()?
        .flatten()
        .find(|entry| entry.file_name().to_string_lossy().ends_with("-linux-gnu"))?;
    let loader = std::fs::read_dir(libraries.path())
        .ok()?
        .flatten()
        .find(|entry| entry.file_name().to_string_lossy().starts_with("ld-linux"))?;
    let relative = |path: PathBuf| Some(path.strip_prefix(&dir).ok()?.to_str()?.to_owned());
    let loader = (relative(loader.path())?, relative(libraries.path())?);
    Some(CriuProgram {
        program: PROGRAM.to_owned(),
        loader: Some(loader),
        light: None,
        kdat: kdat.to_owned(),
        dir,
    })
}

/// The system's own, which finds its libraries by itself; inside a sandbox too, where `/usr` is the system's.
fn system(path: &Path, kdat: &Path) -> Option<CriuProgram> {
    if !path.is_file() {
        return None;
    }
    let path = path.canonicalize().ok()?;
    Some(CriuProgram {
        dir: path.parent()?.to_owned(),
        program: path.file_name()?.to_str()?.to_owned(),
        loader: None,
        light: None,
        kdat: kdat.to_owned(),
    })
}

/// Program and first arguments, on the host.
fn command_line(program: &CriuProgram, light: Option<&str>) -> Vec<PathBuf> {
    let at = |name: &str| program.dir.join(name);
    match &program.loader {
        Some((loader, libraries)) => {
            let mut path = OsString::new();
            if let Some(light) = light {
                path.push(at(light));
                path.push(":");
            }
            path.push(at(libraries));
            vec![
                at(loader),
                "--library-path".into(),
                path.into(),
                at(&program.program),
            ]
        }
        None => vec![at(&program.program)],
    }
}

/// Whether a version is [`MINIMUM`] or later.
fn is_new_enough(version: &str) -> bool {
    let mut numbers = version.split(['.', '-']).map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= MINIMUM,
        (Some(Ok(major)), _) => major > MINIMUM.0,
        _ => false,
    }
}

fn version(program: &CriuProgram, light: Option<&str>) -> Result<String, String> {
    let line = command_line(program, light);
    let (first, rest) = line.split_first().ok_or("no program")?;
    let output = Command::new(first)
        .args(rest)
        .arg("--version")
        .env_clear()
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{}: {error}", first.display()))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines()
        .find_map(|line| line.strip_prefix("Version:"))
        .map(|version| version.trim().to_owned())
        .ok_or_else(|| {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said.lines().next().unwrap_or("nothing").to_owned();
            format!("cannot read the version of {}: {said}", first.display())
        })
}

#[cfg(test)]
mod tests {
    use super::is_new_enough;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        for version in ["3.19", "3.19.1", "4.0", "4.1.1", "4.1-dev", "10.2", "5"] {
            assert!(is_new_enough(version), "{version}");
        }
        for version in ["3.17.1", "3.18", "2.20", "3", "", "unknown"] {
            assert!(!is_new_enough(version), "{version}");
        }
    }
}
